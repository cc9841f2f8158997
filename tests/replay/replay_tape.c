/* SPDX-License-Identifier: MIT */
/*
 * replay_tape FILE.tape [EXPECTED.txt]: sample the stacks of a tape and print them, or compare
 * them with the expected text; if they differ, print both and fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "tests/support/tape.h"
#include "tests/support/tape_run.h"

#define EXPECTED_MAX_BYTES (1u << 20)

/* The file at path, NUL-terminated; NULL if it cannot be read. */
static char *read_text(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = file ? calloc(1, EXPECTED_MAX_BYTES) : NULL;

	if (text && fread(text, 1, EXPECTED_MAX_BYTES - 1, file) == 0) {
		free(text);
		text = NULL;
	}
	if (file)
		(void)fclose(file);
	return text;
}

static int replay(const char *path, char **ret_text)
{
	size_t size;
	FILE *out = open_memstream(ret_text, &size);
	struct tape tape;
	int err = tape_load(path, &tape);

	if (!err) {
		err = tape_run(&tape.fake.memory, tape.runtime_addr, tape.version_hex, out);
		tape_done(&tape);
	}
	(void)fclose(out);
	return err;
}

int main(int argc, char **argv)
{
	cleanup_free char *text = NULL;
	cleanup_free char *expected = NULL;
	int err;

	if (argc != 2 && argc != 3) {
		(void)fputs("usage: replay_tape FILE.tape [EXPECTED.txt]\n", stderr);
		return EXIT_FAILURE;
	}
	err = replay(argv[1], &text);
	if (err) {
		(void)fprintf(stderr, "replay_tape: %s: %s\n", argv[1], strerror(-err));
		return EXIT_FAILURE;
	}
	if (argc == 2)
		return fputs(text, stdout) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
	expected = read_text(argv[2]);
	if (expected && strcmp(text, expected) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "--- expected\n%s\n--- got\n%s", expected ? expected : "(none)\n",
		      text);
	return EXIT_FAILURE;
}
