/* SPDX-License-Identifier: MIT */
/*
 * shared_program ENGINE SECONDS PID…: sample processes with one BPF program, tick by tick in turns.
 * The engine is bpf or tick.
 *
 * Prints a line for each sample: PID, a space, and the names of its frames, outermost first,
 * separated by ';'. The last line of each process is "= PID SAMPLES LOST_CODE LOST_SKIPPED", and the
 * last line of all is "= PROGRAMS". For tests only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/sampling/engine.h"
#include "cmd/target.h"
#include "procmem/clock.h"
#include "procmem/message.h"
#include "sampler/sampler.h"
#include "sampler/sampler_state.h"

enum { MAX_PROCESSES = 16 };

/* CPU time between two samples, and time between two ticks of a process. */
#define PERIOD_NS 2000000u
#define TICK_NS	  5000000u

/* One of the processes. */
struct sharer {
	struct sample_sink sink;
	struct target target;
	struct engine engine;
	struct sampler *sampler;
};

static int print_sample(struct sample_sink *sink, const struct sample *sample)
{
	const struct sharer *sharer = (struct sharer *)sink;

	(void)printf("%d ", sharer->target.process.pid);
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		(void)printf("%s%s", i ? ";" : "", sample->frames[i].function->qualname);
	(void)puts("");
	return 0;
}

/* Open a process, and begin to sample it. Returns 0, or a negative errno with a message. */
static int begin(struct sharer *sharer, pid_t pid, const struct engine_options *options,
		 struct interrupts_pool *pool, struct message *reterr)
{
	static const struct sample_sink_ops ops = {.sample = print_sample};
	int err;

	sharer->sink.ops = &ops;
	if (target_open(pid, &TARGET_WAIT_DEFAULT, &sharer->target, reterr) != EXIT_OK)
		return -ESRCH;
	err = target_create_sampler(&sharer->target, &sharer->sampler);
	if (!err)
		err = engine_open(options, pool, &sharer->target, sharer->sampler, &sharer->engine);
	if (!err && !sharer->engine.interrupts) {
		*reterr = sharer->engine.why_no_interrupts;
		return -ENOTSUP;
	}
	if (!err)
		err = sampler_interrupts_begin(sharer->engine.interrupts, &sharer->sink);
	return err;
}

/* Whether a run goes on after this error. */
static bool is_tolerable(int err)
{
	return !err || sampler_is_transient(err);
}

/* Tick each process in turn until the time is over. */
static int run(struct sharer *sharers, int nr, uint64_t end_ns)
{
	int err = 0;

	for (uint64_t now_ns = clock_now_ns(); now_ns < end_ns && is_tolerable(err);
	     now_ns = clock_now_ns()) {
		for (int i = 0; i < nr && is_tolerable(err); i++) {
			clock_sleep_until(clock_now_ns() + TICK_NS / (uint64_t)nr);
			err = sampler_tick(sharers[i].sampler, &sharers[i].sink, clock_now_ns());
		}
	}
	return is_tolerable(err) ? 0 : err;
}

/* Stop all, one after another, and print what each has counted. */
static void end(struct sharer *sharers, int nr)
{
	for (int i = 0; i < nr; i++) {
		const struct sampler_stats *stats;

		if (sharers[i].engine.interrupts)
			sampler_interrupts_end(sharers[i].engine.interrupts);
		engine_close(&sharers[i].engine);
		if (sharers[i].sampler) {
			stats = sampler_stats(sharers[i].sampler);
			(void)printf("= %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				     sharers[i].target.process.pid, stats->samples,
				     stats->lost[LOSS_CODE], stats->lost[LOSS_SKIPPED]);
		}
		sampler_destroy(sharers[i].sampler);
		target_close(&sharers[i].target);
	}
}

int main(int argc, char **argv)
{
	static struct sharer sharers[MAX_PROCESSES];
	static struct interrupts_pool pool;
	struct message message = {0};
	struct engine_options options = {.period_ns = PERIOD_NS};
	const int nr = argc - 3;
	int nr_begun = 0;
	int err = 0;

	if (nr < 1 || nr > MAX_PROCESSES || !engine_select(&options, argv[1])) {
		(void)fputs("usage: shared_program ENGINE SECONDS PID...\n", stderr);
		return 2;
	}
	for (; !err && nr_begun < nr; nr_begun++)
		err = begin(&sharers[nr_begun], (pid_t)strtol(argv[nr_begun + 3], NULL, 10),
			    &options, &pool, &message);
	if (!err)
		err = run(sharers, nr,
			  clock_now_ns() + (uint64_t)(strtod(argv[2], NULL) * (double)NS_PER_S));
	end(sharers, nr_begun);
	(void)printf("= %u\n", pool.nr_programs);
	interrupts_pool_close(&pool);
	if (err)
		(void)fprintf(stderr, "shared_program: %s\n",
			      message.text[0] ? message.text : strerror(-err));
	return err ? 1 : 0;
}
