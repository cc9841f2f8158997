/* SPDX-License-Identifier: MIT */
/*
 * Walks a thread's stack after each of its machine instructions: an oracle for the walk that needs
 * neither load nor luck to meet the instants between two stores of a call, a return or a yield.
 *
 *	step_walk PID STEPS
 *
 * The main thread of PID is single-stepped with ptrace(2). Each stack that differs from the one
 * before is a line on stdout, outermost frame first, as NAME:FIRST_LINE separated by ';'. A line
 * "!" stands for one or more instants whose stack was dropped as unfinished. The last line is
 * "= STEPS WALKED UNFINISHED". Any other reason of loss is an error. Tests only: the product never
 * stops anything.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/python/runtime.h"
#include "sampler/sampler.h"
#include "symbols/live_images.h"

/* Room for the text of a stack; a test's stacks are far shorter. */
enum { STACK_MAX_BYTES = 16384 };

/* Takes the stack of the main thread. */
struct step_sink {
	struct sample_sink sink;
	char text[STACK_MAX_BYTES]; /* "" if there was none */
};

struct step_walk {
	pid_t pid;
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct live_images images;
	struct runtime runtime;
	struct step_sink sink;
};

static int take_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct step_sink *steps = (struct step_sink *)sink;
	size_t length = 0;

	if (!sample->thread->is_main)
		return 0;
	steps->text[0] = '\0';
	for (uint32_t i = 0; i < sample->nr_frames && length < STACK_MAX_BYTES; i++)
		length +=
			(size_t)snprintf(steps->text + length, STACK_MAX_BYTES - length, "%s%s:%d",
					 i ? ";" : "", sample->frames[i].function->qualname,
					 sample->frames[i].function->first_line);
	return length < STACK_MAX_BYTES ? 0 : -E2BIG;
}

/* Find the interpreter. 0; negative errno, perhaps with a sentence. */
static int find_target(struct step_walk *walk, struct message *reterr)
{
	char exe_path[PATH_MAX];
	int err = process_open(walk->pid, &walk->process, reterr);

	if (err)
		return err;
	live_memory_init(&walk->live, &walk->process);
	live_images_init(&walk->images, &walk->process);
	process_executable(&walk->process, exe_path);
	const struct program program = {
		.name = "the process",
		.is_alive = true,
		.exe_path = exe_path,
		.maps = &walk->maps,
		.memory = &walk->live.memory,
		.images = &walk->images.source,
	};

	err = maps_read(&walk->process, &walk->maps);
	return err ? err : runtime_find(&program, NULL, &walk->runtime, reterr);
}

/* Wait until the thread has stopped. 0; -ESRCH: it has ended. */
static int await_stop(pid_t pid, int *ret_status)
{
	pid_t waited;

	do
		waited = waitpid(pid, ret_status, __WALL);
	while (waited < 0 && errno == EINTR);
	return waited == pid && WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

/* Execute one instruction; a signal that comes meanwhile is the target's. */
static int step(pid_t pid, int *status)
{
	const bool is_signal = WSTOPSIG(*status) != SIGTRAP && !(*status >> 16);

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, is_signal ? WSTOPSIG(*status) : 0))
		return -errno;
	return await_stop(pid, status);
}

/* Whether a stack of this look was lost for another reason than that it is unfinished. */
static bool is_lost(const struct sampler_stats *stats)
{
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		if (loss != LOSS_UNFINISHED && stats->lost[loss])
			return true;
	return false;
}

static int step_and_walk(struct step_walk *walk, struct sampler *sampler, long nr_steps)
{
	const struct sampler_stats *stats = sampler_stats(sampler);
	char last[STACK_MAX_BYTES] = "";
	uint64_t nr_unfinished = 0;
	bool is_marked = false;
	long nr_walked = 0;
	int status, err;

	if (ptrace(PTRACE_SEIZE, walk->pid, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, walk->pid, NULL, NULL))
		return -errno;
	err = await_stop(walk->pid, &status);
	for (long i = 0; !err && i < nr_steps; i++) {
		err = step(walk->pid, &status);
		walk->sink.text[0] = '\0';
		if (!err)
			err = sampler_tick(sampler, &walk->sink.sink, (uint64_t)i + 1);
		if (err)
			break;
		if (is_lost(stats))
			return -EPROTO;
		if (stats->lost[LOSS_UNFINISHED] != nr_unfinished) {
			nr_unfinished = stats->lost[LOSS_UNFINISHED];
			if (!is_marked)
				(void)puts("!");
			is_marked = true;
			continue;
		}
		nr_walked++;
		if (strcmp(walk->sink.text, last) != 0) {
			(void)puts(walk->sink.text);
			(void)snprintf(last, sizeof(last), "%s", walk->sink.text);
			is_marked = false;
		}
	}
	(void)printf("= %ld %ld %" PRIu64 "\n", nr_steps, nr_walked, nr_unfinished);
	return err;
}

static int run(struct step_walk *walk, long nr_steps, struct message *reterr)
{
	static const struct sample_sink_ops ops = {.sample = take_sample};
	struct sampler *sampler;
	int err = find_target(walk, reterr);

	if (err)
		return err;
	walk->sink.sink.ops = &ops;
	err = sampler_create(&walk->process, &walk->live.memory, &walk->runtime.build,
			     walk->runtime.addr, &sampler);
	if (err)
		return err;
	err = step_and_walk(walk, sampler, nr_steps);
	sampler_destroy(sampler);
	return err;
}

int main(int argc, char **argv)
{
	static struct step_walk walk = {.process = PROCESS_CLOSED};
	struct message message = {0};
	int err;

	if (argc != 3) {
		(void)fputs("usage: step_walk PID STEPS\n", stderr);
		return 2;
	}
	walk.pid = (pid_t)strtol(argv[1], NULL, 10);
	err = run(&walk, strtol(argv[2], NULL, 10), &message);
	if (err)
		(void)fprintf(stderr, "step_walk: %s\n",
			      message.text[0] ? message.text : strerror(-err));
	maps_done(&walk.maps);
	process_close(&walk.process);
	return err ? 1 : 0;
}
