/* SPDX-License-Identifier: MIT */
#include "sampler/code_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

void code_index_done(struct code_index *index)
{
	free(index->entries);
	*index = (struct code_index){.entries = NULL};
}

/* How many begin at addr or before it. */
static uint32_t count_up_to(const struct code_index *index, remote_addr addr)
{
	uint32_t low = 0, high = index->nr_entries;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (index->entries[middle].code_start_addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int code_index_add(struct code_index *index, const struct code *code)
{
	uint32_t at = count_up_to(index, code->code_start_addr);
	struct code_index_entry *entries;

	if (code->foreign || !code->function)
		return 0;
	if (at && index->entries[at - 1].code_start_addr == code->code_start_addr) {
		index->entries[at - 1].addr = code->addr;
		return 0;
	}
	if (index->nr_entries == CODE_INDEX_MAX) {
		index->nr_entries = 0;
		at = 0;
	}
	entries = array_reserve(index->entries, index->nr_entries + 1, &index->max_entries,
				sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	index->entries = entries;
	memmove(entries + at + 1, entries + at, (index->nr_entries - at) * sizeof(*entries));
	entries[at] = (struct code_index_entry){code->code_start_addr, code->addr};
	index->nr_entries++;
	return 0;
}

remote_addr code_index_find(const struct code_index *index, remote_addr instr_addr)
{
	const uint32_t nr = count_up_to(index, instr_addr);

	return nr ? index->entries[nr - 1].addr : 0;
}
