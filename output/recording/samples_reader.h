/* SPDX-License-Identifier: MIT */
/* Reads the columns of an untrusted SAMPLES record of a recording (docs/formats.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording_format.h"
#include "procmem/byte_cursor.h"

/* A column that has values only for some ticks or samples. */
struct sparse_column {
	struct byte_cursor *gaps; /* borrowed */
	uint64_t gap;		  /* items before the next value */
	bool is_over;
};

/* A slot: its thread and the previous sample of that. */
struct slot_state {
	bool is_used, has_time;
	uint32_t thread;  /* index among all threads */
	uint64_t time_ns; /* of its previous sample, in the ticks' clock */
	uint64_t node;	  /* + 1; 0: none */
	uint64_t resets;  /* the table's resets when node was set */
	uint32_t flags;
};

/* The slots of a recording, as far as samples depend on them. Empty when all zero. */
struct slot_table {
	struct slot_state *slots; /* owned */
	uint32_t max_slots;
	uint32_t *list; /* owned; the slots of the last tick */
	uint32_t nr_list, max_list;
	uint64_t time_ns; /* of the last tick */
	uint64_t resets;  /* number of RESET records so far */
};

void slot_table_done(struct slot_table *table);

/*
 * Returns a slot, growing the table as needed; NULL if out of memory. slot is below
 * RECORDING_MAX_SLOTS.
 */
struct slot_state *slot_table_get(struct slot_table *table, uint32_t slot);

/* Forget the nodes of all slots, as RESET does. */
void slot_table_forget_nodes(struct slot_table *table);

/* One record, whose payload is borrowed. */
struct samples_reader {
	struct slot_table *table; /* borrowed */
	struct byte_cursor columns[NR_SAMPLES_COLUMNS];
	struct sparse_column high_offsets, skips, threads, nodes, flags, cpus;
	uint64_t nr_ticks, nr_samples; /* still to be read */
	uint64_t interval_ns, unit_ns;
	unsigned int width;
	uint64_t bits; /* buffered bits of offsets, and their number */
	unsigned int nr_bits;
	uint64_t grid_ns, time_ns;
	uint32_t next; /* index in the tick's list */
};

/* A decoded sample. */
struct decoded_sample {
	const struct slot_state *slot;
	uint64_t time_ns; /* in the ticks' clock */
	uint64_t wall_us, cpu_us;
};

/* Begin a record. Returns false if it is damaged. */
bool samples_reader_begin(struct samples_reader *reader, struct slot_table *table,
			  struct byte_cursor *payload);

/*
 * Read the next sample and store it as its slot's previous one. Nodes are below nr_nodes. Returns
 * 0; -ENOENT if there is none and all columns are read to their ends; -EBADMSG; -ENOMEM.
 */
int samples_reader_next(struct samples_reader *reader, uint64_t nr_nodes,
			struct decoded_sample *ret_sample);
