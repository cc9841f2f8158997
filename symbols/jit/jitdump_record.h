/* SPDX-License-Identifier: MIT */
/*
 * The header and the records of a jitdump file, out of bytes that may be anything.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h of
 * Linux; for what differs from the text, util/genelf.c there, and CPython's
 * Python/perf_jit_trampoline.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

enum {
	JITDUMP_HEADER_BYTES = 40, /* of version 1; a file may have a longer one */
	JITDUMP_PREFIX_BYTES = 16, /* what every record begins with */
	/* A longer header is none: it has room for fields of versions to come. */
	JITDUMP_MAX_HEADER_BYTES = 4096,
	/* Longer names are none. Those of Java and C++ have a few hundred bytes, some thousands. */
	JITDUMP_MAX_NAME_BYTES = 32768,
	/*
	 * What stands behind the fixed part of a DEBUG_INFO: lines; of an UNWINDING_INFO:
	 * .eh_frame.
	 */
	JITDUMP_LINES_OFFSET = 32,
	JITDUMP_UNWIND_OFFSET = 40,
	/* A line: address, number, discriminator, and a path with its NUL, as long as they get. */
	JITDUMP_MIN_LINE_BYTES = 17,
	JITDUMP_MAX_LINE_BYTES = 16 + 4096,
	/* So many bytes are enough to tell what a record is: what is fixed of it, and its name. */
	JITDUMP_JUDGED_BYTES = 64 + JITDUMP_MAX_NAME_BYTES + 8,
};

/* A longer record is none: the code of a function has kilobytes, its lines more at times. */
#define JITDUMP_MAX_RECORD_BYTES (64u << 20)

struct jitdump_header {
	bool is_big_endian;
	uint32_t nr_bytes; /* the first record is behind them */
	uint32_t elf_machine;
	uint32_t pid;	    /* of the writer, in its own namespace */
	uint64_t timestamp; /* of whatever clock: CPython writes microseconds since 1970 */
	bool has_ticks;	    /* the times of its records are the processor's, not nanoseconds */
};

enum jitdump_id {
	JITDUMP_LOAD,
	JITDUMP_MOVE,
	JITDUMP_DEBUG_INFO,
	JITDUMP_CLOSE,
	JITDUMP_UNWINDING_INFO,
	NR_JITDUMP_IDS, /* others are of versions to come */
};

/* One record. What its id has not is 0. */
struct jitdump_record {
	uint32_t id;
	uint32_t nr_bytes; /* of all of it */
	uint64_t time_ns;
	uint32_t pid;		  /* LOAD, MOVE */
	remote_addr code_addr;	  /* LOAD, DEBUG_INFO; MOVE: the new one */
	remote_addr old_addr;	  /* MOVE */
	uint64_t code_bytes;	  /* LOAD, MOVE */
	uint64_t code_index;	  /* LOAD, MOVE */
	const char *name;	  /* LOAD; borrowed from the bytes, terminated */
	uint32_t name_bytes;	  /* without the NUL */
	uint32_t code_offset;	  /* LOAD: of the code in the record */
	uint64_t nr_lines;	  /* DEBUG_INFO */
	uint64_t unwind_bytes;	  /* UNWINDING_INFO: .eh_frame and .eh_frame_hdr together */
	uint64_t eh_header_bytes; /* UNWINDING_INFO: .eh_frame_hdr */
};

/* The number at offset in bytes of a file, in its order. */
uint32_t jitdump_u32(const uint8_t *bytes, size_t offset, bool is_big_endian);
uint64_t jitdump_u64(const uint8_t *bytes, size_t offset, bool is_big_endian);

/*
 * Decode the header out of the first nr bytes of a file. 0; -EAGAIN (it is not all there yet);
 * -EBADMSG (it is none); -ENOTSUP (another version, or flags that are not known).
 */
int jitdump_header_decode(const uint8_t *bytes, size_t nr, struct jitdump_header *ret_header);

/*
 * Decode the record that begins with bytes, of which nr are there, up to JITDUMP_JUDGED_BYTES.
 * Its numbers agree with each other; of an id that is not known there are none but its length.
 * 0; -EAGAIN (it cannot be told without more bytes); -EBADMSG (it is none).
 */
int jitdump_record_decode(const uint8_t *bytes, size_t nr, bool is_big_endian,
			  struct jitdump_record *ret_record);
