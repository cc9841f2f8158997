/* SPDX-License-Identifier: MIT */
/* The samples of one record SAMPLES of a recording, in columns: docs/formats.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/record_stream.h"
#include "output/recording/tick_times.h"
#include "output/text/byte_buffer.h"

/* All zero but times it is empty. */
struct sample_batch {
	struct tick_times times;
	struct byte_buffer columns[NR_SAMPLES_COLUMNS];
	uint32_t nr_samples; /* of all ticks */

	/* The last tick, as long as samples of it come. */
	uint32_t *slots; /* owned; its threads', behind them those of the tick before */
	uint32_t max_slots;
	uint32_t nr_slots, nr_slots_before;
	bool is_other; /* they are not the tick's before */

	/* So many had no value of their own, since the last that had one. */
	uint32_t thread_gap, node_gap, flag_gap, cpu_gap;
};

/* The last sample of a thread, which the next one is told by. All zero there was none. */
struct sample_state {
	bool has_time;
	uint64_t units; /* of its tick */
	uint64_t node;	/* + 1; 0: none */
	uint32_t moves; /* how often it had another node, fading: ACTIVITY_PARTS^2 is always */
	uint32_t flags; /* enum sample_flags, RECORD_WEIGHED */
};

/* A sample as it is stored. */
struct batch_sample {
	uint32_t slot;
	uint64_t node;	/* + 1; 0: none */
	uint32_t flags; /* enum sample_flags; RECORD_WEIGHED: its wall weight is to be told */
	uint64_t wall_us, cpu_us;
};

void sample_batch_done(struct sample_batch *batch);

/* Samples that follow are of a tick, at a time that is not before the last one's. */
void sample_batch_tick(struct sample_batch *batch, uint64_t units);

/* Add a sample of that tick, of a thread whose last one is in state, and becomes this one. */
void sample_batch_add(struct sample_batch *batch, struct sample_state *state,
		      const struct batch_sample *sample);

/* Write the record, if there are samples, and forget them. 0; -ENOMEM; the error of the write. */
int sample_batch_write(struct sample_batch *batch, struct record_stream *stream);
