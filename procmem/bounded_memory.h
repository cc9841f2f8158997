/* SPDX-License-Identifier: MIT */
/*
 * A memory that is read through another one, and only so much: for work whose length the
 * target decides, so that a hostile one cannot make it endless. Every piece of a read counts,
 * since each may cost a system call if it is not mapped, and a long one for several.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* So many bytes cost as much as a piece more. */
enum { BOUNDED_BYTES_PER_PIECE = 1024 };

struct bounded_memory {
	struct remote_memory memory;	   /* what is handed on */
	struct remote_memory *inner;	   /* borrowed as long as this is read */
	size_t nr_left;			   /* so many pieces more */
	const volatile sig_atomic_t *stop; /* borrowed, may be NULL: once set, no more */
	uint64_t cut_ns; /* CLOCK_MONOTONIC: nor from then on; UINT64_MAX: whenever */
};

/*
 * A memory with the errors of inner, and -E2BIG for every read after max_pieces, after
 * cut_ns, or while *stop is set. A read that asks for more pieces than are left is the last.
 * Nothing is owned.
 */
void bounded_memory_init(struct bounded_memory *bounded, struct remote_memory *inner,
			 size_t max_ranges, const volatile sig_atomic_t *stop, uint64_t cut_ns);
