/* SPDX-License-Identifier: MIT */
#include "sampler/python/version_text.h"

#include <string.h>

/* The unread rest of a text. */
struct reader {
	const char *next;
	const char *end;
};

static bool take(struct reader *reader, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(reader->end - reader->next) < length ||
	    memcmp(reader->next, word, length) != 0)
		return false;
	reader->next += length;
	return true;
}

/* A number below 256, which is what PY_VERSION_HEX has room for. */
static bool take_number(struct reader *reader, uint32_t *ret_number)
{
	const char *start = reader->next;
	uint32_t number = 0;

	for (; reader->next < reader->end && *reader->next >= '0' && *reader->next <= '9';
	     reader->next++) {
		number = number * 10 + (uint32_t)(*reader->next - '0');
		if (number > UINT8_MAX)
			return false;
	}
	*ret_number = number;
	return reader->next > start;
}

/* "", "a1", "b2" or "rc3": the lowest byte of PY_VERSION_HEX. */
static bool take_level(struct reader *reader, uint32_t *ret_level)
{
	static const struct {
		const char *mark;
		uint32_t level;
	} levels[] = {{"a", 0xa0}, {"b", 0xb0}, {"rc", 0xc0}};
	uint32_t serial;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (take(reader, levels[i].mark)) {
			if (!take_number(reader, &serial) || serial > 0xf)
				return false;
			*ret_level = levels[i].level | serial;
			return true;
		}
	*ret_level = 0xf0;
	return true;
}

static bool take_version(struct reader *reader, uint32_t *ret_version_hex)
{
	uint32_t major, minor, micro, level;

	if (!take_number(reader, &major) || !take(reader, ".") || !take_number(reader, &minor) ||
	    !take(reader, ".") || !take_number(reader, &micro) || !take_level(reader, &level))
		return false;
	(void)take(reader, "+"); /* built from between two releases */
	*ret_version_hex = major << 24 | minor << 16 | micro << 8 | level;
	return take(reader, " ");
}

/* Printable characters up to one of stop, which is not taken. */
static bool skip_to(struct reader *reader, char stop)
{
	while (reader->next < reader->end && *reader->next != stop) {
		if (*reader->next < ' ' || *reader->next > '~')
			return false;
		reader->next++;
	}
	return reader->next < reader->end;
}

/* The build: "(main, Nov  1 2025, 10:00:00)". */
static bool take_build(struct reader *reader)
{
	const char *start = reader->next;

	if (!skip_to(reader, '(') || !skip_to(reader, ')'))
		return false;
	return memchr(start, ',', (size_t)(reader->next - start)) &&
	       memchr(start, ':', (size_t)(reader->next - start)) && take(reader, ")");
}

bool version_text_parse(const char *text, size_t size, struct version_text *ret_version)
{
	size_t max_size = size < VERSION_TEXT_MAX_BYTES ? size : VERSION_TEXT_MAX_BYTES;
	struct reader reader = {.next = text, .end = text + max_size};
	struct version_text version = {.version_hex = 0};

	if (!take_version(&reader, &version.version_hex) || !take_build(&reader))
		return false;
	while (take(&reader, " ") || take(&reader, "\n"))
		;
	if (!take(&reader, "["))
		return false;
	version.is_pypy = take(&reader, "PyPy");
	*ret_version = version;
	return true;
}
