/* SPDX-License-Identifier: MIT */
/*
 * Decodes the header and the records of a jitdump file from untrusted bytes.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h of
 * Linux; for deviations from the text, util/genelf.c there, and CPython's
 * Python/perf_jit_trampoline.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

enum {
	JITDUMP_HEADER_BYTES = 40, /* of version 1; a file's header may be longer */
	JITDUMP_PREFIX_BYTES = 16, /* the common start of all records */
	/* Limit on the header, with room for fields of later versions. */
	JITDUMP_MAX_HEADER_BYTES = 4096,
	/* Limit on a name. Those of Java and C++ have a few hundred bytes, sometimes thousands. */
	JITDUMP_MAX_NAME_BYTES = 32768,
	/*
	 * Offsets of what follows the fixed part: the lines of a DEBUG_INFO, the .eh_frame of an
	 * UNWINDING_INFO.
	 */
	JITDUMP_LINES_OFFSET = 32,
	JITDUMP_UNWIND_OFFSET = 40,
	/* A line: address, number, discriminator, and a path of bounded length with its NUL. */
	JITDUMP_MIN_LINE_BYTES = 17,
	JITDUMP_MAX_LINE_BYTES = 16 + 4096,
	/* Enough bytes to decide what a record is: its fixed part and its name. */
	JITDUMP_DECODE_BYTES = 64 + JITDUMP_MAX_NAME_BYTES + 8,
};

/* Limit on a record: the code of a function has kilobytes, its lines sometimes more. */
#define JITDUMP_MAX_RECORD_BYTES (64u << 20)

struct jitdump_header {
	bool is_big_endian;
	uint32_t nr_bytes; /* offset of the first record */
	uint32_t elf_machine;
	uint32_t pid;	    /* of the writer, in its own PID namespace */
	uint64_t timestamp; /* of any clock: CPython writes microseconds since 1970 */
	bool has_ticks;	    /* record times are processor ticks, not nanoseconds */
};

enum jitdump_id {
	JITDUMP_LOAD,
	JITDUMP_MOVE,
	JITDUMP_DEBUG_INFO,
	JITDUMP_CLOSE,
	JITDUMP_UNWINDING_INFO,
	NR_JITDUMP_IDS, /* others are of later versions */
};

/* One record. Fields that its id does not have are 0. */
struct jitdump_record {
	uint32_t id;
	uint32_t nr_bytes; /* of the whole record */
	uint64_t time_ns;
	uint32_t pid;		  /* LOAD, MOVE */
	remote_addr code_addr;	  /* LOAD, DEBUG_INFO; MOVE: the new one */
	remote_addr old_addr;	  /* MOVE */
	uint64_t code_bytes;	  /* LOAD, MOVE */
	uint64_t code_index;	  /* LOAD, MOVE */
	const char *name;	  /* LOAD; borrowed from the bytes, terminated */
	uint32_t name_bytes;	  /* without the NUL */
	uint32_t code_offset;	  /* LOAD: offset of the code in the record */
	uint64_t nr_lines;	  /* DEBUG_INFO */
	uint64_t unwind_bytes;	  /* UNWINDING_INFO: .eh_frame and .eh_frame_hdr together */
	uint64_t eh_header_bytes; /* UNWINDING_INFO: .eh_frame_hdr */
};

/* The number at offset in bytes of a file, in the file's byte order. */
uint32_t jitdump_u32(const uint8_t *bytes, size_t offset, bool is_big_endian);
uint64_t jitdump_u64(const uint8_t *bytes, size_t offset, bool is_big_endian);

/*
 * Decode the header from the first nr bytes of a file. Returns 0; -EAGAIN if it is incomplete;
 * -EBADMSG if it is not a header; -ENOTSUP if it has another version or unknown flags.
 */
int jitdump_header_decode(const uint8_t *bytes, size_t nr, struct jitdump_header *ret_header);

/*
 * Decode the record at bytes, of which nr are available; JITDUMP_DECODE_BYTES suffice. Its
 * numbers are consistent with each other. For an unknown id only the prefix is decoded.
 *
 * Returns 0; -EAGAIN if it takes more bytes to decide; -EBADMSG if it is not a record.
 */
int jitdump_record_decode(const uint8_t *bytes, size_t nr, bool is_big_endian,
			  struct jitdump_record *ret_record);
