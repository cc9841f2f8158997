/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_objects.h"

enum { TYPE_BYTES = 1024, MIN_LOG2_SLOTS = 6, KEYS_SPLIT = 2 };

/*
 * Py_TPFLAGS_INLINE_VALUES and Py_TPFLAGS_MANAGED_DICT; offset of the dict in instances of a
 * class without them.
 */
enum { INLINE_VALUES = 1 << 2, MANAGED_DICT = 1 << 4, DICT_OFFSET = 16, BASIC_SIZE = 32 };

const uint32_t fake_minors[NR_FAKE_MINORS] = {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, FAKE_MAIN};

static void put(struct fake_python *py, remote_addr addr, uint64_t value)
{
	fake_memory_write_u64(&py->fake, addr, value);
}

remote_addr fake_object(struct fake_python *py, const char *type_name, const uint64_t *words,
			size_t nr_words)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const uint32_t head = offsets->object.ob_type + 8;
	remote_addr name_addr = fake_python_alloc(py, strlen(type_name) + 1);
	remote_addr type_addr = fake_python_alloc(py, 400);
	remote_addr addr = fake_python_alloc(py, head + 8 * nr_words);

	fake_memory_write(&py->fake, name_addr, type_name, strlen(type_name) + 1);
	put(py, type_addr + offsets->object.tp_name, name_addr);
	put(py, addr + offsets->object.ob_type, type_addr);
	for (size_t i = 0; i < nr_words; i++)
		put(py, addr + head + 8 * i, words[i]);
	return addr;
}

remote_addr fake_int(struct fake_python *py, uint64_t value)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, offsets->integer.digits + 12);
	uint64_t nr = 0;

	for (; value; value >>= 30)
		fake_memory_write_u32(&py->fake, addr + offsets->integer.digits + 4 * nr++,
				      value & ((1u << 30) - 1));
	/* Since 3.12 the digit count shares a word with the sign, which is 1 for 0. */
	put(py, addr + offsets->integer.size,
	    nr << offsets->integer.size_shift | (offsets->integer.size_shift && !nr));
	return addr;
}

static uint8_t log2_slots(size_t nr_items)
{
	uint8_t log2 = MIN_LOG2_SLOTS;

	while (nr_items > 1ull << log2)
		log2++;
	return log2;
}

static bool has_old_keys(const struct fake_python *py)
{
	return py->build.offsets.dict_keys.kind == OFFSET_ABSENT;
}

/*
 * Size of the hash table in bytes. Newer versions (3.11 and later) get one byte per slot, which
 * is enough here.
 */
static size_t table_bytes(const struct fake_python *py, size_t nr_items)
{
	size_t nr_slots = 1ull << log2_slots(nr_items);

	return !has_old_keys(py) || nr_slots <= UINT8_MAX ? nr_slots
	       : nr_slots <= UINT16_MAX			  ? 2 * nr_slots
							  : 4 * nr_slots;
}

/* Write the head of a keys object. kind is the kind of 3.11 and later. */
static void write_head(struct fake_python *py, remote_addr addr, uint8_t kind, size_t nr_items)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const uint8_t log2 = log2_slots(nr_items);

	if (has_old_keys(py)) {
		put(py, addr + offsets->dict_keys.size, 1ull << log2);
	} else {
		fake_memory_write_u8(&py->fake, addr + offsets->dict_keys.log2_size, log2);
		fake_memory_write_u8(&py->fake, addr + offsets->dict_keys.log2_index_bytes, log2);
		fake_memory_write_u8(&py->fake, addr + offsets->dict_keys.kind, kind);
	}
	put(py, addr + offsets->dict_keys.nr_entries, nr_items);
}

/* Write an entry: the last nr_words of the words hash, key, value. */
static void write_entry(struct fake_python *py, remote_addr addr, size_t nr_words,
			const uint64_t words[3])
{
	for (size_t i = 0; i < nr_words; i++)
		put(py, addr + 8 * i, words[3 - nr_words + i]);
}

/*
 * Make a keys object of nr_pads copies of *pad followed by items. Entries of a split table have
 * no values.
 */
static void make_keys(struct fake_python *py, bool is_split, const struct fake_item *pad,
		      size_t nr_pads, const struct fake_item *items, size_t nr_items,
		      struct fake_dict *dict)
{
	const size_t nr = nr_pads + nr_items;
	const struct fake_item *first = nr_pads ? pad : items;
	const size_t before = py->build.offsets.dict_keys.indices + table_bytes(py, nr);
	bool has_hashes = has_old_keys(py) || (nr && !first->text);
	size_t nr_words = has_hashes ? 3 : 2;
	uint8_t kind = is_split ? KEYS_SPLIT : !has_hashes;
	uint64_t words[3] = {0};

	dict->keys_addr = fake_python_alloc(py, before + 8 * nr_words * nr);
	dict->entries_addr = dict->keys_addr + before;
	write_head(py, dict->keys_addr, kind, nr);
	for (size_t i = 0; i < nr; i++) {
		const struct fake_item *item = i < nr_pads ? pad : &items[i - nr_pads];

		if (i == 0 || i >= nr_pads) {
			words[0] = item->text ? 0x1234 : item->number;
			words[1] = item->text ? fake_python_str(py, item->text)
					      : fake_int(py, item->number);
			words[2] = is_split ? 0 : item->value_addr;
		}
		write_entry(py, dict->entries_addr + 8 * nr_words * i, nr_words, words);
	}
}

/* Write the values of a split table at addr as a struct _dictvalues. */
static void write_values(struct fake_python *py, remote_addr addr, const struct fake_item *items,
			 size_t nr_items)
{
	const struct py_offsets *offsets = &py->build.offsets;

	if (offsets->dict_values.valid != OFFSET_ABSENT)
		fake_memory_write_u8(&py->fake, addr + offsets->dict_values.valid, 1);
	for (size_t i = 0; i < nr_items; i++)
		put(py, addr + offsets->dict_values.values + 8 * i, items[i].value_addr);
}

static remote_addr make_dict(struct fake_python *py, remote_addr keys_addr, remote_addr values_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, offsets->dict.values + 8);

	put(py, addr + offsets->dict.keys, keys_addr);
	put(py, addr + offsets->dict.values, values_addr);
	return addr;
}

struct fake_dict fake_long_dict(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
				const struct fake_item *items, size_t nr_items)
{
	struct fake_dict dict = {0};

	make_keys(py, false, pad, nr_pads, items, nr_items, &dict);
	dict.addr = make_dict(py, dict.keys_addr, 0);
	return dict;
}

struct fake_dict fake_dict(struct fake_python *py, const struct fake_item *items, size_t nr_items)
{
	return fake_long_dict(py, NULL, 0, items, nr_items);
}

static remote_addr make_type(struct fake_python *py, remote_addr keys_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const enum attribute_rule rule = py->build.traits.attribute_rule;
	remote_addr addr = fake_python_alloc(py, TYPE_BYTES);
	uint64_t flags = rule == ATTRIBUTES_IN_DICT  ? 0
			 : rule == ATTRIBUTES_INLINE ? MANAGED_DICT | INLINE_VALUES
						     : MANAGED_DICT;

	put(py, addr + offsets->type.flags, flags);
	put(py, addr + offsets->type.basicsize, BASIC_SIZE);
	put(py, addr + offsets->type.dictoffset, flags ? UINT64_MAX : DICT_OFFSET);
	put(py, addr + offsets->type.cached_keys, keys_addr);
	return addr;
}

/* Write where the instance at addr keeps its attributes: a dict, or values if dict_addr is 0. */
static void write_attributes(struct fake_python *py, remote_addr addr, remote_addr dict_addr,
			     remote_addr values_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;

	switch (py->build.traits.attribute_rule) {
	case ATTRIBUTES_IN_DICT:
		put(py, addr + DICT_OFFSET, dict_addr);
		break;
	case ATTRIBUTES_BY_TWO_WORDS:
		put(py, addr - offsets->instance.dict_before, dict_addr);
		put(py, addr - offsets->instance.values_before, dict_addr ? 0 : values_addr);
		break;
	case ATTRIBUTES_BY_TAGGED_WORD:
		put(py, addr - offsets->instance.dict_before,
		    dict_addr ? dict_addr : values_addr - 1);
		break;
	case ATTRIBUTES_INLINE:
		put(py, addr - offsets->instance.dict_before, dict_addr);
		break;
	}
}

remote_addr fake_instance(struct fake_python *py, enum fake_form form,
			  const struct fake_item *items, size_t nr_items,
			  struct fake_dict *ret_dict)
{
	enum { BEFORE = 32 };
	const bool is_inline = py->build.traits.attribute_rule == ATTRIBUTES_INLINE;
	const size_t values_bytes = py->build.offsets.dict_values.values + 8 * nr_items;
	remote_addr addr = fake_python_alloc(py, BEFORE + BASIC_SIZE + values_bytes) + BEFORE;
	struct fake_dict dict = {0};

	make_keys(py, form != FAKE_OWN_DICT, NULL, 0, items, nr_items, &dict);
	if (form != FAKE_OWN_DICT) {
		dict.values_addr =
			is_inline ? addr + BASIC_SIZE : fake_python_alloc(py, values_bytes);
		write_values(py, dict.values_addr, items, nr_items);
	}
	if (form != FAKE_NO_DICT || py->build.traits.attribute_rule == ATTRIBUTES_IN_DICT)
		dict.addr = make_dict(py, dict.keys_addr, dict.values_addr);
	put(py, addr + py->build.offsets.object.ob_type,
	    make_type(py, form == FAKE_OWN_DICT ? 0 : dict.keys_addr));
	write_attributes(py, addr, dict.addr, dict.values_addr);
	if (ret_dict)
		*ret_dict = dict;
	return addr;
}

remote_addr fake_thread_object(struct fake_python *py, enum fake_form form, uint64_t ident,
			       const char *name)
{
	const struct fake_item items[] = {
		{"_target", 0, 0},
		{"_name", 0, fake_python_str(py, name)},
		{"_daemonic", 0, py->none_addr},
		{"_ident", 0, fake_int(py, ident)},
		{"_native_id", 0, fake_int(py, FAKE_NATIVE_ID(ident))},
	};

	/* _native_id exists since 3.8. */
	return fake_instance(py, form, items, py->minor < 8 ? 4 : 5, NULL);
}

remote_addr fake_long_thread(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
			     uint64_t ident, const char *name)
{
	const struct fake_item items[] = {
		{"_name", 0, fake_python_str(py, name)},
		{"_ident", 0, fake_int(py, ident)},
	};
	struct fake_dict dict;
	remote_addr addr = fake_instance(py, FAKE_OWN_DICT, NULL, 0, &dict);

	put(py, dict.addr + py->build.offsets.dict.keys,
	    fake_long_dict(py, pad, nr_pads, items, 2).keys_addr);
	return addr;
}

remote_addr fake_threading_module(struct fake_python *py, const struct fake_dict *active)
{
	const struct fake_item globals[] = {
		{"_limbo", 0, py->none_addr},
		{"_active_limbo_lock", 0, py->none_addr},
		{"_active", 0, active->addr},
	};

	return fake_instance(py, FAKE_OWN_DICT, globals, 3, NULL);
}

void fake_set_modules(struct fake_python *py, const struct fake_dict *modules)
{
	put(py, py->interp_addr + py->build.offsets.interpreter.modules, modules->addr);
}

struct fake_dict fake_threading(struct fake_python *py, const struct fake_item *threads,
				size_t nr_threads)
{
	struct fake_dict active = fake_dict(py, threads, nr_threads);
	const struct fake_item items[] = {
		{"sys", 0, py->none_addr},
		{"threading", 0, fake_threading_module(py, &active)},
	};
	struct fake_dict modules = fake_dict(py, items, 2);

	fake_set_modules(py, &modules);
	return active;
}
