/* SPDX-License-Identifier: MIT */
/*
 * shrink_core CORE OUT.zst: zero all memory of a core that no report needs, so that it packs
 * well. Zeroes pieces one by one, large ones first, as long as the reports stay identical.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "procmem/cleanup.h"
#include "tests/fuzz/core_victim.h"
#include "tests/fuzz/damaged_core_report.h"

enum { LARGEST_PIECE = 1 << 20, SMALLEST_PIECE = 64, ZSTD_LEVEL = 19 };

/* Take the output on stdout since the last call, and empty it. free() it; NULL if there is none. */
static char *read_output(void)
{
	const off_t size = ftello(stdout);
	char *text = size > 0 ? calloc(1, (size_t)size + 1) : NULL;

	if (fflush(stdout) == 0 && text && pread(STDOUT_FILENO, text, (size_t)size, 0) != size) {
		free(text);
		text = NULL;
	}
	rewind(stdout);
	return ftruncate(STDOUT_FILENO, 0) == 0 ? text : NULL;
}

/* All reports as one text; free() it. NULL if one fails. */
static char *report(const struct victim *victim)
{
	for (unsigned int kind = 0; kind < NR_CORE_REPORTS; kind++)
		if (damaged_core_report(victim->fd, kind) != EXIT_SUCCESS) {
			free(read_output());
			return NULL;
		}
	return read_output();
}

static bool is_zero(const uint8_t *bytes, uint64_t size_bytes)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size_bytes - 1) == 0;
}

/* Zero the piece if the reports stay as wanted, else try its halves. */
static void shrink(struct victim *victim, uint64_t offset, uint64_t size_bytes, const char *wanted)
{
	cleanup_free char *text = NULL;

	if (is_zero(victim->bytes + offset, size_bytes))
		return;
	memset(victim->bytes + offset, 0, size_bytes);
	text = report(victim);
	if (text && strcmp(text, wanted) == 0)
		return;
	memcpy(victim->bytes + offset, victim->whole + offset, size_bytes);
	if (size_bytes <= SMALLEST_PIECE)
		return;
	shrink(victim, offset, size_bytes / 2, wanted);
	shrink(victim, offset + size_bytes / 2, size_bytes - size_bytes / 2, wanted);
}

static int shrink_segments(struct victim *victim)
{
	cleanup_free char *wanted = report(victim);

	if (!wanted)
		return -EBADMSG;
	for (size_t i = 0; i < victim->nr_segments; i++) {
		const struct victim_segment *segment = &victim->segments[i];

		for (uint64_t at = 0; at < segment->size_bytes; at += LARGEST_PIECE) {
			const uint64_t left = segment->size_bytes - at;

			shrink(victim, segment->file_offset + at,
			       left < LARGEST_PIECE ? left : LARGEST_PIECE, wanted);
		}
	}
	return 0;
}

static int write_packed(const struct victim *victim, const char *path)
{
	const size_t max = ZSTD_compressBound(victim->size_bytes);
	cleanup_free uint8_t *packed = malloc(max);
	FILE *file = fopen(path, "wb");
	bool is_written;
	size_t size;

	if (!file || !packed)
		return -ENOMEM;
	size = ZSTD_compress(packed, max, victim->bytes, victim->size_bytes, ZSTD_LEVEL);
	is_written = !ZSTD_isError(size) && fwrite(packed, 1, size, file) == size;
	return fclose(file) == 0 && is_written ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct victim victim;
	int err;

	if (argc != 3) {
		(void)fputs("usage: shrink_core CORE OUT.zst\n", stderr);
		return EXIT_FAILURE;
	}
	err = victim_open(argv[1], &victim);
	if (!err && dup2(memfd_create("output", MFD_CLOEXEC), STDOUT_FILENO) < 0)
		err = -errno;
	damaged_core_report_quietly();
	if (!err)
		err = shrink_segments(&victim);
	if (!err)
		err = write_packed(&victim, argv[2]);
	victim_close(&victim);
	if (err)
		(void)dprintf(STDERR_FILENO, "shrink_core: %s: %s\n", argv[1], strerror(-err));
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
