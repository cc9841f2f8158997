/* SPDX-License-Identifier: MIT */
#include "sampler/python/dict_order.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/value_offsets.h"

/* SHARED_KEYS_MAX_SIZE: objects with more attributes have a table of their own. */
enum { MAX_SHARED_KEYS = 30 };

/* What of the struct is in front of the values since 3.13. */
enum { VALUES_HEAD_BYTES = 8 };

/* Indices of entries. */
struct order {
	uint8_t indices[MAX_SHARED_KEYS];
	uint32_t nr;
};

/* 3.11 and 3.12: in front of the values, from there down: two numbers, the indices. */
static int read_order_before(struct remote_memory *memory, const struct dict *dict,
			     struct order *ret_order)
{
	uint8_t bytes[MAX_SHARED_KEYS];
	const remote_addr nr_addr = dict->values_addr - DICT_VALUES_NR_BEFORE;
	uint8_t nr;
	int err = remote_memory_read(memory, nr_addr, &nr, sizeof(nr));

	if (err)
		return err;
	if (nr > MAX_SHARED_KEYS)
		return -EBADMSG;
	err = remote_memory_read(memory, nr_addr - nr, bytes, nr);
	for (uint32_t i = 0; !err && i < nr; i++)
		ret_order->indices[i] = bytes[nr - 1 - i];
	ret_order->nr = nr;
	return err;
}

/* 3.13 and newer: behind the values, for which there is room for `capacity` of them. */
static int read_order_behind(struct remote_memory *memory, const struct dict *dict,
			     struct order *ret_order)
{
	uint8_t head[VALUES_HEAD_BYTES];
	remote_addr indices_addr;
	int err = remote_memory_read(memory, dict->values_addr - sizeof(head), head, sizeof(head));

	if (err)
		return err;
	indices_addr = dict->values_addr + head[DICT_VALUES_CAPACITY] * sizeof(remote_addr);
	ret_order->nr = head[DICT_VALUES_SIZE];
	if (ret_order->nr > MAX_SHARED_KEYS)
		return -EBADMSG;
	return remote_memory_read(memory, indices_addr, ret_order->indices, ret_order->nr);
}

/* Put the entries into order. */
static int sort_entries(const struct order *order, uint32_t nr, struct dict_entry *entries)
{
	struct dict_entry sorted[DICT_PIECE_ENTRIES] = {0};

	if (order->nr > nr)
		return -EBADMSG;
	for (uint32_t i = 0; i < order->nr; i++) {
		if (order->indices[i] >= nr)
			return -EBADMSG;
		sorted[i] = entries[order->indices[i]];
	}
	memcpy(entries, sorted, nr * sizeof(*entries));
	return 0;
}

int dict_read_ordered(struct remote_memory *memory, const struct py_build *build,
		      const struct dict *dict, uint32_t first, uint32_t nr,
		      struct dict_entry *ret_entries)
{
	const enum attribute_rule rule = build->traits.attribute_rule;
	struct order order = {0};
	int err = dict_read(memory, dict, first, nr, ret_entries);

	if (err || !dict->values_addr || rule == ATTRIBUTES_IN_DICT || nr != dict->nr_entries)
		return err;
	err = rule == ATTRIBUTES_INLINE ? read_order_behind(memory, dict, &order)
					: read_order_before(memory, dict, &order);
	return err ? err : sort_entries(&order, nr, ret_entries);
}
