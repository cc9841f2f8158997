/* SPDX-License-Identifier: MIT */
/*
 * linetable_cli FORMAT: decode line tables for tests/live/support/linetable_oracle.py. FORMAT is
 * locations (3.11 and newer), ranges (3.10) or lnotab. Reads lines "FIRSTLINE OFFSET HEXTABLE"
 * from stdin, where "=" stands for the previous line's table (a code object has many
 * instructions) and "-" for an empty one. Prints "LINE COLUMN ENDLINE ENDCOLUMN" for each, as in
 * struct linetable_position.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/code/linetable.h"

/* Decode hexadecimal digits in place. Returns the number of bytes, or -1 if text is malformed. */
static ssize_t parse_hex(char *text)
{
	ssize_t size_bytes = 0;
	const char *digits = text;

	for (; isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]);
	     digits += 2) {
		const char byte[] = {digits[0], digits[1], '\0'};

		text[size_bytes++] = (char)strtoul(byte, NULL, 16);
	}
	return *digits == '\n' || *digits == '\0' ? size_bytes : -1;
}

/*
 * Parse a decimal number and the space after it. Returns the rest, or NULL if there is no number.
 */
static char *parse_i32(char *text, int32_t *ret_value)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end != ' ' || value < INT32_MIN || value > INT32_MAX)
		return NULL;
	*ret_value = (int32_t)value;
	return end + 1;
}

static bool parse_format(const char *name, enum linetable_format *ret_format)
{
	static const char *const names[] = {
		[LINETABLE_LOCATIONS] = "locations",
		[LINETABLE_RANGES] = "ranges",
		[LINETABLE_LNOTAB] = "lnotab",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0) {
			*ret_format = (enum linetable_format)i;
			return true;
		}
	return false;
}

static void print_position(const struct linetable *table, int32_t offset)
{
	const struct linetable_position position = linetable_position(table, offset);

	(void)printf("%" PRId32 " %" PRId32 " %" PRId32 " %" PRId32 "\n", position.line,
		     position.column, position.end_line, position.end_column);
}

int main(int argc, char **argv)
{
	enum linetable_format format;
	cleanup_free char *line = NULL;
	cleanup_free uint8_t *table = NULL;
	size_t line_bytes = 0;
	size_t table_bytes = 0;

	if (argc != 2 || !parse_format(argv[1], &format))
		return EXIT_FAILURE;
	while (getline(&line, &line_bytes, stdin) > 0) {
		int32_t first_line;
		int32_t offset;
		char *hex = parse_i32(line, &first_line);

		if (hex)
			hex = parse_i32(hex, &offset);
		if (!hex)
			return EXIT_FAILURE;
		if (*hex == '-') {
			table_bytes = 0;
		} else if (*hex != '=') {
			ssize_t size_bytes = parse_hex(hex);

			if (size_bytes < 0)
				return EXIT_FAILURE;
			/*
			 * The buffer has exactly the table's size, so that a sanitizer sees reads
			 * beyond it.
			 */
			free(table);
			table = malloc((size_t)size_bytes + !size_bytes);
			if (!table)
				return EXIT_FAILURE;
			memcpy(table, hex, (size_t)size_bytes);
			table_bytes = (size_t)size_bytes;
		}
		print_position(&(struct linetable){format, table, table_bytes, first_line}, offset);
	}
	return ferror(stdin) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
