/* SPDX-License-Identifier: MIT */
/*
 * Damages a 64-bit core file on purpose and repairs it, in a descriptor that readers use as a
 * file. Damage is chosen by the kind of data: headers and notes of the file, pointers into the
 * process's memory, and other words of that memory that are not 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Limit on an unpacked core, which is in memory twice. Larger ones are refused. */
#define VICTIM_MAX_BYTES (64u << 20)

/* Limit on the changes made by one victim_damage(). */
#define VICTIM_MAX_CHANGES 64

/* A segment: memory of the process that is in the file. */
struct victim_segment {
	uint64_t start_addr;
	uint64_t file_offset;
	uint64_t size_bytes;
};

/* A list of offsets in the file. */
struct victim_words {
	uint64_t *offsets;
	size_t nr, max;
};

/* A range of bytes that differ from the original. */
struct victim_change {
	uint64_t file_offset;
	uint64_t size_bytes;
};

struct victim {
	int fd;		/* for readers, which must not write; its position is not used */
	uint8_t *bytes; /* the file, mapped */
	uint8_t *whole; /* the original bytes */
	uint64_t size_bytes;
	uint64_t cut_bytes; /* the file's current length */
	struct victim_segment *segments;
	size_t nr_segments;
	struct victim_words heads;    /* every four bytes of headers and notes */
	struct victim_words pointers; /* words that are an address in a segment */
	struct victim_words others;   /* other words that are not 0 */
	struct victim_change changes[VICTIM_MAX_CHANGES];
	size_t nr_changes;
};

/*
 * Open the core at path, which is a zstd frame or plain. victim_close() accepts one that failed
 * to open. Returns 0; -EBADMSG if it is no core; -E2BIG; -ENOMEM; or another errno.
 */
int victim_open(const char *path, struct victim *ret_victim);
void victim_close(struct victim *victim);

/*
 * Damage the core at 1 to VICTIM_MAX_CHANGES places. *random is the generator's state, not 0. The
 * same state does the same damage to the same core.
 */
void victim_damage(struct victim *victim, uint64_t *random);

/* Undo all damage. */
void victim_undo(struct victim *victim);

/* Undo damage that is not recorded here: another process did it, and died. */
void victim_restore(struct victim *victim);
