/* SPDX-License-Identifier: MIT */
/*
 * A jitdump file that is read while it grows, into a map.
 *
 * What is in it is not trusted, and often damaged: a child that was forked writes what its
 * parent had buffered, too, through the descriptor that they share (CPython's does), so that
 * there are pieces of records in the middle, and records twice. Where there is no record the
 * next one is looked for byte by byte; what was read before is known by its index, time and place.
 * What the writer has not written yet may be told beside the file; when it has, that holds, too.
 *
 * The file is read with pread() and never mapped: it may become shorter at any time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/jit/jit_map.h"
#include "symbols/jit/jitdump_record.h"

/* What may be wrong with a file. */
enum jitdump_fault {
	JITDUMP_SKIPPED,	  /* bytes that are no record */
	JITDUMP_CUT,		  /* the last record is not whole */
	JITDUMP_DUPLICATE,	  /* a LOAD or MOVE that was there before */
	JITDUMP_ORPHAN_LINES,	  /* a DEBUG_INFO whose LOAD does not follow */
	JITDUMP_ORPHAN_UNWINDING, /* an UNWINDING_INFO whose LOAD does not follow */
	JITDUMP_UNKNOWN_MOVE,	  /* a MOVE of a code that is not where it says */
	JITDUMP_UNKNOWN_ID,	  /* a record of a kind that is not known */
	JITDUMP_OTHER_PROCESS,	  /* a record of another process than the header's */
	JITDUMP_EMPTY_CODE,	  /* a LOAD without code */
	JITDUMP_REFUSED,	  /* one that the map does not take: too many, or too many names */
	JITDUMP_BEHIND_CLOSE,	  /* a record behind the one that says that there are no more */
	JITDUMP_BEGUN_AGAIN,	  /* the file was cut or written anew while it was read */
	NR_JITDUMP_FAULTS,
};

/* A place where something is wrong. */
struct jitdump_place {
	enum jitdump_fault fault;
	uint64_t offset; /* in the file */
	uint64_t nr_bytes;
};

/*
 * So many bytes that are no record are looked through, of one file, before it is given up: what
 * a fork leaves has kilobytes, and a file with a hole may have any number.
 */
#define JITDUMP_MAX_SKIPPED_BYTES (64u << 20)

/*
 * So many codes that the map refuses are read, of one file, and nothing behind them: to find out
 * takes up to 0.2 ms for each, and a full map takes no others either.
 */
#define JITDUMP_MAX_REFUSED 1024

/* So many places are kept, the first ones; all are counted. */
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
 * Read the file of fd, which is the reader's from then on, also on failure, and has to be a
 * regular one; the codes are marked with file_index. Nothing is read yet. 0 or -ENOMEM.
 * jitdump_close() accepts NULL.
 */
int jitdump_open(int fd, uint32_t file_index, struct jitdump **ret_dump);
void jitdump_close(struct jitdump *dump);

/* Codes whose time is not before that are not taken, as of a file of a process before its fork. */
void jitdump_set_end(struct jitdump *dump, uint64_t end_ns);

/* A tail has no more bytes: as many as are copied of one (stdio_file.h). */
#define JITDUMP_MAX_TAIL_BYTES (128u << 10)

/*
 * What the writer will write at offset next, as far as is known; no bytes: nothing. It counts where
 * the file ends there. Borrowed until another one is set, which is to be done before each read.
 */
void jitdump_set_tail(struct jitdump *dump, uint64_t offset, const uint8_t *bytes, size_t nr);

/*
 * Read what is new, into map, the tail included. A record that is not all there yet is waited for,
 * unless is_final: then nothing will be written any more. 0, also where there is no whole header
 * yet; -EBADMSG (it is no jitdump); -ENOTSUP (of a version that is not known); -E2BIG (the limit of
 * bytes above); -ENOMEM; or another errno.
 */
int jitdump_read(struct jitdump *dump, struct jit_map *map, bool is_final);

/* How far the file was read: behind the last record that is whole in it. */
uint64_t jitdump_offset(const struct jitdump *dump);

/* The header; NULL: not read yet. Borrowed from the reader, as are the counts. */
const struct jitdump_header *jitdump_header(const struct jitdump *dump);
const struct jitdump_stats *jitdump_stats(const struct jitdump *dump);

/* Bytes of the file and of the tail behind it from offset on: how many there are, at most nr. */
size_t jitdump_read_bytes(const struct jitdump *dump, uint64_t offset, uint8_t *buffer, size_t nr);

/* The descriptor, borrowed. */
int jitdump_fd(const struct jitdump *dump);
