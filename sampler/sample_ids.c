/* SPDX-License-Identifier: MIT */
#include "sampler/sample_ids.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/cpython/code/code.h"

void sample_ids_init(struct sample_ids *ids)
{
	*ids = (struct sample_ids){.functions.max_bytes = FUNCTIONS_MAX_BYTES};
}

void sample_ids_done(struct sample_ids *ids)
{
	function_table_done(&ids->functions);
	free(ids->unused_slots);
	*ids = (struct sample_ids){0};
}

int sample_ids_take_slot(struct sample_ids *ids, uint32_t *ret_slot)
{
	uint32_t *unused;

	if (ids->nr_unused) {
		*ret_slot = ids->unused_slots[--ids->nr_unused];
		return 0;
	}
	/* Room for the slot, so that it can be put back. */
	unused = array_reserve(ids->unused_slots, ids->nr_slots + 1, &ids->max_unused,
			       sizeof(*unused));
	if (!unused)
		return -ENOMEM;
	ids->unused_slots = unused;
	*ret_slot = ids->nr_slots++;
	return 0;
}

void sample_ids_put_slot(struct sample_ids *ids, uint32_t slot)
{
	ids->unused_slots[ids->nr_unused++] = slot;
}
