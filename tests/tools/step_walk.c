/* SPDX-License-Identifier: MIT */
/*
 * step_walk PID STEPS: walk a thread's stack after each machine instruction. An oracle for the
 * walk that covers the instants between two stores of a call, a return or a yield without load or
 * luck.
 *
 * Single-steps the main thread of PID with ptrace(2). Prints a line for each stack that differs
 * from the previous one: NAME:FIRST_LINE, outermost frame first, separated by ';'. A line "!"
 * stands for one or more instants whose stack was dropped as unfinished. The last line is
 * "= STEPS WALKED UNFINISHED". Any other reason of loss is an error. For tests only: the product
 * never stops a process.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "cmd/target.h"
#include "procmem/message.h"
#include "sampler/sampler.h"

/* Room for the text of one stack, far more than the stacks of tests need. */
enum { STACK_MAX_BYTES = 16384 };

/* Keeps the stack of the main thread. */
struct step_sink {
	struct sample_sink sink;
	char text[STACK_MAX_BYTES]; /* "" if there was none */
};

static int keep_sample(struct sample_sink *sink, const struct sample *sample)
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

/* Wait until the thread has stopped. Returns 0, or -ESRCH if it has ended. */
static int await_stop(pid_t pid, int *ret_status)
{
	pid_t waited;

	do
		waited = waitpid(pid, ret_status, __WALL);
	while (waited < 0 && errno == EINTR);
	return waited == pid && WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

/* Execute one instruction. A signal that arrives meanwhile is passed to the target. */
static int step(pid_t pid, int *status)
{
	const bool is_signal = WSTOPSIG(*status) != SIGTRAP && !(*status >> 16);

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, is_signal ? WSTOPSIG(*status) : 0))
		return -errno;
	return await_stop(pid, status);
}

/* Whether this step lost a stack for a reason other than being unfinished. */
static bool is_lost(const struct sampler_stats *stats)
{
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		if (loss != LOSS_UNFINISHED && stats->lost[loss])
			return true;
	return false;
}

static int step_and_walk(pid_t pid, struct step_sink *sink, struct sampler *sampler, long nr_steps)
{
	const struct sampler_stats *stats = sampler_stats(sampler);
	char last[STACK_MAX_BYTES] = "";
	uint64_t nr_unfinished = 0;
	bool is_marked = false;
	long nr_walked = 0;
	int status, err;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return -errno;
	err = await_stop(pid, &status);
	for (long i = 0; !err && i < nr_steps; i++) {
		err = step(pid, &status);
		sink->text[0] = '\0';
		if (!err)
			err = sampler_tick(sampler, &sink->sink, (uint64_t)i + 1);
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
		if (strcmp(sink->text, last) != 0) {
			(void)puts(sink->text);
			(void)snprintf(last, sizeof(last), "%s", sink->text);
			is_marked = false;
		}
	}
	(void)printf("= %ld %ld %" PRIu64 "\n", nr_steps, nr_walked, nr_unfinished);
	return err;
}

/* Walk the target's stack at each step. It is stopped, so no proof is needed. */
static int run(struct target *target, long nr_steps)
{
	static const struct sample_sink_ops ops = {.sample = keep_sample};
	static struct step_sink sink = {.sink.ops = &ops};
	struct sampler *sampler;
	int err = sampler_create(&target->process, &target->live.memory, &target->runtime.build,
				 target->runtime.addr, &sampler);

	if (err)
		return err;
	err = step_and_walk(target->process.pid, &sink, sampler, nr_steps);
	sampler_destroy(sampler);
	return err;
}

int main(int argc, char **argv)
{
	static struct target target;
	struct message message = {0};
	int err = 0;

	if (argc != 3) {
		(void)fputs("usage: step_walk PID STEPS\n", stderr);
		return 2;
	}
	if (target_open((pid_t)strtol(argv[1], NULL, 10), &TARGET_WAIT_DEFAULT, &target, &message))
		(void)fprintf(stderr, "step_walk: %s\n", message.text);
	else
		err = run(&target, strtol(argv[2], NULL, 10));
	if (err)
		(void)fprintf(stderr, "step_walk: %s\n", strerror(-err));
	target_close(&target);
	return err || message.text[0] ? 1 : 0;
}
