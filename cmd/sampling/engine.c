/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/engine.h"

#include <errno.h>
#include <string.h>

#include "sampler/racing/racing.h"

/*
 * From this period on BPF is not used: a program in the kernel does not pay off for so few
 * samples, and takes the first one only at the end of a period.
 */
#define SELDOM_NS 1000000000u

static const char *const names[] = {
	[ENGINE_PREEMPT] = "preempt",
	[ENGINE_BPF] = "bpf",
	[ENGINE_TICK] = "tick",
	[ENGINE_RACING] = "racing",
};

const char *engine_name(enum sampler_engine kind)
{
	return names[kind];
}

bool engine_select(struct engine_options *options, const char *name)
{
	for (int kind = ENGINE_PREEMPT; kind <= ENGINE_RACING; kind++) {
		if (strcmp(name, names[kind]) != 0)
			continue;
		options->kind = (enum sampler_engine)kind;
		options->is_named = true;
		return true;
	}
	return false;
}

/*
 * Try to sample in the threads' interrupts. Returns 0, also if that is not possible; -ENOMEM,
 * -ESRCH.
 */
static int try_interrupts(const struct engine_options *options, struct interrupts_pool *pool,
			  struct sampler *sampler, struct engine *engine)
{
	const bool has_tick = options->is_named && options->kind == ENGINE_TICK;
	const enum interrupts_clock clock = has_tick	      ? INTERRUPTS_TICK
					    : options->native ? INTERRUPTS_CALLER_EVENTS
							      : INTERRUPTS_OWN_EVENTS;
	const struct sampler_interrupts_options interrupts_options = {
		.period_ns = options->period_ns,
		.clock = clock,
		.is_new = options->is_new,
		.is_verbose = options->is_verbose,
		.pool = pool,
	};
	int err = sampler_interrupts_create(sampler, &interrupts_options, &engine->interrupts,
					    &engine->why_no_interrupts);

	if (!err) {
		engine->kind = has_tick ? ENGINE_TICK : ENGINE_BPF;
		engine->period_ns =
			interrupts_period_ns(sampler_interrupts_program(engine->interrupts));
	} else if (!engine->why_no_interrupts.text[0]) {
		message_set(&engine->why_no_interrupts, "%s", strerror(-err));
	}
	return err == -ENOMEM || err == -ESRCH ? err : 0;
}

static int create_native(const struct engine_options *options, struct target *target,
			 struct sampler *sampler, struct engine *engine)
{
	return sampler_native_create(
		&(struct sampler_native_options){
			.process = &target->process,
			.memory = &target->live.memory,
			.images = &target->images.source,
			.sampler = sampler,
			.period_ns = options->period_ns,
			.keeps_trampolines = options->keeps_trampolines,
			.kernel_frames = options->kernel_frames,
		},
		&engine->native, &engine->why_no_native, &engine->why_no_kernel);
}

/*
 * Set up the C frames after the engine was chosen. If they are not possible with BPF, which needs
 * the events, the engine becomes preempt.
 */
static int open_native(const struct engine_options *options, struct target *target,
		       struct sampler *sampler, struct engine *engine)
{
	int err = create_native(options, target, sampler, engine);

	if (err || !engine->why_no_native.text[0] || engine->kind != ENGINE_BPF)
		return err;
	engine->why_no_interrupts = engine->why_no_native;
	engine->why_no_native.text[0] = '\0';
	engine_close(engine);
	engine->kind = ENGINE_PREEMPT;
	return create_native(options, target, sampler, engine);
}

int engine_open(const struct engine_options *options, struct interrupts_pool *pool,
		struct target *target, struct sampler *sampler, struct engine *engine)
{
	const bool may_interrupt =
		options->is_named ? options->kind == ENGINE_BPF || options->kind == ENGINE_TICK
				  : !options->may_not_interrupt && options->period_ns < SELDOM_NS;
	int err = 0;

	*engine = (struct engine){
		.kind = ENGINE_PREEMPT,
		.period_ns = options->period_ns,
	};
	if (may_interrupt)
		err = try_interrupts(options, pool, sampler, engine);
	else if (options->kind == ENGINE_RACING && racing_supports(&target->runtime.build))
		engine->kind = ENGINE_RACING;
	if (!err && options->native)
		err = open_native(options, target, sampler, engine);
	if (err)
		engine_close(engine);
	return err;
}

void engine_close(struct engine *engine)
{
	sampler_native_destroy(engine->native);
	engine->native = NULL;
	sampler_interrupts_destroy(engine->interrupts);
	engine->interrupts = NULL;
}

bool engine_change(const struct engine *engine, const struct target *target, enum sampler_end end,
		   struct engine_options *options)
{
	if (options->is_named || engine->kind == ENGINE_RACING)
		return false;
	if (end == END_TOO_DEEP) {
		options->may_not_interrupt = true;
		return true;
	}
	if (!sampler_end_is_out_of_reach(end) || options->is_exact || options->native ||
	    !racing_supports(&target->runtime.build))
		return false;
	options->kind = ENGINE_RACING;
	options->is_named = true;
	return true;
}
