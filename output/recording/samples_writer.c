/* SPDX-License-Identifier: MIT */
#include "output/recording/samples_writer.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/sample.h"

/*
 * If a thread's node changes at least half the time, it is stored for each sample. Equal gaps
 * save more than omitting the few nodes that stay the same.
 */
enum { ACTIVITY_PARTS = 16, ACTIVITY_MANY = ACTIVITY_PARTS * ACTIVITY_PARTS / 2 };

void samples_writer_done(struct samples_writer *writer)
{
	tick_times_done(&writer->times);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		byte_buffer_done(&writer->columns[i]);
	free(writer->slots);
	*writer = (struct samples_writer){0};
}

/*
 * Write the threads of a tick whose samples are complete, if they differ from the previous
 * tick's.
 */
static void end_tick(struct samples_writer *writer)
{
	struct byte_buffer *column = &writer->columns[SAMPLES_THREADS];

	if (!writer->nr_slots)
		return;
	if (writer->threads_differ || writer->nr_slots != writer->nr_slots_before) {
		byte_buffer_uint(column, writer->thread_gap);
		byte_buffer_uint(column, writer->nr_slots);
		for (uint32_t i = 0; i < writer->nr_slots; i++)
			byte_buffer_uint(column, writer->slots[i]);
		writer->thread_gap = 0;
	} else {
		writer->thread_gap++;
	}
	writer->nr_slots_before = writer->nr_slots;
	writer->nr_slots = 0;
	writer->threads_differ = false;
}

void samples_writer_tick(struct samples_writer *writer, uint64_t units)
{
	end_tick(writer);
	if (!tick_times_add(&writer->times, units))
		writer->columns[SAMPLES_OFFSETS].failed = true;
}

/* Add a thread to the tick. Most have the same place as in the previous tick. */
static void add_slot(struct samples_writer *writer, uint32_t slot)
{
	const uint32_t index = writer->nr_slots++;
	uint32_t *slots;

	if (index < writer->nr_slots_before && writer->slots[index] == slot)
		return;
	slots = array_reserve(writer->slots, index + 1, &writer->max_slots, sizeof(*slots));
	if (!slots) {
		writer->nr_slots--;
		writer->columns[SAMPLES_THREADS].failed = true;
		return;
	}
	writer->slots = slots;
	writer->slots[index] = slot;
	writer->threads_differ = true;
}

static void add_node(struct samples_writer *writer, struct sample_state *state, uint64_t node)
{
	state->nr_node_changes -= state->nr_node_changes / ACTIVITY_PARTS;
	if (node == state->node && state->nr_node_changes < ACTIVITY_MANY) {
		writer->node_gap++;
		return;
	}
	if (node != state->node)
		state->nr_node_changes += ACTIVITY_PARTS;
	byte_buffer_uint(&writer->columns[SAMPLES_NODE_GAPS], writer->node_gap);
	byte_buffer_uint(&writer->columns[SAMPLES_NODES], node);
	writer->node_gap = 0;
	state->node = node;
}

/* Add a CPU weight that is less_us below the wall weight. */
static void add_cpu(struct samples_writer *writer, int64_t less_us)
{
	if (!less_us) {
		writer->cpu_gap++;
		return;
	}
	byte_buffer_uint(&writer->columns[SAMPLES_CPU_GAPS], writer->cpu_gap);
	byte_buffer_int(&writer->columns[SAMPLES_CPUS], less_us);
	writer->cpu_gap = 0;
}

void samples_writer_add(struct samples_writer *writer, struct sample_state *state,
			const struct stored_sample *sample)
{
	struct byte_buffer *columns = writer->columns;
	const uint32_t ran = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;

	add_slot(writer, sample->slot);
	writer->nr_samples++;
	add_node(writer, state, sample->node);
	if (sample->flags == state->flags) {
		writer->flag_gap++;
	} else {
		byte_buffer_uint(&columns[SAMPLES_FLAG_GAPS], writer->flag_gap);
		byte_buffer_uint(&columns[SAMPLES_FLAGS], sample->flags);
		writer->flag_gap = 0;
		state->flags = sample->flags;
	}
	if (sample->flags & RECORD_WEIGHED)
		byte_buffer_uint(&columns[SAMPLES_WALLS], sample->wall_us);
	if ((sample->flags & RECORD_WEIGHED) || (sample->flags & ran) == ran)
		add_cpu(writer, (int64_t)(sample->wall_us - sample->cpu_us));
}

int samples_writer_flush(struct samples_writer *writer, struct record_stream *stream)
{
	struct byte_buffer *columns = writer->columns;
	struct byte_buffer *header;
	struct tick_plan plan;
	unsigned int shift = 0;
	int err;

	end_tick(writer);
	if (!writer->times.nr)
		return writer->columns[SAMPLES_OFFSETS].failed ? -ENOMEM : 0;
	err = record_stream_reserve(stream, writer->nr_samples);
	if (err)
		return err;
	header = record_stream_begin(stream);
	byte_buffer_uint(header, writer->times.nr);
	byte_buffer_uint(header, writer->nr_samples);
	plan = tick_times_write(&writer->times, &columns[SAMPLES_OFFSETS],
				&columns[SAMPLES_HIGH_OFFSETS], &columns[SAMPLES_SKIPS]);
	while (UINT64_C(1000) << shift < writer->times.unit_ns)
		shift++;
	byte_buffer_uint(header, plan.start_ns);
	byte_buffer_uint(header, plan.interval_ns);
	byte_buffer_uint(header, shift);
	byte_buffer_uint(header, plan.width);
	writer->nr_samples = 0;
	writer->thread_gap = writer->node_gap = writer->flag_gap = writer->cpu_gap = 0;
	return record_stream_end(stream, RECORD_SAMPLES, columns, NR_SAMPLES_COLUMNS);
}
