/* SPDX-License-Identifier: MIT */
/*
 * Adds the C frames of the threads of a core file: a sink that puts them in their places between
 * the Python frames of each sample that has details.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/core/core_threads.h"
#include "procmem/core/core.h"
#include "sampler/native/native_stacks.h"
#include "sampler/sampler.h"
#include "symbols/elf/image_source.h"

/*
 * Limit on the C frames of all stacks of a core, some 300 MiB: a thousand threads with 4,000
 * each. After that a stack has its innermost frame only, and a gap.
 */
#define CORE_NATIVE_MAX_KEPT_FRAMES (4u << 20)

/* The threads whose C frames are wanted. */
enum core_native_threads {
	CORE_NATIVE_NONE,
	CORE_NATIVE_PYTHON,
	CORE_NATIVE_ALL, /* also those that Python does not know */
};

struct core_native {
	struct sample_sink sink;
	struct sample_sink *next; /* borrowed, as are core and threads */
	const struct core *core;
	const struct core_threads *threads;
	size_t nr_stacks;    /* stacks that were unwound */
	size_t nr_with_gaps; /* those of them that are not whole */
	size_t nr_added;     /* samples of threads that Python does not know */

	/* Private. */
	struct jit_frames *jit; /* owned */
	struct native_stacks stacks;
	struct stack_window window;
	size_t nr_frames_left; /* frames that may still be kept */
	bool *has_sample;      /* for each thread of the core */
};

/*
 * Emit samples of the sampler to next with their C frames. threads identifies the threads of
 * the core and must be ready before the first sample. core, threads, images, sampler and next are
 * borrowed until core_native_done(), which accepts a zeroed struct. Returns 0 or -ENOMEM.
 */
int core_native_init(struct core_native *native, struct core *core,
		     const struct core_threads *threads, struct image_source *images,
		     struct sampler *sampler, struct sample_sink *next);
void core_native_done(struct core_native *native);

/*
 * Emit a sample of C frames only for each thread of the core that had no sample so far, since
 * Python does not know it. Returns 0, -ENOMEM, or what next returned.
 */
int core_native_add_unknown(struct core_native *native);
