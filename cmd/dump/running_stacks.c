/* SPDX-License-Identifier: MIT */
#include "cmd/dump/running_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/native/native_stacks.h"

/*
 * At one copy a millisecond, a thread that runs all the time is copied a hundred times. Some ten
 * of the copies may be needed to decide which are of a look's moment; there is room for fifteen
 * until a tick.
 */
#define PERIOD_NS   1000000u
#define DURATION_NS 100000000u
#define RATE_HZ	    400

/* Returns the stack of a thread in an interpreter, or NULL if it has none there. */
static struct running_stack *find(const struct running_stacks *running,
				  const struct sample_thread *thread)
{
	for (uint32_t i = 0; i < running->nr_stacks; i++) {
		struct running_stack *stack = &running->stacks[i];

		if (stack->tid == thread->tid && stack->frames &&
		    stack->interpreter_id == thread->interpreter_id)
			return stack;
	}
	return NULL;
}

const struct running_stack *running_stacks_find(const struct running_stacks *running,
						const struct sample_thread *thread)
{
	return find(running, thread);
}

/* Append an entry for a thread. Returns NULL if out of memory. */
static struct running_stack *add(struct running_stacks *running, pid_t tid)
{
	struct running_stack *stacks = array_reserve(running->stacks, running->nr_stacks + 1,
						     &running->max_stacks, sizeof(*stacks));

	if (!stacks)
		return NULL;
	running->stacks = stacks;
	stacks[running->nr_stacks] = (struct running_stack){.tid = tid};
	return &stacks[running->nr_stacks++];
}

/*
 * Find the entry for a thread's stack in an interpreter; NULL if the thread did not run at first.
 * Returns 0 or -ENOMEM.
 */
static int find_place(struct running_stacks *running, const struct sample_thread *thread,
		      struct running_stack **ret_stack)
{
	bool ran = false;

	*ret_stack = find(running, thread);
	for (uint32_t i = 0; !*ret_stack && i < running->nr_stacks; i++) {
		ran = ran || running->stacks[i].tid == thread->tid;
		if (running->stacks[i].tid == thread->tid && !running->stacks[i].frames)
			*ret_stack = &running->stacks[i];
	}
	if (*ret_stack || !ran)
		return 0;
	*ret_stack = add(running, thread->tid);
	return *ret_stack ? 0 : -ENOMEM;
}

/*
 * Append an entry for each running thread. Returns 0, -ENOMEM, -ESRCH, or the errno of a system
 * call.
 */
static int list_threads(struct running_stacks *running, const struct process *process)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(process, &threads, &nr_threads);

	for (size_t i = 0; !err && i < nr_threads; i++) {
		struct wait_place place;

		if (wait_place_read(process, threads[i].tid, 0, &place) != -EAGAIN)
			continue;
		if (!add(running, threads[i].tid))
			return -ENOMEM;
	}
	return err;
}

static bool sample_has_gap(const struct sample *sample)
{
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		if (native_stacks_is_gap(sample->frames[i].function))
			return true;
	return false;
}

/*
 * Store a sample that has C frames, which only those with details have. A stack without a gap is
 * not replaced by one with a gap.
 */
static int running_stacks_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct running_stacks *running = (struct running_stacks *)sink;
	const bool has_gap = sample_has_gap(sample);
	struct running_stack *stack;
	struct frame *frames;
	struct frame_detail *details;
	int err = find_place(running, sample->thread, &stack);

	if (err)
		return err;
	if (!stack || !sample->details || (stack->frames && has_gap && !stack->has_gap))
		return 0;
	frames = array_copy(sample->frames, sample->nr_frames, sizeof(*frames));
	details = array_copy(sample->details, sample->nr_frames, sizeof(*details));
	if (!frames || !details) {
		free(frames);
		free(details);
		return -ENOMEM;
	}
	free(stack->frames);
	free(stack->details);
	stack->frames = frames;
	stack->details = details;
	stack->interpreter_id = sample->thread->interpreter_id;
	stack->nr_frames = sample->nr_frames;
	stack->has_gap = has_gap;
	return 0;
}

static void free_stacks(struct running_stacks *running)
{
	for (uint32_t i = 0; i < running->nr_stacks; i++) {
		free(running->stacks[i].frames);
		free(running->stacks[i].details);
		running->stacks[i].frames = NULL;
		running->stacks[i].details = NULL;
	}
}

/*
 * Sample for a while. Returns 0 or a negative errno. *ret_end says how the sampling ended; it is
 * END_DURATION if it was not possible.
 */
static int sample_threads(struct running_stacks *running, struct target *target,
			  const struct engine_options *engine_options, enum sampler_end *ret_end)
{
	struct engine *engine = &running->engine;
	int err = target_create_sampler(target, &running->sampler);

	if (!err)
		err = engine_open(engine_options, &running->pool, target, running->sampler, engine);
	*ret_end = END_DURATION;
	if (err || engine->why_no_native.text[0])
		return err;
	return sampler_run(running->sampler,
			   &(struct sampler_options){
				   .engine = engine->kind,
				   .ends_when_too_deep = true,
				   .rate_hz = RATE_HZ,
			   },
			   &(struct sampler_limits){.duration_ns = DURATION_NS}, &running->sink,
			   ret_end);
}

int running_stacks_collect(struct running_stacks *running, struct target *target,
			   bool kernel_frames, struct message *ret_why_no_native,
			   struct message *ret_why_no_kernel)
{
	static const struct sample_sink_ops ops = {.sample = running_stacks_sample};
	struct engine_options engine_options = {
		.native = true,
		.kernel_frames = kernel_frames,
		.period_ns = PERIOD_NS,
	};
	enum sampler_end end;
	int err;

	*running = (struct running_stacks){.sink.ops = &ops};
	err = list_threads(running, &target->process);
	if (err || !running->nr_stacks)
		return err;
	err = sample_threads(running, target, &engine_options, &end);
	if (!err && end == END_TOO_DEEP &&
	    engine_change(&running->engine, target, end, &engine_options)) {
		/* They refer to functions that the sampler owns. */
		free_stacks(running);
		engine_close(&running->engine);
		sampler_destroy(running->sampler);
		running->sampler = NULL;
		err = sample_threads(running, target, &engine_options, &end);
	}
	*ret_why_no_native = running->engine.why_no_native;
	*ret_why_no_kernel = running->engine.why_no_kernel;
	return err;
}

void running_stacks_done(struct running_stacks *running)
{
	free_stacks(running);
	free(running->stacks);
	engine_close(&running->engine);
	interrupts_pool_close(&running->pool);
	sampler_destroy(running->sampler);
}
