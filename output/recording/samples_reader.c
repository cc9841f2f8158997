/* SPDX-License-Identifier: MIT */
#include "output/recording/samples_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "sampler/sample.h"

enum { US_NS = 1000 };

void slot_table_done(struct slot_table *table)
{
	free(table->slots);
	free(table->list);
	*table = (struct slot_table){0};
}

struct slot_state *slot_table_get(struct slot_table *table, uint32_t slot)
{
	uint32_t max = table->max_slots;
	struct slot_state *slots =
		array_reserve(table->slots, slot + 1, &table->max_slots, sizeof(*slots));

	if (!slots)
		return NULL;
	memset(slots + max, 0, (table->max_slots - max) * sizeof(*slots));
	table->slots = slots;
	return &slots[slot];
}

void slot_table_forget_nodes(struct slot_table *table)
{
	table->resets++;
}

/* Read the gap before the next value, if there is one. */
static void sparse_load(struct sparse_column *column)
{
	column->is_over = byte_cursor_is_at_end(column->gaps);
	column->gap = column->is_over ? 0 : byte_cursor_uint(column->gaps);
}

/*
 * Advance by a tick or sample and return whether it has a value. Call sparse_load() after reading
 * it.
 */
static bool sparse_has_next(struct sparse_column *column)
{
	if (column->is_over)
		return false;
	if (!column->gap)
		return true;
	column->gap--;
	return false;
}

static void sparse_begin(struct sparse_column *column, struct byte_cursor *gaps)
{
	column->gaps = gaps;
	sparse_load(column);
}

static bool read_header(struct samples_reader *reader, struct byte_cursor *payload)
{
	uint64_t shift, width;

	reader->nr_ticks = byte_cursor_uint(payload);
	reader->nr_samples = byte_cursor_uint(payload);
	reader->grid_ns = reader->time_ns = byte_cursor_uint(payload);
	reader->interval_ns = byte_cursor_uint(payload);
	shift = byte_cursor_fixed(payload, 1);
	width = byte_cursor_fixed(payload, 1);
	if (payload->is_bad || shift > SAMPLES_MAX_SHIFT || width > SAMPLES_MAX_WIDTH)
		return false;
	reader->unit_ns = (uint64_t)US_NS << shift;
	reader->width = (unsigned int)width;
	return true;
}

bool samples_reader_begin(struct samples_reader *reader, struct slot_table *table,
			  struct byte_cursor *payload)
{
	uint64_t bytes[NR_SAMPLES_COLUMNS];

	*reader = (struct samples_reader){.table = table};
	if (!read_header(reader, payload))
		return false;
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		bytes[i] = byte_cursor_uint(payload);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		reader->columns[i] = byte_cursor_split(payload, bytes[i]);
	sparse_begin(&reader->high_offsets, &reader->columns[SAMPLES_HIGH_OFFSETS]);
	sparse_begin(&reader->skips, &reader->columns[SAMPLES_SKIPS]);
	sparse_begin(&reader->threads, &reader->columns[SAMPLES_THREADS]);
	sparse_begin(&reader->nodes, &reader->columns[SAMPLES_NODE_GAPS]);
	sparse_begin(&reader->flags, &reader->columns[SAMPLES_FLAG_GAPS]);
	sparse_begin(&reader->cpus, &reader->columns[SAMPLES_CPU_GAPS]);
	reader->next = table->nr_list;
	return !payload->is_bad;
}

/* Read the next tick's offset in units. Returns false if it exceeds 64 bits. */
static bool read_offset(struct samples_reader *reader, uint64_t *ret_offset)
{
	struct byte_cursor *packed = &reader->columns[SAMPLES_OFFSETS];
	struct byte_cursor *highs = &reader->columns[SAMPLES_HIGH_OFFSETS];
	const uint64_t mask = (UINT64_C(1) << reader->width) - 1;
	uint64_t high = 0;

	for (; reader->nr_bits < reader->width; reader->nr_bits += 8)
		reader->bits |= byte_cursor_fixed(packed, 1) << reader->nr_bits;
	if (sparse_has_next(&reader->high_offsets)) {
		high = byte_cursor_uint(highs);
		sparse_load(&reader->high_offsets);
	}
	*ret_offset = high << reader->width | (reader->bits & mask);
	reader->bits >>= reader->width;
	reader->nr_bits -= reader->width;
	return high <= UINT64_MAX >> reader->width;
}

/* Advance the grid by a tick. */
static bool advance_grid(struct samples_reader *reader)
{
	struct byte_cursor *skips = &reader->columns[SAMPLES_SKIPS];
	int64_t nr = 1, by_ns;

	if (sparse_has_next(&reader->skips)) {
		if (__builtin_add_overflow(byte_cursor_int(skips), 1, &nr))
			return false;
		sparse_load(&reader->skips);
	}
	if (!reader->interval_ns) {
		reader->grid_ns = reader->time_ns;
		return nr == 1;
	}
	return !__builtin_mul_overflow(nr, reader->interval_ns, &by_ns) &&
	       !__builtin_add_overflow(reader->grid_ns, by_ns, &reader->grid_ns);
}

static bool read_time(struct samples_reader *reader)
{
	uint64_t units, offset;

	if (!advance_grid(reader) || !read_offset(reader, &offset))
		return false;
	units = reader->grid_ns / reader->unit_ns;
	if (__builtin_add_overflow(units, offset, &units) ||
	    __builtin_mul_overflow(units, reader->unit_ns, &reader->time_ns) ||
	    reader->time_ns < reader->table->time_ns)
		return false;
	reader->table->time_ns = reader->time_ns;
	return true;
}

/* Read the next tick's threads, if they differ from the previous tick's. */
static int read_threads(struct samples_reader *reader)
{
	struct byte_cursor *threads = &reader->columns[SAMPLES_THREADS];
	struct slot_table *table = reader->table;
	uint64_t nr;
	uint32_t *list;

	if (!sparse_has_next(&reader->threads))
		return 0;
	nr = byte_cursor_uint(threads);
	if (!nr || nr > reader->nr_samples || nr > (uint64_t)(threads->end - threads->at))
		return -EBADMSG;
	list = array_reserve(table->list, (uint32_t)nr, &table->max_list, sizeof(*list));
	if (!list)
		return -ENOMEM;
	table->list = list;
	for (table->nr_list = 0; table->nr_list < nr; table->nr_list++) {
		uint64_t slot = byte_cursor_uint(threads);

		if (slot >= table->max_slots || !table->slots[slot].is_used)
			return -EBADMSG;
		list[table->nr_list] = (uint32_t)slot;
	}
	sparse_load(&reader->threads);
	return 0;
}

static int read_tick(struct samples_reader *reader)
{
	int err;

	if (!reader->nr_ticks)
		return -EBADMSG;
	reader->nr_ticks--;
	if (!read_time(reader))
		return -EBADMSG;
	err = read_threads(reader);
	if (err)
		return err;
	reader->next = 0;
	return reader->table->nr_list ? 0 : -EBADMSG;
}

/*
 * Read the next sample's node, if it differs from its thread's previous one. Returns false if it
 * is out of range.
 */
static bool read_node(struct samples_reader *reader, struct slot_state *slot, uint64_t nr_nodes)
{
	if (slot->resets != reader->table->resets)
		slot->node = 0;
	slot->resets = reader->table->resets;
	if (sparse_has_next(&reader->nodes)) {
		slot->node = byte_cursor_uint(&reader->columns[SAMPLES_NODES]);
		sparse_load(&reader->nodes);
	}
	return slot->node <= nr_nodes;
}

static bool read_flags(struct samples_reader *reader, struct slot_state *slot)
{
	if (sparse_has_next(&reader->flags)) {
		uint64_t flags = byte_cursor_uint(&reader->columns[SAMPLES_FLAGS]);

		if (flags & ~(uint64_t)(RECORD_SAMPLE_FLAGS | RECORD_WEIGHED))
			return false;
		slot->flags = (uint32_t)flags;
		sparse_load(&reader->flags);
	}
	return true;
}

/* Returns by how much a sample's CPU weight is less than its wall weight. */
static uint64_t read_cpu_less_us(struct samples_reader *reader)
{
	uint64_t less_us;

	if (!sparse_has_next(&reader->cpus))
		return 0;
	less_us = (uint64_t)byte_cursor_int(&reader->columns[SAMPLES_CPUS]);
	sparse_load(&reader->cpus);
	return less_us;
}

/* Read or derive a sample's weights. Returns false if they are out of range. */
static bool read_weights(struct samples_reader *reader, struct decoded_sample *sample)
{
	const struct slot_state *slot = sample->slot;
	const uint32_t ran = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;
	const bool is_weighed = slot->flags & RECORD_WEIGHED;

	sample->wall_us = 0;
	sample->cpu_us = 0;
	if (is_weighed)
		sample->wall_us = byte_cursor_uint(&reader->columns[SAMPLES_WALLS]);
	else if (slot->has_time)
		sample->wall_us = (reader->time_ns - slot->time_ns) / US_NS;
	if (is_weighed || (slot->flags & ran) == ran)
		sample->cpu_us = sample->wall_us - read_cpu_less_us(reader);
	return sample->wall_us <= UINT64_MAX / US_NS && sample->cpu_us <= UINT64_MAX / US_NS;
}

/* Whether every column is exactly used up. */
static bool is_at_end(const struct samples_reader *reader)
{
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		if (reader->columns[i].is_bad || !byte_cursor_is_at_end(&reader->columns[i]))
			return false;
	return !reader->nr_ticks && reader->next == reader->table->nr_list &&
	       reader->high_offsets.is_over && reader->skips.is_over && reader->threads.is_over &&
	       reader->nodes.is_over && reader->flags.is_over && reader->cpus.is_over;
}

int samples_reader_next(struct samples_reader *reader, uint64_t nr_nodes,
			struct decoded_sample *ret_sample)
{
	struct slot_table *table = reader->table;
	struct slot_state *slot;
	int err;

	if (!reader->nr_samples)
		return is_at_end(reader) ? -ENOENT : -EBADMSG;
	if (reader->next == table->nr_list) {
		err = read_tick(reader);
		if (err)
			return err;
	}
	slot = &table->slots[table->list[reader->next++]];
	reader->nr_samples--;
	ret_sample->slot = slot;
	ret_sample->time_ns = reader->time_ns;
	if (!read_node(reader, slot, nr_nodes) || !read_flags(reader, slot) ||
	    !read_weights(reader, ret_sample))
		return -EBADMSG;
	slot->has_time = true;
	slot->time_ns = reader->time_ns;
	return 0;
}
