/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to a stream, value by value, and keeps no more of it than where it
 * is: commas, indentation and escaping are done here, so what comes out is JSON
 * (RFC 8259) whatever the strings hold. Calling it in an order that makes no
 * JSON is a bug, and asserted.
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
	unsigned indent; /* spaces for each level; 0: all on one line */
	unsigned depth;
	bool has_items; /* the innermost object or array has */
	bool has_key;	/* a key waits for its value */
	int error;	/* the first error of the stream, negative errno */
};

/*
 * Begin a document; indent as in struct json. out is borrowed until json_finish(). Nothing
 * is owned: a document that is given up needs no end.
 */
void json_init(struct json *json, FILE *out, unsigned indent);

/*
 * End the document, which is whole, with a newline, and flush. 0, or the first error of
 * the stream since json_init(), as negative errno: the calls between keep it.
 */
int json_finish(struct json *json);

/* End a document of JSON Lines and begin the next: a newline, nothing is flushed. */
void json_next(struct json *json);

/* An object or array, as the document, an element, or the value of a key; they nest. */
void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* A member's name, escaped like a string; its value must follow. */
void json_key(struct json *json, const char *key);

/*
 * A string, escaped: control characters as \u…, a byte that is not UTF-8 as U+FFFD.
 * json_string() takes NULL for null; json_string_n() takes length bytes, NULs among them.
 */
void json_string(struct json *json, const char *string);
void json_string_n(struct json *json, const char *bytes, size_t length);

/*
 * A double with as many digits (15 to 17) as it takes to read the same one back;
 * null if it is not finite. The decimal point is the locale's, so LC_NUMERIC has to stay "C".
 */
void json_double(struct json *json, double value);

/* The other values, numbers with all their digits; a value of a key, an element or the document. */
void json_u64(struct json *json, uint64_t value);
void json_i64(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* A member of an object: json_key() and the value. */
void json_member_string(struct json *json, const char *key, const char *value);
void json_member_u64(struct json *json, const char *key, uint64_t value);
void json_member_double(struct json *json, const char *key, double value);
void json_member_bool(struct json *json, const char *key, bool value);

/*
 * value / 10^decimals, exactly and no longer than that takes: microseconds as milliseconds
 * (1500, 3: 1.5). At most JSON_MAX_DECIMALS.
 */
enum { JSON_MAX_DECIMALS = 18 };
void json_fixed(struct json *json, uint64_t value, unsigned decimals);
