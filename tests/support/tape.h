/* SPDX-License-Identifier: MIT */
/*
 * Tapes: what was read of a process that stood still, kept in a file, so that the
 * sampler can be run again where no such interpreter is installed. A recorder
 * passes reads on and keeps every byte that came back; a tape that was loaded is
 * fake memory that holds just those bytes. As reads are found by address, not by
 * order, a tape outlives changes of how the sampler reads, as long as it needs
 * nothing that was never read; that is then unmapped.
 *
 * The file is one zstd frame of, little-endian:
 *
 *	offset  bytes
 *	     0     16  "pysample tape 1\n"
 *	    16      8  address of _PyRuntime
 *	    24      4  PY_VERSION_HEX
 *	    28      4  number of pieces
 *	    32         pieces: address (8), size (8), that many bytes
 *
 * Pieces come by rising address and do not overlap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "tests/support/fake_memory.h"

/* Larger tapes are refused, when written and when read: they belong in no repository. */
#define TAPE_MAX_BYTES	(16u << 20) /* decompressed */
#define TAPE_MAX_PIECES (1u << 16)

struct tape {
	struct fake_memory fake;
	remote_addr runtime_addr;
	uint32_t version_hex;
};

/*
 * Load the file at path. 0; -EBADMSG (it is no tape, or damaged), -E2BIG, -ENOMEM,
 * or the errno of a system call. tape_done() frees it; it accepts NULL.
 */
int tape_load(const char *path, struct tape *ret_tape);

/* The same from the bytes of a file, which are copied. */
int tape_parse(const void *bytes, size_t size_bytes, struct tape *ret_tape);
void tape_done(struct tape *tape);

struct tape_piece {
	remote_addr addr;
	size_t size_bytes;
	uint8_t *bytes; /* owned */
};

struct tape_recorder {
	struct remote_memory memory;
	struct remote_memory *inner; /* borrowed */
	struct tape_piece *pieces;   /* in the order they were read */
	size_t nr_pieces, max_pieces;
	int error; /* the first of its own; it records no more */
};

/*
 * Memory that passes reads on to inner, borrowed until tape_recorder_done(), and keeps
 * what came back; that frees it, and accepts NULL.
 */
void tape_recorder_init(struct tape_recorder *recorder, struct remote_memory *inner);
void tape_recorder_done(struct tape_recorder *recorder);

/*
 * Write what was recorded so far to a new file at path. 0; -E2BIG, -ENOMEM, the
 * recorder's own error, or the errno of a system call.
 */
int tape_recorder_save(struct tape_recorder *recorder, remote_addr runtime_addr,
		       uint32_t version_hex, const char *path);
