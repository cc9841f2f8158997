/* SPDX-License-Identifier: MIT */
#include "sampler/python/set.h"

#include <errno.h>

#include "sampler/python/value_offsets.h"

/* The hash in a slot whose member was removed: no object has it. */
#define HASH_REMOVED UINT64_MAX

int set_open(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	     struct set *ret_set)
{
	const remote_addr behind_addr = addr + offsets->object.ob_type + sizeof(remote_addr);
	struct set set;
	uint64_t mask;
	remote_addr end;
	int err = remote_memory_read_u64(memory, behind_addr + SET_USED_AFTER_TYPE, &set.nr_used);

	if (!err)
		err = remote_memory_read_u64(memory, behind_addr + SET_MASK_AFTER_TYPE, &mask);
	if (!err)
		err = remote_memory_read_u64(memory, behind_addr + SET_TABLE_AFTER_TYPE,
					     &set.table_addr);
	if (err)
		return err;
	if (mask & (mask + 1) || mask >= INT64_MAX / SET_ENTRY_BYTES || set.nr_used > mask)
		return -EBADMSG;
	set.nr_slots = mask + 1;
	if (__builtin_add_overflow(set.table_addr, set.nr_slots * SET_ENTRY_BYTES, &end))
		return -EBADMSG;
	*ret_set = set;
	return 0;
}

int set_read(struct remote_memory *memory, const struct set *set, uint64_t first, size_t nr,
	     remote_addr ret_members[SET_PIECE_SLOTS])
{
	uint8_t entries[SET_PIECE_SLOTS][SET_ENTRY_BYTES];
	int err = remote_memory_read(memory, set->table_addr + first * SET_ENTRY_BYTES, entries,
				     nr * SET_ENTRY_BYTES);

	for (size_t i = 0; !err && i < nr; i++)
		ret_members[i] = field_u64(entries[i], SET_ENTRY_HASH) == HASH_REMOVED
					 ? 0
					 : field_u64(entries[i], SET_ENTRY_KEY);
	return err;
}
