/* SPDX-License-Identifier: MIT */
/* Lists, tuples, sets and dicts. */
#include <errno.h>

#include "sampler/python/dict_order.h"
#include "sampler/python/set.h"
#include "sampler/python/value_offsets.h"
#include "sampler/python/value_parts.h"

/* So many items are read at a time. */
enum { PIECE_ITEMS = 64 };

/*
 * Begin the container at addr. False where it is in itself or too deep, and then it is
 * written as marker.
 */
static bool enter(struct value_writer *writer, remote_addr addr, const char *marker)
{
	bool is_open = writer->depth == VALUE_MAX_DEPTH;

	for (unsigned int i = 0; i < writer->depth; i++)
		is_open |= writer->open[i] == addr;
	if (is_open)
		value_text_puts(writer->text, marker);
	else
		writer->open[writer->depth++] = addr;
	return !is_open;
}

static void leave(struct value_writer *writer)
{
	writer->depth--;
}

/* What comes before an item, of which so many have been written. */
static void write_comma(struct value_writer *writer, uint64_t nr_written)
{
	if (nr_written)
		value_text_puts(writer->text, ", ");
}

/* Say that the container at addr, of which so many items were written, has more or others. */
static int write_lack(struct value_writer *writer, int err, uint64_t nr_written, remote_addr addr)
{
	if (err != -E2BIG)
		write_comma(writer, nr_written);
	return value_write_error(writer, err, addr);
}

/* nr objects whose addresses lie at items_addr. */
static int write_items(struct value_writer *writer, remote_addr items_addr, uint64_t nr_items)
{
	remote_addr items[PIECE_ITEMS];
	uint64_t nr;

	for (uint64_t i = 0; i < nr_items && !writer->text->is_full; i += nr) {
		const remote_addr addr = items_addr + i * sizeof(*items);
		int err;

		nr = nr_items - i;
		if (nr > PIECE_ITEMS)
			nr = PIECE_ITEMS;
		err = remote_memory_read(writer->memory, addr, items, nr * sizeof(*items));
		if (err)
			return write_lack(writer, err, i, addr);
		for (uint64_t k = 0; !err && k < nr; k++) {
			write_comma(writer, i + k);
			err = value_write_part(writer, items[k]);
		}
		if (err)
			return err;
	}
	return 0;
}

/* Whether so many items can lie there. */
static int check_items(remote_addr items_addr, uint64_t nr_items)
{
	remote_addr end;

	if (nr_items > INT64_MAX / sizeof(remote_addr) ||
	    __builtin_add_overflow(items_addr, nr_items * sizeof(remote_addr), &end))
		return -EBADMSG;
	return 0;
}

int value_write_list(struct value_writer *writer, remote_addr addr)
{
	remote_addr items_addr = 0;
	uint64_t nr_items;
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, &nr_items);

	if (!err)
		err = value_read_field(writer, addr, LIST_ITEMS_AFTER_TYPE, &items_addr);
	if (!err)
		err = check_items(items_addr, nr_items);
	if (err || !enter(writer, addr, "[...]"))
		return err;
	value_text_puts(writer->text, "[");
	err = write_items(writer, items_addr, nr_items);
	value_text_puts(writer->text, "]");
	leave(writer);
	return err;
}

/* Where a tuple's items lie, and how many. */
static int find_tuple_items(struct value_writer *writer, remote_addr addr, remote_addr *ret_addr,
			    uint64_t *ret_nr_items)
{
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, ret_nr_items);

	*ret_addr = addr + writer->build->offsets.object.ob_type + sizeof(remote_addr) +
		    writer->build->traits.tuple_items_after_type;
	return err ? err : check_items(*ret_addr, *ret_nr_items);
}

int value_write_tuple(struct value_writer *writer, remote_addr addr)
{
	remote_addr items_addr;
	uint64_t nr_items;
	int err = find_tuple_items(writer, addr, &items_addr, &nr_items);

	if (err || !enter(writer, addr, "(...)"))
		return err;
	value_text_puts(writer->text, "(");
	err = write_items(writer, items_addr, nr_items);
	value_text_puts(writer->text, nr_items == 1 ? ",)" : ")");
	leave(writer);
	return err;
}

int value_write_arguments(struct value_writer *writer, remote_addr addr)
{
	remote_addr items_addr;
	struct value_type type;
	uint64_t nr_items;
	int err = value_type_of(writer->memory, writer->build, addr, &type);

	if (!err && type.kind != VALUE_TUPLE)
		err = -EBADMSG;
	if (!err)
		err = find_tuple_items(writer, addr, &items_addr, &nr_items);
	if (err || !enter(writer, addr, "(...)"))
		return err;
	value_text_puts(writer->text, "(");
	err = write_items(writer, items_addr, nr_items);
	value_text_puts(writer->text, ")");
	leave(writer);
	return err;
}

/* The members of the set at addr. */
static int write_set_items(struct value_writer *writer, remote_addr addr, const struct set *set)
{
	remote_addr members[SET_PIECE_SLOTS];
	uint64_t nr, nr_written = 0;
	int err;

	for (uint64_t i = 0; i < set->nr_slots && nr_written < set->nr_used; i += nr) {
		nr = set->nr_slots - i;
		if (nr > SET_PIECE_SLOTS)
			nr = SET_PIECE_SLOTS;
		err = set_read(writer->memory, set, i, nr, members);
		if (err)
			return write_lack(writer, err, nr_written, addr);
		for (uint64_t k = 0; !err && k < nr; k++) {
			if (!members[k])
				continue;
			write_comma(writer, nr_written++);
			err = value_write_part(writer, members[k]);
		}
		if (err || writer->text->is_full)
			return err;
	}
	return nr_written == set->nr_used ? 0 : write_lack(writer, -EBADMSG, nr_written, addr);
}

int value_write_set(struct value_writer *writer, remote_addr addr)
{
	struct set set;
	int err = set_open(writer->memory, &writer->build->offsets, addr, &set);

	if (!err && !set.nr_used)
		value_text_puts(writer->text, "set()");
	if (err || !set.nr_used || !enter(writer, addr, "{...}"))
		return err;
	value_text_puts(writer->text, "{");
	err = write_set_items(writer, addr, &set);
	value_text_puts(writer->text, "}");
	leave(writer);
	return err;
}

static int write_dict_item(struct value_writer *writer, const struct dict_entry *entry)
{
	int err = value_write_part(writer, entry->key_addr);

	value_text_puts(writer->text, ": ");
	return err ? err : value_write_part(writer, entry->value_addr);
}

/* The items of the dict at addr, which says that it has nr_used. */
static int write_dict_items(struct value_writer *writer, remote_addr addr, const struct dict *dict,
			    uint64_t nr_used)
{
	struct dict_entry entries[DICT_PIECE_ENTRIES];
	uint64_t nr_written = 0;
	uint32_t nr;
	int err;

	for (uint32_t i = 0; i < dict->nr_entries && !writer->text->is_full; i += nr) {
		nr = dict->nr_entries - i;
		if (nr > DICT_PIECE_ENTRIES)
			nr = DICT_PIECE_ENTRIES;
		err = dict_read_ordered(writer->memory, writer->build, dict, i, nr, entries);
		if (err)
			return write_lack(writer, err, nr_written, addr);
		for (uint32_t k = 0; !err && k < nr; k++) {
			if (!entries[k].key_addr || !entries[k].value_addr)
				continue;
			write_comma(writer, nr_written++);
			err = write_dict_item(writer, &entries[k]);
		}
		if (err)
			return err;
	}
	if (writer->text->is_full || nr_written == nr_used)
		return 0;
	return write_lack(writer, -EBADMSG, nr_written, addr);
}

int value_write_dict(struct value_writer *writer, remote_addr addr)
{
	struct dict dict;
	uint64_t nr_used;
	int err = dict_open(writer->memory, writer->build, addr, &dict);

	if (!err)
		err = value_read_field(writer, addr, DICT_USED_AFTER_TYPE, &nr_used);
	if (err || !enter(writer, addr, "{...}"))
		return err;
	value_text_puts(writer->text, "{");
	err = write_dict_items(writer, addr, &dict, nr_used);
	value_text_puts(writer->text, "}");
	leave(writer);
	return err;
}
