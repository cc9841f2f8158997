/* SPDX-License-Identifier: MIT */
/*
 * A core file of 64 bits that is damaged on purpose and mended again, in a descriptor that
 * readers take for a file. What is damaged is chosen by what it is: headers and notes of the
 * file, pointers into the process's memory, and whatever else is no zero there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A core that unpacks to more is refused: each one is in memory twice. */
#define VICTIM_MAX_BYTES (64u << 20)

/* Damage done at once. */
#define VICTIM_MAX_CHANGES 64

/* Memory of the process that the file has. */
struct victim_segment {
	uint64_t start_addr;
	uint64_t file_offset;
	uint64_t size_bytes;
};

/* Offsets in the file. */
struct victim_words {
	uint64_t *offsets;
	size_t nr, max;
};

/* Bytes that are not what they were. */
struct victim_change {
	uint64_t file_offset;
	uint64_t size_bytes;
};

struct victim {
	int fd;		/* for readers, who may not write; no position is used */
	uint8_t *bytes; /* the file, mapped */
	uint8_t *whole; /* what it was */
	uint64_t size_bytes;
	uint64_t cut_bytes; /* how long it is now */
	struct victim_segment *segments;
	size_t nr_segments;
	struct victim_words heads;    /* every four bytes of headers and notes */
	struct victim_words pointers; /* words that are an address of a segment */
	struct victim_words others;   /* words that are neither that nor 0 */
	struct victim_change changes[VICTIM_MAX_CHANGES];
	size_t nr_changes;
};

/*
 * Open the core at path, which is a zstd frame or plain. 0; -EBADMSG (no core), -E2BIG,
 * -ENOMEM, or another errno. victim_close() accepts one that failed to open.
 */
int victim_open(const char *path, struct victim *ret_victim);
void victim_close(struct victim *victim);

/*
 * Damage it at 1 to VICTIM_MAX_CHANGES places. *random is the state of the generator, not 0:
 * the same one does the same damage to the same core.
 */
void victim_damage(struct victim *victim, uint64_t *random);

/* Have all as it was. */
void victim_mend(struct victim *victim);

/* The same if it is not known what was done to it: another process has damaged it, and died. */
void victim_renew(struct victim *victim);

/* The next number of the generator. */
uint64_t victim_random(uint64_t *random);
