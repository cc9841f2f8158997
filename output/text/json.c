/* SPDX-License-Identifier: MIT */
#include "output/text/json.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/text/utf8.h"

/* 64-bit digits, a sign, a point */
enum { NUMBER_MAX_BYTES = 24 };

/* Unlocked, because nothing else writes to the stream: locking for each comma is slow. */
static void put_bytes(struct json *json, const char *bytes, size_t length)
{
	if (json->error || !length)
		return;
	errno = EIO; /* in case the stream fails without setting it */
	if (fwrite_unlocked(bytes, 1, length, json->out) != length)
		json->error = -errno;
}

static void put_byte(struct json *json, char byte)
{
	if (json->error)
		return;
	errno = EIO;
	if (putc_unlocked(byte, json->out) == EOF)
		json->error = -errno;
}

static void put(struct json *json, const char *string)
{
	put_bytes(json, string, strlen(string));
}

static void put_line_break(struct json *json)
{
	if (!json->indent)
		return;
	put(json, "\n");
	for (unsigned i = 0; i < json->depth * json->indent; i++)
		put(json, " ");
}

/* Write what separates a value or key from the previous item. */
static void item_begin(struct json *json)
{
	if (json->has_key) {
		json->has_key = false;
		return;
	}
	assert(json->depth || !json->has_items);
	if (json->has_items)
		put_byte(json, ',');
	if (json->depth)
		put_line_break(json);
	json->has_items = true;
}

static void nest_begin(struct json *json, char bracket)
{
	item_begin(json);
	put_byte(json, bracket);
	json->depth++;
	json->has_items = false;
}

static void nest_end(struct json *json, char bracket)
{
	assert(json->depth && !json->has_key);
	json->depth--;
	if (json->has_items)
		put_line_break(json);
	put_byte(json, bracket);
	json->has_items = true;
}

void json_init(struct json *json, FILE *out, unsigned indent)
{
	*json = (struct json){.out = out, .indent = indent};
}

int json_finish(struct json *json)
{
	assert(!json->depth && json->has_items);
	put(json, "\n");
	if (!json->error && fflush(json->out))
		json->error = -errno;
	return json->error;
}

void json_next(struct json *json)
{
	assert(!json->depth && json->has_items);
	put_byte(json, '\n');
	json->has_items = false;
}

void json_object_begin(struct json *json)
{
	nest_begin(json, '{');
}

void json_object_end(struct json *json)
{
	nest_end(json, '}');
}

void json_array_begin(struct json *json)
{
	nest_begin(json, '[');
}

void json_array_end(struct json *json)
{
	nest_end(json, ']');
}

/*
 * Whether to escape a code point: RFC 8259, section 7, requires it, or it is a control
 * character.
 */
static bool must_escape(uint32_t code_point)
{
	return code_point == '"' || code_point == '\\' || utf8_is_control(code_point);
}

/* Escaped code points are below U+10000, so no surrogate pairs are needed. */
static void put_escape(struct json *json, uint32_t code_point)
{
	char escape[sizeof("\\uffff")];

	if (code_point == '"' || code_point == '\\')
		(void)snprintf(escape, sizeof(escape), "\\%c", (char)code_point);
	else
		(void)snprintf(escape, sizeof(escape), "\\u%04" PRIx32, code_point & 0xffff);
	put(json, escape);
}

/* Most bytes are plain and need no decoding. */
static bool is_plain(char byte)
{
	return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
}

static void put_quoted(struct json *json, const char *bytes, size_t length)
{
	size_t start = 0; /* of what is not written yet */
	size_t step;

	put_byte(json, '"');
	for (size_t i = 0; i < length; i += step) {
		uint32_t code_point = 0xfffd;
		size_t code_length;

		step = 1;
		if (is_plain(bytes[i]))
			continue;
		code_length = utf8_decode(bytes + i, length - i, &code_point);
		step = code_length ? code_length : 1;
		if (code_length && !must_escape(code_point))
			continue;
		put_bytes(json, bytes + start, i - start);
		start = i + step;
		put_escape(json, code_point);
	}
	put_bytes(json, bytes + start, length - start);
	put_byte(json, '"');
}

void json_key(struct json *json, const char *key)
{
	assert(json->depth && !json->has_key);
	item_begin(json);
	put_quoted(json, key, strlen(key));
	put(json, json->indent ? ": " : ":");
	json->has_key = true;
}

void json_string_n(struct json *json, const char *bytes, size_t length)
{
	item_begin(json);
	put_quoted(json, bytes, length);
}

void json_string(struct json *json, const char *string)
{
	if (string)
		json_string_n(json, string, strlen(string));
	else
		json_null(json);
}

static void put_value(struct json *json, const char *value)
{
	item_begin(json);
	put(json, value);
}

void json_double(struct json *json, double value)
{
	char number[32]; /* sign, digits, point, exponent: at most 24 */

	if (!isfinite(value)) {
		json_null(json);
		return;
	}
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		(void)snprintf(number, sizeof(number), "%.*g", digits, value);
		if (strtod(number, NULL) == value)
			break;
	}
	put_value(json, number);
}

/* Write the digits of value so that they end at end. Returns where they begin. */
static char *digits_before(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

static void put_number(struct json *json, const char *start, const char *end)
{
	item_begin(json);
	put_bytes(json, start, (size_t)(end - start));
}

void json_u64(struct json *json, uint64_t value)
{
	char number[NUMBER_MAX_BYTES];
	char *end = number + sizeof(number);

	put_number(json, digits_before(end, value), end);
}

void json_i64(struct json *json, int64_t value)
{
	char number[NUMBER_MAX_BYTES];
	char *end = number + sizeof(number);
	char *start = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);

	if (value < 0)
		*--start = '-';
	put_number(json, start, end);
}

void json_fixed(struct json *json, uint64_t value, unsigned decimals)
{
	char number[NUMBER_MAX_BYTES];
	char *end = number + sizeof(number);
	char *start = end;

	assert(decimals <= JSON_MAX_DECIMALS);
	for (; decimals && value % 10 == 0; decimals--)
		value /= 10;
	for (; decimals; decimals--) {
		*--start = (char)('0' + value % 10);
		value /= 10;
	}
	if (start < end)
		*--start = '.';
	put_number(json, digits_before(start, value), end);
}

void json_bool(struct json *json, bool value)
{
	put_value(json, value ? "true" : "false");
}

void json_null(struct json *json)
{
	put_value(json, "null");
}

void json_member_string(struct json *json, const char *key, const char *value)
{
	json_key(json, key);
	json_string(json, value);
}

void json_member_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_member_known(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	if (value)
		json_u64(json, value);
	else
		json_null(json);
}

void json_member_double(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

void json_member_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}
