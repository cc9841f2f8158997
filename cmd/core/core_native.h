/* SPDX-License-Identifier: MIT */
/*
 * The C frames of the threads of a core file: a sink that puts them between the Python frames
 * of each sample that has details, where they belong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/core/core_threads.h"
#include "procmem/core/core.h"
#include "sampler/native/native_stacks.h"
#include "sampler/sampler.h"
#include "symbols/elf/image_source.h"

/* Stacks of more C frames than this have a hole: 8 MiB of the least that a call takes. */
#define CORE_NATIVE_MAX_FRAMES (1u << 19)

/*
 * Of all stacks of a core together so many are kept, some 300 MiB: a thousand threads with 4,000
 * each. From the next stack on each has its innermost frame only, and a hole.
 */
#define CORE_NATIVE_MAX_KEPT_FRAMES (4u << 20)

/* Of which threads C frames are wanted. */
enum core_native_threads {
	CORE_NATIVE_NONE,
	CORE_NATIVE_PYTHON,
	CORE_NATIVE_ALL, /* also of those that Python does not know */
};

struct core_native {
	struct sample_sink sink;
	struct sample_sink *next; /* borrowed, as are: */
	const struct core *core;
	const struct core_threads *threads;
	size_t nr_stacks; /* that were unwound */
	size_t nr_holed;  /* of those, so many are not whole */
	size_t nr_added;  /* samples of threads that Python does not know */

	/* Private. */
	struct jit_frames *jit; /* owned */
	struct native_stacks stacks;
	struct stack_window window;
	size_t nr_frames_left; /* that may be kept */
	bool *has_sample;      /* of each thread of the core */
};

/*
 * Hand samples of the sampler on to next with their native frames. core, threads (who they are;
 * to be ready when the first sample comes), images, sampler and next are borrowed until
 * core_native_done(), which accepts one that is zero. 0 or -ENOMEM.
 */
int core_native_init(struct core_native *native, struct core *core,
		     const struct core_threads *threads, struct image_source *images,
		     struct sampler *sampler, struct sample_sink *next);
void core_native_done(struct core_native *native);

/*
 * Hand on a sample of each thread of the core that none came of so far, since Python does not
 * know it: of native frames only. 0, -ENOMEM, or what next returned.
 */
int core_native_add_unknown(struct core_native *native);
