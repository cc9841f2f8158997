/* SPDX-License-Identifier: MIT */
/* Writes the columns of a SAMPLES record of a recording (docs/formats.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/encoding/byte_buffer.h"
#include "output/recording/record_stream.h"
#include "output/recording/tick_times.h"

/* Empty when all but times is zero. */
struct samples_writer {
	struct tick_times times;
	struct byte_buffer columns[NR_SAMPLES_COLUMNS];
	uint32_t nr_samples; /* in all ticks */

	/* The current tick. */
	uint32_t *slots; /* owned; its threads so far, then the rest of the previous tick's */
	uint32_t max_slots;
	uint32_t nr_slots, nr_slots_before;
	bool threads_differ; /* the threads differ from the previous tick's */

	/* Samples or ticks since the last value in each column. */
	uint32_t thread_gap, node_gap, flag_gap, cpu_gap;
};

/*
 * The previous sample of a thread, from which the next one is encoded. All zero if there is none.
 */
struct sample_state {
	bool has_time;
	uint64_t units; /* time of its tick */
	uint64_t node;	/* + 1; 0: none */
	/* Decaying count of node changes; ACTIVITY_PARTS^2 if it changes every time. */
	uint32_t nr_node_changes;
	uint32_t flags; /* enum sample_flags, RECORD_WEIGHED */
};

/* A sample as it is stored. */
struct stored_sample {
	uint32_t slot;
	uint64_t node;	/* + 1; 0: none */
	uint32_t flags; /* enum sample_flags; RECORD_WEIGHED: the wall weight is stored */
	uint64_t wall_us, cpu_us;
};

void samples_writer_done(struct samples_writer *writer);

/* Begin a tick, at a time no earlier than the previous one's. */
void samples_writer_tick(struct samples_writer *writer, uint64_t units);

/*
 * Add a sample of that tick. state is the thread's previous sample; its node, nr_node_changes and
 * flags are updated here, has_time and units by the caller.
 */
void samples_writer_add(struct samples_writer *writer, struct sample_state *state,
			const struct stored_sample *sample);

/*
 * Write the record, if there are samples, and empty the writer. Returns 0; -ENOMEM; the error of
 * the write.
 */
int samples_writer_flush(struct samples_writer *writer, struct record_stream *stream);
