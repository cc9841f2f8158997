/* SPDX-License-Identifier: MIT */
/*
 * What was read of an object and of all that it points to, so that it can be read once
 * more: a memory that hands reads on to another one and keeps what they gave.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* An object is described by this many reads at most, which give so much; seen: 15 reads. */
enum { EXECUTABLE_MAX_READS = 32, EXECUTABLE_MAX_BYTES = 48 << 10 };

/* One read: nr bytes at addr. */
struct executable_read {
	remote_addr addr;
	uint32_t nr_bytes;
};

/* All zero there is nothing in it. */
struct executable_reads {
	struct remote_memory memory;  /* reads from source, and keeps what was read */
	struct remote_memory *source; /* borrowed */
	struct executable_read reads[EXECUTABLE_MAX_READS];
	size_t nr_reads;
	uint8_t *bytes; /* owned; what the reads gave, one behind the other */
	size_t nr_bytes, max_bytes;
};

/*
 * Begin anew: what is read through reads->memory comes from source, which is borrowed. A
 * read that would be one too many gives nothing. Memory that cannot be had is -ENOMEM.
 */
void executable_reads_begin(struct executable_reads *reads, struct remote_memory *source);

/* Free what was kept; nothing is in it then. Accepts NULL. */
void executable_reads_done(struct executable_reads *reads);

/*
 * What has to be read once more, as a piece each with its buffer in bytes, which has room
 * for nr_bytes; ranges has room for nr_reads.
 */
void executable_reads_again(const struct executable_reads *reads, struct remote_range *ranges,
			    void *bytes);

/* Whether what those pieces gave is what was there before. */
bool executable_reads_same(const struct executable_reads *reads, const struct remote_range *ranges);
