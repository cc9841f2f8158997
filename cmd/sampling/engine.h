/* SPDX-License-Identifier: MIT */
/*
 * Chooses how the threads of a program are sampled: by which engine, and with which C frames. The
 * best engine that is allowed is used, unless one is named:
 *
 *   bpf      in the threads' own interrupts: exact on every CPU, with or without a GIL, and
 *            without a context switch or a wake-up per sample
 *   tick     the same in the kernel's timer tick, which adds no interrupts; what runs in step
 *            with the tick is never sampled, so this engine must be named
 *   preempt  while the threads' CPUs are held
 *   racing   while the threads run, which is approximate: only where no CPU can be held
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/target.h"
#include "procmem/message.h"
#include "sampler/sampler.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_native.h"

struct engine_options {
	enum sampler_engine kind; /* if is_named: the engine to use, if possible */
	bool is_named;
	bool may_not_interrupt; /* no program in the kernel, unless its engine is named */
	bool is_exact;		/* nothing approximate */
	bool is_verbose;	/* print the kernel's messages on the BPF program to stderr */
	bool native;		/* C frames, too */
	bool is_new;		/* the process has just begun, and may end soon */
	bool kernel_frames;	/* kernel frames, too */
	bool keeps_trampolines;
	uint64_t period_ns; /* between two samples of a thread */
};

/* All zero: closed. */
struct engine {
	enum sampler_engine kind;
	uint64_t period_ns;		       /* as requested; with tick, whole ticks */
	struct sampler_interrupts *interrupts; /* of bpf and tick */
	struct sampler_native *native;	       /* if C frames are wanted */
	struct message why_no_interrupts;      /* why the engine is not bpf; "": not tried */
	struct message why_no_native; /* why running threads have no C frames; "": they have */
	struct message why_no_kernel; /* why there are no kernel frames; "": there are */
};

/* Returns the name of an engine, as in --engine. */
const char *engine_name(enum sampler_engine kind);

/* Select the engine of that name. Returns false if there is none. */
bool engine_select(struct engine_options *options, const char *name);

/*
 * Choose the engine for a sampler of target, before its first run. engine->kind says which one it
 * is; it is the named one, if possible. pool, target and sampler are borrowed until
 * engine_close(), which must precede the sampler's end. What is loaded stays in the pool for the
 * next engine_open(), which then needs no right to load it. Returns 0, -ENOMEM or -ESRCH.
 */
int engine_open(const struct engine_options *options, struct interrupts_pool *pool,
		struct target *target, struct sampler *sampler, struct engine *engine);
void engine_close(struct engine *engine);

/*
 * Whether another engine can continue after this one found that it cannot sample and returned
 * end. If so, options are changed so that engine_open() chooses the other one.
 */
bool engine_change(const struct engine *engine, const struct target *target, enum sampler_end end,
		   struct engine_options *options);
