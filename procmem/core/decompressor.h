/* SPDX-License-Identifier: MIT */
/*
 * The compression formats of core files: systemd-coredump uses zstd, xz and lz4, people use gzip.
 * Each decompressor feeds a library piece by piece. Consecutive frames form one file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Limit on the memory for decompression; a file that needs more is refused. xz -9 needs 65 MiB,
 * zstd -19 8 MiB. zstd itself refuses more than 128 MiB by default.
 */
#define DECOMPRESSOR_MAX_MEMORY_BYTES (128u << 20)

/*
 * One step of a decompressor, which moves the pointers and reduces the sizes by what it consumed
 * and wrote.
 */
struct decompressor_step {
	const uint8_t *input;
	size_t input_bytes;
	uint8_t *output;
	size_t output_bytes;
	bool is_complete; /* set by the step: the compressed data may end here */
};

/* One compression format. */
struct decompressor {
	const char *name;
	uint8_t magic[6]; /* the first bytes of a compressed file */
	size_t magic_bytes;

	/*
	 * Create and destroy the state for one file. create() returns NULL if out of memory;
	 * destroy() accepts NULL.
	 */
	void *(*create)(void);
	void (*destroy)(void *state);

	/*
	 * Decompress some of the input, as far as there is room. Returns 0, even if the input gave
	 * no output; -EBADMSG if it is damaged; -E2BIG (DECOMPRESSOR_MAX_MEMORY_BYTES); or -ENOMEM.
	 */
	int (*step)(void *state, struct decompressor_step *step);
};

/* This many bytes are enough to recognise a format. */
#define DECOMPRESSOR_MAGIC_MAX_BYTES 6

extern const struct decompressor zstd_decompressor;
extern const struct decompressor gzip_decompressor;
extern const struct decompressor xz_decompressor;
extern const struct decompressor lz4_decompressor;

/* Returns the decompressor for a file that begins with bytes, or NULL if it is not compressed. */
const struct decompressor *decompressor_find(const uint8_t *bytes, size_t size);
