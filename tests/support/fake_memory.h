/* SPDX-License-Identifier: MIT */
/*
 * A target's memory made by a test. Pieces are mapped at chosen addresses, exact to the byte;
 * everything else is unmapped. A read that is one byte too long fails here; in a real process it
 * fails only at the end of a page.
 *
 *	struct fake_memory fake;
 *
 *	fake_memory_init(&fake);
 *	fake_memory_map(&fake, 0x1000, 64);
 *	fake_memory_write_u64(&fake, 0x1010, 5);
 *	err = string_read(&fake.memory, &offsets, 0x1000, &text);
 *	fake_memory_done(&fake);
 *
 * Misuse by a test prints a line on stderr and aborts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* A piece of mapped memory, [addr, addr + size_bytes). */
struct fake_segment {
	remote_addr addr;
	size_t size_bytes;
	uint8_t *bytes; /* owned */
};

struct fake_memory {
	struct remote_memory memory;
	struct fake_segment *segments; /* sorted by address, not overlapping */
	size_t nr_segments;

	/* What the code under test did. */
	uint64_t nr_calls; /* read_ranges() calls, each a system call on a live target */
	uint64_t nr_ranges;
	uint64_t nr_bytes; /* read successfully */
	uint64_t nr_checks;
	uint64_t nr_writes;
	remote_addr written_addr; /* of the last write */
	uint64_t written_value;

	/* If not 0, every read fails with this: -ESRCH, -EPERM. */
	int error;

	/*
	 * Called before each range of a read; range_index 0 is the first. May map, write, unmap,
	 * or set error for later calls: a target that changes while it is read. NULL: the target
	 * does not change.
	 */
	void (*before_range)(struct fake_memory *fake, size_t range_index);
	/* The same, called before each write by the code under test. */
	void (*before_write)(struct fake_memory *fake);
	void *context; /* for both callbacks */

	/* Map whole pages, as a process does: the rest of a piece's page reads as zeros. */
	bool whole_pages;

	/* If not 0, checks or writes fail with this. */
	int check_error;
	int write_error;
};

/* Start with nothing mapped. fake_memory_done() frees everything; it accepts NULL. */
void fake_memory_init(struct fake_memory *fake);
void fake_memory_done(struct fake_memory *fake);

/* Enable writes and identity checks by the code under test. */
void fake_memory_allow_writes(struct fake_memory *fake);

/*
 * Map size_bytes of zeros at addr, which must be unmapped. Pieces may touch; a read crosses the
 * seam. Returns the bytes for tests that fill them by hand, valid until they are unmapped.
 */
uint8_t *fake_memory_map(struct fake_memory *fake, remote_addr addr, size_t size_bytes);

/* Map a copy of bytes at addr. */
void fake_memory_map_bytes(struct fake_memory *fake, remote_addr addr, const void *bytes,
			   size_t size_bytes);

/* Unmap the piece that starts at addr. */
void fake_memory_unmap(struct fake_memory *fake, remote_addr addr);

/* Write into mapped memory, native-endian, also across a seam. */
void fake_memory_write(struct fake_memory *fake, remote_addr addr, const void *bytes,
		       size_t size_bytes);
void fake_memory_write_u64(struct fake_memory *fake, remote_addr addr, uint64_t value);
void fake_memory_write_u32(struct fake_memory *fake, remote_addr addr, uint32_t value);
void fake_memory_write_u16(struct fake_memory *fake, remote_addr addr, uint16_t value);
void fake_memory_write_u8(struct fake_memory *fake, remote_addr addr, uint8_t value);
