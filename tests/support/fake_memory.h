/* SPDX-License-Identifier: MIT */
/*
 * A target's memory made by a test: mapped pieces at chosen addresses, everything
 * else unmapped, to the byte. A read that goes one byte too far fails here, where
 * in a real process it would only fail at the end of a page.
 *
 *	struct fake_memory fake;
 *
 *	fake_memory_init(&fake);
 *	fake_memory_map(&fake, 0x1000, 64);
 *	fake_memory_write_u64(&fake, 0x1010, 5);
 *	err = string_read(&fake.memory, &offsets, 0x1000, &text);
 *	fake_memory_done(&fake);
 *
 * A test that uses it wrongly is aborted with a line on stderr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* Piece of mapped memory; [addr, addr + size_bytes). */
struct fake_segment {
	remote_addr addr;
	size_t size_bytes;
	uint8_t *bytes; /* owned */
};

struct fake_memory {
	struct remote_memory memory;
	struct fake_segment *segments; /* by rising address; they do not overlap */
	size_t nr_segments;

	/* What the code under test did. */
	uint64_t nr_calls; /* read_ranges() calls: system calls, were the target live */
	uint64_t nr_ranges;
	uint64_t nr_bytes; /* read successfully */
	uint64_t nr_checks;
	uint64_t nr_writes;
	remote_addr written_addr; /* by the last one */
	uint64_t written_value;

	/* If not 0, every read fails with it: -ESRCH, -EPERM. */
	int error;

	/*
	 * Called before each range of a read (range_index 0 is before the first),
	 * may map, write and unmap, or set error for the calls to come: a target
	 * that changes while it is read. NULL: it stands still.
	 */
	void (*before_range)(struct fake_memory *fake, size_t range_index);
	/* Called before a write by the code under test, likewise. */
	void (*before_write)(struct fake_memory *fake);
	void *context; /* for both */

	/*
	 * Pages are mapped whole, as those of a process are: around the pieces in them there are
	 * zeros.
	 */
	bool whole_pages;

	/* If not 0, checks and writes fail with them. */
	int check_error;
	int write_error;
};

/* Nothing is mapped. fake_memory_done() frees all that was; it accepts NULL. */
void fake_memory_init(struct fake_memory *fake);
void fake_memory_done(struct fake_memory *fake);

/* Let the code under test write, and ask whose memory it is. */
void fake_memory_allow_writes(struct fake_memory *fake);

/*
 * Map size_bytes of zeros at addr, where nothing may be mapped yet. Pieces may
 * touch: a read goes over the seam. Returns the bytes, valid until they are
 * unmapped, for tests that fill them by hand.
 */
uint8_t *fake_memory_map(struct fake_memory *fake, remote_addr addr, size_t size_bytes);

/* Map a copy of bytes at addr. */
void fake_memory_map_bytes(struct fake_memory *fake, remote_addr addr, const void *bytes,
			   size_t size_bytes);

/* Unmap the piece that starts at addr. */
void fake_memory_unmap(struct fake_memory *fake, remote_addr addr);

/* Write into what is mapped (also over a seam), native-endian. */
void fake_memory_write(struct fake_memory *fake, remote_addr addr, const void *bytes,
		       size_t size_bytes);
void fake_memory_write_u64(struct fake_memory *fake, remote_addr addr, uint64_t value);
void fake_memory_write_u32(struct fake_memory *fake, remote_addr addr, uint32_t value);
void fake_memory_write_u16(struct fake_memory *fake, remote_addr addr, uint16_t value);
void fake_memory_write_u8(struct fake_memory *fake, remote_addr addr, uint8_t value);
