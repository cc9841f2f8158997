/* SPDX-License-Identifier: MIT */
/*
 * The ways in which cores are packed: zstd, xz and lz4 by systemd-coredump, gzip by hand.
 * Each is a library's, fed piece by piece; frames that follow each other are one file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is packed in a way that takes more memory to unpack is refused: of xz -9 it is
 * 65 MiB, of zstd -19 8 MiB. zstd itself wants to be asked for more than 128 MiB.
 */
#define DECODER_MAX_MEMORY_BYTES (128u << 20)

/* One step; it moves what it has used up and filled out of the way. */
struct decoder_step {
	const uint8_t *input;
	size_t input_bytes;
	uint8_t *output;
	size_t output_bytes;
	bool is_complete; /* set: what was packed may end where the input was used up to */
};

struct decoder {
	const char *name;
	uint8_t magic[6]; /* that packed files begin with */
	size_t magic_bytes;

	/* The state of one file, and of none; NULL if out of memory. */
	void *(*create)(void);
	void (*destroy)(void *state);

	/*
	 * Unpack some of the input, as far as there is room. 0 (the input may have nothing for
	 * the room); -EBADMSG (it is damaged), -E2BIG (DECODER_MAX_MEMORY_BYTES), -ENOMEM.
	 */
	int (*step)(void *state, struct decoder_step *step);
};

/* As many bytes tell what packed a file. */
#define DECODER_MAGIC_MAX_BYTES 6

extern const struct decoder zstd_decoder;
extern const struct decoder gzip_decoder;
extern const struct decoder xz_decoder;
extern const struct decoder lz4_decoder;

/* What the file was packed by that begins with bytes; NULL if it is not packed. */
const struct decoder *decoder_find(const uint8_t *bytes, size_t size);
