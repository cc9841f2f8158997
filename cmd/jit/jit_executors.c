/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_executors.h"

#include <errno.h>
#include <time.h>

#include "cmd/target.h"
#include "sampler/native/executor_list.h"
#include "sampler/native/native_stacks.h"
#include "sampler/sampler.h"

/*
 * Limit on the looks at the stacks, and the time between two, until a stack has a function that
 * leads to the list: a hot function, which is the compiled one, is in most stacks.
 */
enum { LOOKS_MAX = 10, LOOK_INTERVAL_NS = 10000000 };

/* Ignores samples: only the code objects of the stacks are wanted. */
static int ignore_sample(struct sample_sink *sink, const struct sample *sample)
{
	(void)sink;
	(void)sample;
	return 0;
}

/* Look at the stacks until the list is found. Returns 0, or an error of sampler_dump(). */
static int search(struct sampler *sampler, struct executor_list *list)
{
	static const struct sample_sink_ops ops = {.sample = ignore_sample};
	const struct timespec interval = {.tv_nsec = LOOK_INTERVAL_NS};
	struct sample_sink sink = {.ops = &ops};
	int err = 0;

	for (unsigned int i = 0; !err && !list->nr_ranges && i < LOOKS_MAX; i++) {
		if (i)
			(void)nanosleep(&interval, NULL);
		err = sampler_dump(sampler, &sink);
		if (!err)
			executor_list_read(list, sampler_codes(sampler));
	}
	return err;
}

/*
 * Add the code of the executors of a CPython that was found; some have none. Returns 0, or an
 * error of sampler_dump().
 */
static int add_executors(struct jit_sources *sources, struct target *target)
{
	struct executor_list list = {.ranges = NULL};
	struct sampler *sampler = NULL;
	int err = target_create_sampler(target, &sampler);

	if (!err)
		err = search(sampler, &list);
	for (uint32_t i = 0; !err && i < list.nr_ranges; i++) {
		const struct executor_range *range = &list.ranges[i];

		err = jit_sources_add_code(sources, JIT_SOURCE_EXECUTORS, range->start_addr,
					   range->end_addr - range->start_addr, NATIVE_STACKS_JIT);
	}
	executor_list_done(&list);
	sampler_destroy(sampler);
	return err;
}

enum exit_status jit_executors_add(struct jit_target *target, struct message *reterr)
{
	const struct target_wait at_once = {.wait_ns = 0};
	struct message why_not = {0};
	struct target python;
	int err = 0;

	if (!jit_target_is_process(target))
		return EXIT_OK;
	if (target_open(target->process.pid, &at_once, &python, &why_not) == EXIT_OK &&
	    python.runtime.build.traits.has_unnamed_executors)
		err = add_executors(target->sources, &python);
	target_close(&python);
	if (err != -ENOMEM)
		return EXIT_OK;
	message_set(reterr, "out of memory");
	return EXIT_ERROR;
}
