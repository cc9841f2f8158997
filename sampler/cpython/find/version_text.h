/* SPDX-License-Identifier: MIT */
/*
 * The text that sys.version is made of. Every CPython that has begun keeps it in a
 * variable of Py_GetVersion(), so that its version can be read where no symbol is left.
 *
 * Source: Py_GetVersion() in Python/getversion.c of 2.7 to 3.15: PY_VERSION, the build
 * in parentheses, the compiler in brackets. Distributors add words before the
 * parentheses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No longer text is one: Py_GetVersion() has 250 or 300 bytes for it. */
#define VERSION_TEXT_MAX_BYTES 320

struct version_text {
	uint32_t version_hex; /* PY_VERSION_HEX */
	bool is_pypy;	      /* it says so: an implementation of its own */
};

/*
 * Whether such a text begins text, of which size bytes are there; it need not be
 * terminated. "3.9.18 (main, Nov  1 2025, 10:00:00) \n[GCC 12.2.0]".
 */
bool version_text_parse(const char *text, size_t size, struct version_text *ret_version);

/*
 * Whether the eight bytes at bytes can begin one: most do not. For a search in steps of
 * eight, which is how such variables are aligned.
 */
static inline bool version_text_may_begin(const uint8_t *bytes)
{
	return bytes[1] == '.' && (bytes[0] == '2' || bytes[0] == '3');
}
