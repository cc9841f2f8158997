/* SPDX-License-Identifier: MIT */
/* The mappings of a process that maps memory while it is sampled, and when they are read anew. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/process.h"
#include "procmem/sched/perf_events.h"

/*
 * Stacks that end where nothing was mapped, and memory that is mapped for code that is made, maybe
 * where a module was: what is mapped is read anew, so often at most.
 */
#define RECENT_MAPS_EVERY_NS 1000000000u

/* Once a file with code was mapped, it is read this much behind the last time at the earliest. */
#define RECENT_MAPS_AFTER_MAPPED_NS 10000000u

/*
 * And never before so many times as long as the CPU time that reading them, and what is made of
 * them, took: of a program with 60,000 mappings 20 ms and more, while it can map nothing itself.
 */
#define RECENT_MAPS_REST_PER_READ 20u

/* All zero they were not read. */
struct recent_maps {
	struct maps maps;
	bool are_old;	    /* set where a stack has led to where nothing is mapped by them */
	uint64_t read_ns;   /* when they were read */
	uint64_t nr_mapped; /* so often files had been mapped by then, as perf_events.h counts */
	uint64_t nr_made;   /* and memory for other code */
	uint64_t
		took_ns; /* CPU time that reading them, and what was made of them, took; the user's */
};

/*
 * Read those of a process; what was there before is given to *ret_before, for maps_done(). 0, or an
 * error of maps_read(): all is as it was.
 */
int recent_maps_read(struct recent_maps *recent, const struct process *process, uint64_t now_ns,
		     const struct perf_events_stats *events, struct maps *ret_before);

/* Whether they are to be read now: at once, if they never were. */
bool recent_maps_are_due(const struct recent_maps *recent, uint64_t now_ns,
			 const struct perf_events_stats *events);
