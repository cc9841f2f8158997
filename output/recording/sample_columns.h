/* SPDX-License-Identifier: MIT */
/* Reads the columns of the record SAMPLES of a recording: docs/formats.md. Untrusted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording_format.h"
#include "procmem/byte_cursor.h"

/* A column with values for some ticks or samples only. */
struct sparse_column {
	struct byte_cursor *gaps; /* borrowed */
	uint64_t gap;		  /* so many before the next value */
	bool is_over;
};

/* The slot of a thread. */
struct slot_state {
	bool is_used, has_time;
	uint32_t thread;  /* its index among all threads */
	uint64_t time_ns; /* of its last sample, by the ticks' clock */
	uint64_t node;	  /* + 1; 0: none */
	uint64_t resets;  /* so many were before it had that node */
	uint32_t flags;
};

/* The threads of a recording, so far as samples are told by them. All zero there are none. */
struct slot_table {
	struct slot_state *slots; /* owned */
	uint32_t max_slots;
	uint32_t *list; /* owned; the slots of the last tick */
	uint32_t nr_list, max_list;
	uint64_t time_ns; /* of the last tick */
	uint64_t resets;  /* how often all nodes were forgotten */
};

void slot_table_done(struct slot_table *table);

/* A slot, with room for it. NULL if out of memory; slot is below RECORDING_MAX_SLOTS. */
struct slot_state *slot_table_get(struct slot_table *table, uint32_t slot);

/* No thread has a node any more: its slot's is none at its next sample. */
void slot_table_forget_nodes(struct slot_table *table);

/* One record; borrows its payload. */
struct sample_columns {
	struct slot_table *table; /* borrowed */
	struct byte_cursor columns[NR_SAMPLES_COLUMNS];
	struct sparse_column high_offsets, skips, threads, nodes, flags, cpus;
	uint64_t nr_ticks, nr_samples; /* that are left */
	uint64_t interval_ns, unit_ns;
	unsigned int width;
	uint64_t bits; /* of offsets, and how many are left of them */
	unsigned int nr_bits;
	uint64_t grid_ns, time_ns;
	uint32_t next; /* index in the tick's list */
};

/* A sample as it is in the record. */
struct column_sample {
	const struct slot_state *slot;
	uint64_t time_ns; /* by the ticks' clock */
	uint64_t wall_us, cpu_us;
};

/* Begin with a record's payload. False if it is damaged. */
bool sample_columns_begin(struct sample_columns *columns, struct slot_table *table,
			  struct byte_cursor *payload);

/*
 * The next sample, which becomes its slot's last; nodes are below nr_nodes. 0; -ENOENT: there
 * is none, and all columns were read to their ends; -EBADMSG; -ENOMEM.
 */
int sample_columns_next(struct sample_columns *columns, uint64_t nr_nodes,
			struct column_sample *ret_sample);
