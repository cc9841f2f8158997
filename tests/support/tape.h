/* SPDX-License-Identifier: MIT */
/*
 * Tapes: the memory that was read from a parked process, kept in a file, so that the sampler can
 * run again where no such interpreter is installed. A recorder passes reads on and keeps every
 * byte that was returned. A loaded tape is fake memory with exactly these bytes. Reads are found
 * by address, not by order, so a tape stays valid when the sampler reads in another way. Memory
 * that was never read is unmapped.
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
 * Pieces are sorted by address and do not overlap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "tests/support/fake_memory.h"

/*
 * Limits of a tape, so that it can be kept in a repository. Larger ones are neither written nor
 * read.
 */
#define TAPE_MAX_BYTES	(16u << 20) /* decompressed */
#define TAPE_MAX_PIECES (1u << 16)

struct tape {
	struct fake_memory fake;
	remote_addr runtime_addr;
	uint32_t version_hex;
};

/*
 * Load the file at path. tape_done() frees it; it accepts NULL. Returns 0; -EBADMSG if it is no
 * tape or damaged; -E2BIG; -ENOMEM; or the errno of a system call.
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
	struct tape_piece *pieces;   /* in the order of the reads */
	size_t nr_pieces, max_pieces;
	int error; /* the recorder's first error; nothing is recorded after it */
};

/*
 * Make memory that passes reads on to inner and keeps what they returned. inner is borrowed until
 * tape_recorder_done(), which frees what was kept and accepts NULL.
 */
void tape_recorder_init(struct tape_recorder *recorder, struct remote_memory *inner);
void tape_recorder_done(struct tape_recorder *recorder);

/*
 * Write everything recorded so far to a new file at path. Returns 0; -E2BIG; -ENOMEM; the
 * recorder's own error; or the errno of a system call.
 */
int tape_recorder_save(struct tape_recorder *recorder, remote_addr runtime_addr,
		       uint32_t version_hex, const char *path);
