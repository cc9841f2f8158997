/* SPDX-License-Identifier: MIT */
/*
 * How the threads of one program are sampled: which engine does it, and with which C frames. The
 * best that is allowed is taken, unless one is named:
 *
 *   bpf      in the threads' own interrupts: exact on every CPU, with a GIL or without, and
 *            without a switch or a wake-up a sample
 *   tick     the same in those of the kernel's timer tick, which costs no interrupt; what is in step
 *            with the tick is not met, so it has to be named
 *   preempt  while their CPUs are held
 *   racing   while they run, which is approximate: only where no CPU can be held
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/target.h"
#include "procmem/message.h"
#include "sampler/sampler.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_natives.h"

struct engine_options {
	enum sampler_engine kind; /* if is_named: no other one unless this cannot be */
	bool is_named;
	bool may_not_interrupt; /* but for one that is named, no program in the kernel */
	bool is_exact;		/* nothing approximate */
	bool is_verbose;	/* what the kernel says of the BPF program goes to stderr */
	bool native;		/* C frames, too */
	bool tells_kernel;	/* and the kernel's */
	bool keeps_trampolines;
	uint64_t period_ns; /* between two samples of a thread */
};

/* All zero it is closed. */
struct engine {
	enum sampler_engine kind;
	uint64_t period_ns;		       /* as asked, but that of tick is of whole ticks */
	struct sampler_interrupts *interrupts; /* of bpf and tick */
	struct sampler_natives *natives;       /* if C frames are asked for */
	struct interrupts *before;    /* of the program that was replaced, for engine_open() */
	struct message no_interrupts; /* why it is not bpf, in a sentence; "": not tried */
	struct message
		no_natives;	  /* why there are no C frames of threads that run; "": there are */
	struct message no_kernel; /* the same of the kernel's frames */
};

/* An engine as --engine names it. */
const char *engine_name(enum sampler_engine kind);

/* Take the engine that is named; false: there is none of that name. */
bool engine_take_name(struct engine_options *options, const char *name);

/*
 * Choose the engine for a sampler of target, before its first run; both are borrowed until
 * engine_close() or engine_release(), which come before the sampler's end. The one that is named, if it
 * can be had, which kind then says. 0; -ENOMEM, -ESRCH.
 */
int engine_open(const struct engine_options *options, struct target *target,
		struct sampler *sampler, struct engine *engine);
void engine_close(struct engine *engine);

/*
 * Close it when the process has replaced its program, for an engine_open() to come, which then needs no
 * right to load what is loaded.
 */
void engine_release(struct engine *engine);

/*
 * Whether another engine can go on where this one came back with end, having found that it cannot:
 * options are changed so that engine_open() takes that one.
 */
bool engine_change(const struct engine *engine, const struct target *target, enum sampler_end end,
		   struct engine_options *options);
