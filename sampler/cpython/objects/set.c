/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/set.h"

#include <errno.h>

/* The hash in a slot whose member was removed: no object has it. */
#define HASH_REMOVED UINT64_MAX

int set_open(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	     struct set *ret_set)
{
	uint8_t fields[SET_TABLE_AFTER_TYPE + sizeof(remote_addr)];
	uint64_t nr_used, mask;
	remote_addr table_addr, end;
	int err = remote_memory_read(memory, addr + offsets->object.ob_type + sizeof(remote_addr),
				     fields, sizeof(fields));

	if (err)
		return err;
	nr_used = field_u64(fields, SET_USED_AFTER_TYPE);
	mask = field_u64(fields, SET_MASK_AFTER_TYPE);
	table_addr = field_u64(fields, SET_TABLE_AFTER_TYPE);
	if (mask & (mask + 1) || mask >= INT64_MAX / SET_ENTRY_BYTES || nr_used > mask ||
	    __builtin_add_overflow(table_addr, (mask + 1) * SET_ENTRY_BYTES, &end))
		return -EBADMSG;
	*ret_set = (struct set){
		.nr_used = nr_used,
		.nr_slots = mask + 1,
		.table_addr = table_addr,
	};
	return 0;
}

int set_next(struct remote_memory *memory, struct set *set, remote_addr *ret_member_addr)
{
	while (set->next < set->nr_slots) {
		const uint64_t nr_left = set->nr_slots - set->next;
		const uint8_t *slot = set->slots[set->next % SET_PIECE_SLOTS];
		int err = 0;

		if (slot == set->slots[0])
			err = remote_memory_read(
				memory, set->table_addr + set->next * SET_ENTRY_BYTES, set->slots,
				(nr_left < SET_PIECE_SLOTS ? nr_left : SET_PIECE_SLOTS) *
					SET_ENTRY_BYTES);
		if (err)
			return err;
		set->next++;
		*ret_member_addr = field_u64(slot, SET_ENTRY_KEY);
		if (*ret_member_addr && field_u64(slot, SET_ENTRY_HASH) != HASH_REMOVED)
			return 0;
	}
	return -ENOENT;
}
