/* SPDX-License-Identifier: MIT */
#include "output/recording/sample_batch.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/sample.h"

/*
 * If a thread's node changes at least half the time, it is stored for each sample. Equal gaps
 * save more than omitting the few nodes that stay the same.
 */
enum { ACTIVITY_PARTS = 16, ACTIVITY_MANY = ACTIVITY_PARTS * ACTIVITY_PARTS / 2 };

void sample_batch_done(struct sample_batch *batch)
{
	tick_times_done(&batch->times);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		byte_buffer_done(&batch->columns[i]);
	free(batch->slots);
	*batch = (struct sample_batch){0};
}

/*
 * Write the threads of a tick whose samples are complete, if they differ from the previous
 * tick's.
 */
static void end_tick(struct sample_batch *batch)
{
	struct byte_buffer *column = &batch->columns[SAMPLES_THREADS];

	if (!batch->nr_slots)
		return;
	if (batch->threads_differ || batch->nr_slots != batch->nr_slots_before) {
		byte_buffer_uint(column, batch->thread_gap);
		byte_buffer_uint(column, batch->nr_slots);
		for (uint32_t i = 0; i < batch->nr_slots; i++)
			byte_buffer_uint(column, batch->slots[i]);
		batch->thread_gap = 0;
	} else {
		batch->thread_gap++;
	}
	batch->nr_slots_before = batch->nr_slots;
	batch->nr_slots = 0;
	batch->threads_differ = false;
}

void sample_batch_tick(struct sample_batch *batch, uint64_t units)
{
	end_tick(batch);
	if (!tick_times_add(&batch->times, units))
		batch->columns[SAMPLES_OFFSETS].failed = true;
}

/* Add a thread to the tick. Most have the same place as in the previous tick. */
static void add_slot(struct sample_batch *batch, uint32_t slot)
{
	const uint32_t index = batch->nr_slots++;
	uint32_t *slots;

	if (index < batch->nr_slots_before && batch->slots[index] == slot)
		return;
	slots = array_reserve(batch->slots, index + 1, &batch->max_slots, sizeof(*slots));
	if (!slots) {
		batch->nr_slots--;
		batch->columns[SAMPLES_THREADS].failed = true;
		return;
	}
	batch->slots = slots;
	batch->slots[index] = slot;
	batch->threads_differ = true;
}

static void add_node(struct sample_batch *batch, struct sample_state *state, uint64_t node)
{
	state->nr_node_changes -= state->nr_node_changes / ACTIVITY_PARTS;
	if (node == state->node && state->nr_node_changes < ACTIVITY_MANY) {
		batch->node_gap++;
		return;
	}
	if (node != state->node)
		state->nr_node_changes += ACTIVITY_PARTS;
	byte_buffer_uint(&batch->columns[SAMPLES_NODE_GAPS], batch->node_gap);
	byte_buffer_uint(&batch->columns[SAMPLES_NODES], node);
	batch->node_gap = 0;
	state->node = node;
}

/* Add a CPU weight that is less_us below the wall weight. */
static void add_cpu(struct sample_batch *batch, int64_t less_us)
{
	if (!less_us) {
		batch->cpu_gap++;
		return;
	}
	byte_buffer_uint(&batch->columns[SAMPLES_CPU_GAPS], batch->cpu_gap);
	byte_buffer_int(&batch->columns[SAMPLES_CPUS], less_us);
	batch->cpu_gap = 0;
}

void sample_batch_add(struct sample_batch *batch, struct sample_state *state,
		      const struct batch_sample *sample)
{
	struct byte_buffer *columns = batch->columns;
	const uint32_t ran = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;

	add_slot(batch, sample->slot);
	batch->nr_samples++;
	add_node(batch, state, sample->node);
	if (sample->flags == state->flags) {
		batch->flag_gap++;
	} else {
		byte_buffer_uint(&columns[SAMPLES_FLAG_GAPS], batch->flag_gap);
		byte_buffer_uint(&columns[SAMPLES_FLAGS], sample->flags);
		batch->flag_gap = 0;
		state->flags = sample->flags;
	}
	if (sample->flags & RECORD_WEIGHED)
		byte_buffer_uint(&columns[SAMPLES_WALLS], sample->wall_us);
	if ((sample->flags & RECORD_WEIGHED) || (sample->flags & ran) == ran)
		add_cpu(batch, (int64_t)(sample->wall_us - sample->cpu_us));
}

int sample_batch_write(struct sample_batch *batch, struct record_stream *stream)
{
	struct byte_buffer *columns = batch->columns;
	struct byte_buffer *header;
	struct tick_plan plan;
	unsigned int shift = 0;
	int err;

	end_tick(batch);
	if (!batch->times.nr)
		return batch->columns[SAMPLES_OFFSETS].failed ? -ENOMEM : 0;
	err = record_stream_reserve(stream, batch->nr_samples);
	if (err)
		return err;
	header = record_stream_begin(stream);
	byte_buffer_uint(header, batch->times.nr);
	byte_buffer_uint(header, batch->nr_samples);
	plan = tick_times_write(&batch->times, &columns[SAMPLES_OFFSETS],
				&columns[SAMPLES_HIGH_OFFSETS], &columns[SAMPLES_SKIPS]);
	while (UINT64_C(1000) << shift < batch->times.unit_ns)
		shift++;
	byte_buffer_uint(header, plan.start_ns);
	byte_buffer_uint(header, plan.interval_ns);
	byte_buffer_uint(header, shift);
	byte_buffer_uint(header, plan.width);
	batch->nr_samples = 0;
	batch->thread_gap = batch->node_gap = batch->flag_gap = batch->cpu_gap = 0;
	return record_stream_end(stream, RECORD_SAMPLES, columns, NR_SAMPLES_COLUMNS);
}
