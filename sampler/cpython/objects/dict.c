/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/dict.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/object.h"

/* dk_kind: any keys, with hashes; only str keys; only str keys, in a split table. */
enum keys_kind { KEYS_GENERAL, KEYS_UNICODE, KEYS_SPLIT };

/* The words of an entry: the hash, if it has one; the key; the value. */
enum { GENERAL_WORDS = 3, UNICODE_WORDS = 2 };

/* Limits of a hash table: 2^32 slots, far more than DICT_MAX_ENTRIES needs. */
enum { LOG2_SIZE_MAX = 32, LOG2_SLOT_BYTES_MAX = 3 };

/* The fields of a type that are read. */
struct type {
	uint64_t flags;
	int64_t basicsize;
	int64_t dictoffset;
	remote_addr cached_keys_addr; /* 0 if it was not read, or is NULL */
};

/* The keys. */

/* Read the size of the hash table in front of the entries, and the kind of keys, from the head. */
static int table_bytes(const struct py_offsets *offsets, const uint8_t *head, uint64_t *ret_bytes,
		       enum keys_kind *ret_kind)
{
	uint8_t log2_size, log2_bytes, kind;

	/* 3.10 and older. Source: DK_IXSIZE(). */
	if (offsets->dict_keys.kind == OFFSET_ABSENT) {
		const uint64_t size = field_u64(head, offsets->dict_keys.size);

		if (size > UINT32_MAX || (size & (size - 1)))
			return -EBADMSG;
		*ret_bytes = size * (size <= UINT8_MAX ? 1 : size <= UINT16_MAX ? 2 : 4);
		*ret_kind = KEYS_GENERAL;
		return 0;
	}
	log2_size = field_u8(head, offsets->dict_keys.log2_size);
	log2_bytes = field_u8(head, offsets->dict_keys.log2_index_bytes);
	kind = field_u8(head, offsets->dict_keys.kind);
	if (log2_size > LOG2_SIZE_MAX || log2_bytes < log2_size ||
	    log2_bytes > log2_size + LOG2_SLOT_BYTES_MAX || kind > KEYS_SPLIT)
		return -EBADMSG;
	*ret_bytes = 1ull << log2_bytes;
	*ret_kind = kind;
	return 0;
}

/* Fill ret_dict from the keys object at keys_addr; values_addr is 0 for a combined table. */
static int open_keys(struct remote_memory *memory, const struct py_build *build,
		     remote_addr keys_addr, remote_addr values_addr, struct dict *ret_dict)
{
	const struct py_offsets *offsets = &build->offsets;
	uint8_t head[DICT_KEYS_MAX_BYTES];
	enum keys_kind kind;
	uint64_t bytes, nr_entries;
	int err = remote_memory_read(memory, keys_addr, head, offsets->dict_keys.indices);

	if (err)
		return err;
	nr_entries = field_u64(head, offsets->dict_keys.nr_entries);
	err = table_bytes(offsets, head, &bytes, &kind);
	if (err)
		return err;
	if (nr_entries > DICT_MAX_ENTRIES)
		return nr_entries > INT64_MAX ? -EBADMSG : -E2BIG;
	/* No table is more than two thirds full; 3.6 has a table of one byte for no entries. */
	if (nr_entries > bytes)
		return -EBADMSG;
	*ret_dict = (struct dict){
		.memory = memory,
		.build = build,
		.entries_addr = keys_addr + offsets->dict_keys.indices + bytes,
		.values_addr = values_addr,
		.nr_entries = (uint32_t)nr_entries,
		.has_hashes = kind == KEYS_GENERAL,
	};
	return 0;
}

int dict_open(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
	      struct dict *ret_dict)
{
	const struct py_offsets *offsets = &build->offsets;
	remote_addr keys_addr = 0;
	remote_addr values_addr = 0;
	struct remote_range ranges[] = {
		{.addr = addr + offsets->dict.keys, .buffer = &keys_addr, .size = 8},
		{.addr = addr + offsets->dict.values, .buffer = &values_addr, .size = 8},
	};
	int err = remote_memory_read_all(memory, ranges, sizeof(ranges) / sizeof(*ranges));

	if (!err && values_addr)
		values_addr += offsets->dict_values.values;
	return err ? err : open_keys(memory, build, keys_addr, values_addr, ret_dict);
}

/* The attributes of an instance. */

/* Open the dict to which the word at addr points. */
static int open_dict_at(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, struct dict *ret_dict)
{
	remote_addr dict_addr;
	int err = remote_memory_read_u64(memory, addr, &dict_addr);

	if (err)
		return err;
	return dict_addr ? dict_open(memory, build, dict_addr, ret_dict) : -ENOENT;
}

/* Open the values at values_addr, whose keys are in the type. */
static int open_values(struct remote_memory *memory, const struct py_build *build,
		       const struct type *type, remote_addr values_addr, struct dict *ret_dict)
{
	if (!type->cached_keys_addr)
		return -EBADMSG;
	return open_keys(memory, build, type->cached_keys_addr,
			 values_addr + build->offsets.dict_values.values, ret_dict);
}

/* Open what is in front of an instance of a type with TYPE_MANAGED_DICT. */
static int open_managed(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, const struct type *type, struct dict *ret_dict)
{
	const struct py_offsets *offsets = &build->offsets;
	const enum attribute_rule rule = build->traits.attribute_rule;
	remote_addr values_addr, dict_addr;
	uint8_t valid;
	int err = remote_memory_read_u64(memory, addr - offsets->instance.dict_before, &dict_addr);

	if (!err && rule == ATTRIBUTES_BY_TWO_WORDS) {
		err = remote_memory_read_u64(memory, addr - offsets->instance.values_before,
					     &values_addr);
		if (!err && values_addr)
			return open_values(memory, build, type, values_addr, ret_dict);
	}
	if (err)
		return err;
	if (rule == ATTRIBUTES_BY_TAGGED_WORD && dict_addr & 1)
		return open_values(memory, build, type, dict_addr + 1, ret_dict);
	if (dict_addr)
		return dict_open(memory, build, dict_addr, ret_dict);
	if (rule != ATTRIBUTES_INLINE || !(type->flags & TYPE_INLINE_VALUES))
		return -ENOENT;
	/* The values follow the instance, if they are valid. */
	if (type->basicsize <= 0)
		return -EBADMSG;
	values_addr = addr + (uint64_t)type->basicsize;
	err = remote_memory_read(memory, values_addr + offsets->dict_values.valid, &valid,
				 sizeof(valid));
	if (err)
		return err;
	return valid == 1 ? open_values(memory, build, type, values_addr, ret_dict) : -ENOENT;
}

int dict_open_attributes(struct remote_memory *memory, const struct py_build *build,
			 remote_addr addr, struct dict *ret_dict)
{
	const struct py_offsets *offsets = &build->offsets;
	remote_addr type_addr = 0;
	struct type type = {0};
	int err = remote_memory_read_u64(memory, addr + offsets->object.ob_type, &type_addr);
	struct remote_range ranges[] = {
		{.addr = type_addr + offsets->type.flags, .buffer = &type.flags, .size = 8},
		{.addr = type_addr + offsets->type.basicsize, .buffer = &type.basicsize, .size = 8},
		{.addr = type_addr + offsets->type.dictoffset,
		 .buffer = &type.dictoffset,
		 .size = 8},
	};

	if (!err)
		err = remote_memory_read_all(memory, ranges, sizeof(ranges) / sizeof(*ranges));
	/* A static type ends before this field. */
	if (!err && type.flags & TYPE_MANAGED_DICT)
		err = remote_memory_read_u64(memory, type_addr + offsets->type.cached_keys,
					     &type.cached_keys_addr);
	if (err)
		return err;
	if (build->traits.attribute_rule != ATTRIBUTES_IN_DICT && type.flags & TYPE_MANAGED_DICT)
		return open_managed(memory, build, addr, &type, ret_dict);
	/* Negative: from the end of an object of variable size, such as int or tuple. */
	if (type.dictoffset <= 0)
		return -ENOENT;
	return open_dict_at(memory, build, addr + (uint64_t)type.dictoffset, ret_dict);
}

int dict_open_modules(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct dict *ret_dict)
{
	const uint32_t offset = build->offsets.interpreter.modules;

	return offset == OFFSET_ABSENT
		       ? -ENOENT
		       : open_dict_at(memory, build, interp_addr + offset, ret_dict);
}

/* The entries. */

/* Read nr entries (at most DICT_PIECE_ENTRIES) from first on; all must be readable. */
static int read_entries(const struct dict *dict, uint32_t first, uint32_t nr,
			struct dict_entry *ret_entries)
{
	const size_t nr_words = dict->has_hashes ? GENERAL_WORDS : UNICODE_WORDS;
	uint64_t words[DICT_PIECE_ENTRIES * GENERAL_WORDS] = {0};
	uint64_t values[DICT_PIECE_ENTRIES] = {0};
	struct remote_range ranges[] = {
		{.addr = dict->entries_addr + first * nr_words * sizeof(*words),
		 .buffer = words,
		 .size = nr * nr_words * sizeof(*words)},
		{.addr = dict->values_addr + first * sizeof(*values),
		 .buffer = values,
		 .size = nr * sizeof(*values)},
	};
	int err;

	assert(nr <= DICT_PIECE_ENTRIES);
	err = remote_memory_read_all(dict->memory, ranges, dict->values_addr ? 2 : 1);
	for (uint32_t i = 0; !err && i < nr; i++) {
		const uint64_t *entry = &words[i * nr_words];

		ret_entries[i] = (struct dict_entry){
			.hash = dict->has_hashes ? entry[0] : 0,
			.key_addr = entry[nr_words - 2],
			.value_addr = dict->values_addr ? values[i] : entry[nr_words - 1],
		};
	}
	return err;
}

/* How many of the remaining entries to read at a time. */
static uint32_t piece_of(uint32_t nr_left)
{
	return nr_left < DICT_PIECE_ENTRIES ? nr_left : DICT_PIECE_ENTRIES;
}

/* SHARED_KEYS_MAX_SIZE: objects with more attributes have their own table. */
enum { MAX_SHARED_KEYS = 30 };

/* The part in front of the values that describes their order. */
enum { VALUES_HEAD_BYTES = 8 };

/*
 * Sort all entries of a dict with values by insertion. In 3.11 and 3.12 the order is in front of
 * the values, downwards: two numbers, then the indices. In newer versions the indices follow the
 * values, for which there is room for `capacity`.
 *
 * Source: CPython Include/internal/pycore_dict.h, _PyDictValues_AddToInsertionOrder().
 */
static int sort_entries(const struct dict *dict, struct dict_entry *entries)
{
	const bool is_inline = dict->build->traits.attribute_rule == ATTRIBUTES_INLINE;
	struct dict_entry sorted[DICT_PIECE_ENTRIES] = {0};
	uint8_t head[VALUES_HEAD_BYTES], indices[MAX_SHARED_KEYS];
	remote_addr indices_addr;
	uint8_t nr;
	int err = remote_memory_read(dict->memory, dict->values_addr - sizeof(head), head,
				     sizeof(head));

	if (err)
		return err;
	nr = head[is_inline ? DICT_VALUES_SIZE : sizeof(head) - DICT_VALUES_NR_BEFORE];
	if (nr > MAX_SHARED_KEYS || nr > dict->nr_entries)
		return -EBADMSG;
	indices_addr =
		is_inline ? dict->values_addr + head[DICT_VALUES_CAPACITY] * sizeof(remote_addr)
			  : dict->values_addr - DICT_VALUES_NR_BEFORE - nr;
	err = remote_memory_read(dict->memory, indices_addr, indices, nr);
	for (uint8_t i = 0; !err && i < nr; i++) {
		const uint8_t index = indices[is_inline ? i : nr - 1 - i];

		if (index >= dict->nr_entries)
			return -EBADMSG;
		sorted[i] = entries[index];
	}
	if (!err)
		memcpy(entries, sorted, dict->nr_entries * sizeof(*entries));
	return err;
}

int dict_next(struct dict_walk *walk, struct dict_entry *ret_entry)
{
	const struct dict *dict = &walk->dict;

	while (walk->next < dict->nr_entries) {
		if (walk->next >= walk->end) {
			const uint32_t nr = piece_of(dict->nr_entries - walk->next);
			int err = read_entries(dict, walk->next, nr, walk->entries);

			if (!err && dict->values_addr && nr == dict->nr_entries &&
			    dict->build->traits.attribute_rule != ATTRIBUTES_IN_DICT)
				err = sort_entries(dict, walk->entries);
			if (err)
				return err;
			walk->first = walk->next;
			walk->end = walk->next + nr;
		}
		*ret_entry = walk->entries[walk->next++ - walk->first];
		if (ret_entry->key_addr && ret_entry->value_addr)
			return 0;
	}
	return -ENOENT;
}

/* Most that is read of a key: a str from its length to the last character needed. */
enum { KEY_MAX_BYTES = 64 + DICT_KEY_MAX_CHARS };

/*
 * Look for key among nr entries (at most DICT_PIECE_ENTRIES) from *first on; *first becomes the one
 * found. Keys that are removed or cannot be read do not match. Returns 0, -ENOENT or an error.
 */
static int find_in_piece(const struct dict *dict, const char *key, uint32_t *first, uint32_t nr,
			 remote_addr *ret_value_addr)
{
	const struct py_offsets *offsets = &dict->build->offsets;
	const size_t head_bytes = string_compare_bytes(offsets, strlen(key));
	uint8_t objects[DICT_PIECE_ENTRIES][KEY_MAX_BYTES];
	struct remote_range ranges[DICT_PIECE_ENTRIES];
	struct dict_entry entries[DICT_PIECE_ENTRIES];
	int err = head_bytes > KEY_MAX_BYTES ? -EBADMSG : read_entries(dict, *first, nr, entries);

	for (uint32_t i = 0; !err && i < nr; i++)
		ranges[i] = (struct remote_range){
			.addr = entries[i].key_addr + offsets->unicode.length,
			.buffer = objects[i],
			.size = entries[i].key_addr && entries[i].value_addr ? head_bytes : 0,
		};
	if (!err)
		err = remote_memory_read_ranges(dict->memory, ranges, nr);
	for (uint32_t i = 0; !err && i < nr; i++)
		if (ranges[i].size && ranges[i].done_bytes == ranges[i].size &&
		    string_is(offsets, objects[i], key)) {
			*first += i;
			*ret_value_addr = entries[i].value_addr;
			return 0;
		}
	return err ? err : -ENOENT;
}

int dict_find(const struct dict *dict, uint32_t max_entries, const char *key, uint32_t *hint,
	      remote_addr *ret_value_addr)
{
	const uint32_t end = dict->nr_entries < max_entries ? dict->nr_entries : max_entries;
	int err = -ENOENT;

	assert(strlen(key) <= DICT_KEY_MAX_CHARS);
	if (hint && *hint < end)
		err = find_in_piece(dict, key, hint, 1, ret_value_addr);
	for (uint32_t i = 0; err == -ENOENT && i < end; i += DICT_PIECE_ENTRIES) {
		uint32_t found = i;

		err = find_in_piece(dict, key, &found, piece_of(end - i), ret_value_addr);
		if (!err && hint)
			*hint = found;
	}
	return err;
}

int dict_open_module(const struct dict *modules, uint32_t max_entries, const char *name,
		     uint32_t *hint, struct dict *ret_dict)
{
	remote_addr module_addr;
	int err = dict_find(modules, max_entries, name, hint, &module_addr);

	return err ? err
		   : dict_open_attributes(modules->memory, modules->build, module_addr, ret_dict);
}

/* Sets. */

/* The hash in the slot of a removed member; no object has it. */
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
		.memory = memory,
		.nr_used = nr_used,
		.nr_slots = mask + 1,
		.table_addr = table_addr,
	};
	return 0;
}

int set_next(struct set *set, remote_addr *ret_member_addr)
{
	while (set->next < set->nr_slots) {
		const uint64_t nr_left = set->nr_slots - set->next;
		const uint8_t *slot = set->slots[set->next % SET_PIECE_SLOTS];
		int err = 0;

		if (slot == set->slots[0])
			err = remote_memory_read(
				set->memory, set->table_addr + set->next * SET_ENTRY_BYTES,
				set->slots,
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
