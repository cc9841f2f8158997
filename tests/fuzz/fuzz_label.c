/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the names of a frame and of a thread. The label must be UTF-8 without control
 * characters, and one field of a collapsed stack. The input is "qualname\0path\0thread name".
 */
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/utf8.h"
#include "procmem/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_harmless(const struct text *text, enum label_style style)
{
	uint32_t code_point;
	size_t length;

	require(!text->error);
	for (size_t i = 0; i < text->length; i += length) {
		length = utf8_decode(text->bytes + i, text->length - i, &code_point);
		require(length > 0 && !utf8_is_control(code_point));
		require(code_point != ';' || style == LABEL_DISPLAY);
	}
}

/* Whether flamegraph.pl would match a second count at the end: a space, then [0-9]+(\.[0-9]*)? */
static bool ends_in_count(const char *label)
{
	const char *space = strrchr(label, ' ');
	const char *end;

	if (!space || space[1] < '0' || space[1] > '9')
		return false;
	end = space + 1 + strspn(space + 1, "0123456789");
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	return !*end;
}

static void check_labels(const char *qualname, const char *path, const char *name,
			 enum label_style style)
{
	__attribute__((cleanup(text_done))) struct text text = {0};
	struct profile_thread thread = {.tid = 1};

	label_append_function(&text, qualname, path, 5, style);
	check_harmless(&text, style);
	require(text.length > 0);
	label_end_leaf(&text);
	require(!ends_in_count(text_string(&text)));

	text_clear(&text);
	memcpy(thread.name, name, strnlen(name, sizeof(thread.name)));
	label_append_thread(&text, &thread, style);
	check_harmless(&text, style);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Three more bytes than the input, so that every name is terminated. */
	cleanup_free char *names = calloc(size + 3, 1);
	const char *path;
	const char *name;

	if (!names)
		return 0;
	if (size)
		memcpy(names, data, size);
	path = names + strlen(names) + 1;
	name = path + strlen(path) + 1;
	check_labels(names, path, name, LABEL_DISPLAY);
	check_labels(names, path, name, LABEL_COLLAPSED);
	return 0;
}
