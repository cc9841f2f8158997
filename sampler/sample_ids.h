/* SPDX-License-Identifier: MIT */
/*
 * What identifies functions and threads in samples. Samplers that feed one sink share it: then a
 * function's id, a thread's id and a thread's slot mean the same whichever sampler they come from.
 */
#pragma once

#include <stdint.h>

#include "sampler/cpython/base/function_table.h"

/* Created by sample_ids_init(); must not be moved while samplers use it. */
struct sample_ids {
	struct function_table functions;
	uint32_t nr_threads;	/* number of threads ever seen; the id of the next one */
	uint32_t nr_slots;	/* one above the highest slot so far */
	uint32_t *unused_slots; /* owned; below nr_slots */
	uint32_t nr_unused, max_unused;
};

void sample_ids_init(struct sample_ids *ids);

/* Free everything, including the functions that samples refer to. Accepts one that is all zero. */
void sample_ids_done(struct sample_ids *ids);

/*
 * Take a slot that no thread has. Returns 0 or -ENOMEM. With sample_ids_put_slot(), which cannot
 * fail, another thread may have it.
 */
int sample_ids_take_slot(struct sample_ids *ids, uint32_t *ret_slot);
void sample_ids_put_slot(struct sample_ids *ids, uint32_t slot);
