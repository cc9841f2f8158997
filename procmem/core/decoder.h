/* SPDX-License-Identifier: MIT */
/*
 * The compression formats of core files: systemd-coredump uses zstd, xz and lz4, people use gzip.
 * Each decoder feeds a library piece by piece. Consecutive frames form one file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Limit on the memory for decompression; a file that needs more is refused. xz -9 needs 65 MiB,
 * zstd -19 8 MiB. zstd itself refuses more than 128 MiB by default.
 */
#define DECODER_MAX_MEMORY_BYTES (128u << 20)

/*
 * One step of a decoder, which moves the pointers and reduces the sizes by what it consumed and
 * wrote.
 */
struct decoder_step {
	const uint8_t *input;
	size_t input_bytes;
	uint8_t *output;
	size_t output_bytes;
	bool is_complete; /* set by the step: the compressed data may end here */
};

struct decoder {
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
	 * no output; -EBADMSG if it is damaged; -E2BIG (DECODER_MAX_MEMORY_BYTES); or -ENOMEM.
	 */
	int (*step)(void *state, struct decoder_step *step);
};

/* This many bytes are enough to recognise a format. */
#define DECODER_MAGIC_MAX_BYTES 6

extern const struct decoder zstd_decoder;
extern const struct decoder gzip_decoder;
extern const struct decoder xz_decoder;
extern const struct decoder lz4_decoder;

/* Returns the decoder for a file that begins with bytes, or NULL if it is not compressed. */
const struct decoder *decoder_find(const uint8_t *bytes, size_t size);
