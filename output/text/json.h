/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON (RFC 8259) to a stream, value by value, without keeping the document in memory. It
 * adds commas, indentation and escapes, so strings may hold any bytes. An order of calls that
 * does not make JSON is a bug, and asserted.
 *
 *	json_object_begin(&json);
 *	json_key(&json, "pid");
 *	json_i64(&json, 42);
 *	json_object_end(&json);
 *	err = json_finish(&json);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;	 /* borrowed */
	unsigned indent; /* spaces per level; 0: all on one line */
	unsigned depth;
	bool has_items; /* the innermost object or array is not empty */
	bool has_key;	/* a key has no value yet */
	int error;	/* first error of the stream, negative errno */
};

/*
 * Begin a document. out is borrowed until json_finish(). Nothing is owned, so an abandoned
 * document needs no cleanup.
 */
void json_init(struct json *json, FILE *out, unsigned indent);

/*
 * End a complete document with a newline and flush. Returns 0, or the first error of the stream
 * since json_init() as negative errno; the calls between keep it.
 */
int json_finish(struct json *json);

/* End a document of JSON Lines with a newline and begin the next. Nothing is flushed. */
void json_next(struct json *json);

/* Begin or end an object or array: the document, an element, or the value of a key. They nest. */
void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* Write a member's name, escaped like a string. Its value must follow. */
void json_key(struct json *json, const char *key);

/*
 * Write an escaped string: control characters become \u…, and a byte that is not UTF-8 U+FFFD.
 * json_string() writes NULL as null; json_string_n() takes length bytes, which may include NUL.
 */
void json_string(struct json *json, const char *string);
void json_string_n(struct json *json, const char *bytes, size_t length);

/*
 * Write a double with the fewest digits (15 to 17) that read back as the same number; null if it
 * is not finite. The decimal point is the locale's, so LC_NUMERIC must stay "C".
 */
void json_double(struct json *json, double value);

/* Write other values: the value of a key, an element or the document. */
void json_u64(struct json *json, uint64_t value);
void json_i64(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* Write a member: its key and value. */
void json_member_string(struct json *json, const char *key, const char *value);
void json_member_u64(struct json *json, const char *key, uint64_t value);
/* The same for a number of which 0 means that it is unknown, which is null. */
void json_member_known(struct json *json, const char *key, uint64_t value);
void json_member_double(struct json *json, const char *key, double value);
void json_member_bool(struct json *json, const char *key, bool value);

/* Limit on decimals: the digits, the point and a leading 0 must fit in NUMBER_MAX_BYTES. */
enum { JSON_MAX_DECIMALS = 18 };

/*
 * Write value / 10^decimals exactly, without trailing zeros: 1500 µs as ms (1500, 3) is 1.5.
 * decimals is at most JSON_MAX_DECIMALS.
 */
void json_fixed(struct json *json, uint64_t value, unsigned decimals);
