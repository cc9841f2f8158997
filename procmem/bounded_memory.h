/* SPDX-License-Identifier: MIT */
/*
 * A memory that reads through another one up to a limit. It bounds work whose length the target
 * decides, so that a hostile target cannot make it endless. Every piece of a read counts, because
 * an unmapped piece may cost a system call; a long piece counts as several.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* This many bytes count as one more piece. */
enum { BOUNDED_BYTES_PER_PIECE = 1024 };

struct bounded_memory {
	struct remote_memory memory; /* pass this one to readers */
	struct remote_memory *inner; /* where reads go; borrowed for the life of this struct */
	size_t nr_left;		     /* pieces that may still be read */
	const volatile sig_atomic_t *stop; /* borrowed, may be NULL; reads fail once it is set */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; reads fail from then on; UINT64_MAX: no limit */
};

/*
 * Set up a memory that reads through inner, which is borrowed. It returns the errors of inner, and
 * -E2BIG after max_ranges pieces, after deadline_ns, or once *stop is set. The first read refused
 * for any of these reasons makes all later ones fail. Nothing is owned.
 */
void bounded_memory_init(struct bounded_memory *bounded, struct remote_memory *inner,
			 size_t max_ranges, const volatile sig_atomic_t *stop,
			 uint64_t deadline_ns);
