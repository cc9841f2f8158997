/* SPDX-License-Identifier: MIT */
/*
 * Reads a jitdump file into a map while it grows.
 *
 * The file is untrusted, and often damaged: a forked child also flushes what its parent had
 * buffered, through the descriptor that they share (CPython's does), which leaves fragments of
 * records in the middle, and duplicates. Where there is no record, the next one is searched for
 * byte by byte. Duplicates are recognised by index, time and place. The bytes that the writer has
 * not flushed yet can be supplied separately; once in the file, the file's bytes count.
 *
 * The file is read with pread() and never mapped, since it may become shorter at any time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/jit/jit_map.h"
#include "symbols/jit/jitdump_record.h"

/* Faults of a file. */
enum jitdump_fault {
	JITDUMP_SKIPPED,	  /* bytes that are no record */
	JITDUMP_INCOMPLETE,	  /* the last record is incomplete */
	JITDUMP_DUPLICATE,	  /* a LOAD or MOVE seen before */
	JITDUMP_ORPHAN_LINES,	  /* a DEBUG_INFO without its LOAD after it */
	JITDUMP_ORPHAN_UNWINDING, /* an UNWINDING_INFO without its LOAD after it */
	JITDUMP_UNKNOWN_MOVE,	  /* a MOVE of a code that is not at its old place */
	JITDUMP_UNKNOWN_ID,	  /* a record of an unknown kind */
	JITDUMP_OTHER_PROCESS,	  /* a record of another process than the header's */
	JITDUMP_EMPTY_CODE,	  /* a LOAD without code */
	JITDUMP_REFUSED,	  /* a code that the map refuses: too many codes or names */
	JITDUMP_AFTER_CLOSE,	  /* a record after the CLOSE */
	JITDUMP_RESTARTED,	  /* the file was truncated or rewritten while it was read */
	NR_JITDUMP_FAULTS,
};

/* The place of a fault. */
struct jitdump_place {
	enum jitdump_fault fault;
	uint64_t offset; /* in the file */
	uint64_t nr_bytes;
};

/*
 * Limit on the bytes of a file skipped in search of records before it is given up: a fork leaves
 * kilobytes; a file with a hole may have any number.
 */
#define JITDUMP_MAX_SKIPPED_BYTES (64u << 20)

/*
 * Limit on the refused codes of a file; nothing after them is read. Each refusal takes up to 0.2
 * ms, and a full map takes no further codes anyway.
 */
#define JITDUMP_MAX_REFUSED 1024

/* The first places are kept; all faults are counted. */
#define JITDUMP_MAX_PLACES 64

struct jitdump_stats {
	uint64_t nr_records[NR_JITDUMP_IDS];
	uint64_t nr_faults[NR_JITDUMP_FAULTS];
	uint64_t skipped_bytes;
	struct jitdump_place places[JITDUMP_MAX_PLACES];
	uint32_t nr_places;
};

struct jitdump;

/*
 * Create a reader of the file of fd, a regular one. Takes ownership of fd, also on failure. Codes
 * are marked with file_index. Nothing is read yet. Returns 0 or -ENOMEM. jitdump_close() accepts
 * NULL.
 */
int jitdump_open(int fd, uint32_t file_index, struct jitdump **ret_dump);
void jitdump_close(struct jitdump *dump);

/*
 * Ignore codes whose time is end_ns or later: of a parent's file only what precedes the fork
 * counts.
 */
void jitdump_set_end(struct jitdump *dump, uint64_t end_ns);

/* Limit on a tail; stdio_file.h copies no more. */
#define JITDUMP_MAX_TAIL_BYTES (128u << 10)

/*
 * Set the tail: the bytes that the writer will presumably write at offset next; none if nr is 0.
 * It counts only if the file ends at offset. bytes is borrowed until the next call. Call it
 * before each read.
 */
void jitdump_set_tail(struct jitdump *dump, uint64_t offset, const uint8_t *bytes, size_t nr);

/*
 * Read what is new, including the tail, into map. An incomplete record is left for the next call,
 * unless is_final: nothing more will be written.
 *
 * Returns 0, also if the header is incomplete; -EBADMSG if it is not a jitdump; -ENOTSUP if its
 * version is unknown; -E2BIG (JITDUMP_MAX_SKIPPED_BYTES); -ENOMEM; or another errno.
 */
int jitdump_read(struct jitdump *dump, struct jit_map *map, bool is_final);

/* The offset up to which the file was read: the end of the last complete record in it. */
uint64_t jitdump_offset(const struct jitdump *dump);

/* The header; NULL if not read yet. Borrowed from the reader, like the statistics. */
const struct jitdump_header *jitdump_header(const struct jitdump *dump);
const struct jitdump_stats *jitdump_stats(const struct jitdump *dump);

/*
 * Read at most nr bytes at offset of the file with the tail appended. Returns how many there are.
 */
size_t jitdump_read_bytes(const struct jitdump *dump, uint64_t offset, uint8_t *buffer, size_t nr);

/* The descriptor, borrowed. */
int jitdump_fd(const struct jitdump *dump);
