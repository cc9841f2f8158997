/* SPDX-License-Identifier: MIT */
/* The mappings of a process that maps memory while it is sampled, and when to read them again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/process.h"
#include "procmem/sched/perf_events.h"

/*
 * Minimum time between two reads of the mappings, because of stacks that end in unmapped memory,
 * and of new mappings for generated code, which may replace a module.
 */
#define RECENT_MAPS_EVERY_NS 1000000000u

/* Minimum time between two reads after a file with code was mapped. */
#define RECENT_MAPS_AFTER_MAPPED_NS 10000000u

/*
 * Minimum time between two reads, as a multiple of the CPU time that reading and processing the
 * mappings took. For a program with 60,000 mappings that is 20 ms and more, in which the program
 * can map nothing itself.
 */
#define RECENT_MAPS_REST_PER_READ 20u

/* All zero: not read yet. */
struct recent_maps {
	struct maps maps;
	bool are_stale;	    /* set if a stack has led to unmapped memory */
	uint64_t read_ns;   /* when they were read */
	uint64_t nr_mapped; /* number of file mappings at that time, as counted by perf_events.h */
	uint64_t nr_anonymous; /* number of mappings for other code */
	uint64_t cost_ns;      /* CPU time of reading and processing them; set by the caller */
};

/*
 * Read the mappings of a process. The previous ones go to *ret_before, for maps_done(). Returns
 * 0, or an error of maps_read() with everything unchanged.
 */
int recent_maps_read(struct recent_maps *recent, const struct process *process, uint64_t now_ns,
		     const struct perf_events_stats *events, struct maps *ret_before);

/* Whether they have to be read now; true if they were never read. */
bool recent_maps_are_due(const struct recent_maps *recent, uint64_t now_ns,
			 const struct perf_events_stats *events);
