/* SPDX-License-Identifier: MIT */
/*
 * The text behind sys.version. Every CPython that was started keeps it in a variable of
 * Py_GetVersion(), so its version can be read even if no symbol is left.
 *
 * Source: Py_GetVersion() in Python/getversion.c of 2.7 to 3.15: PY_VERSION, the build in
 * parentheses, the compiler in brackets. Distributors add words before the parentheses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer texts are not recognised. Py_GetVersion() has room for 250 or 300 bytes. */
#define VERSION_TEXT_MAX_BYTES 320

/* What the text says. */
struct version_text {
	uint32_t version_hex; /* PY_VERSION_HEX */
	bool is_pypy;	      /* the text names PyPy, another implementation */
};

/*
 * Whether text, of size bytes, begins with such a text; it need not be terminated. "3.9.18 (main,
 * Nov  1 2025, 10:00:00) \n[GCC 12.2.0]".
 */
bool version_text_parse(const char *text, size_t size, struct version_text *ret_version);

/*
 * Whether such a text may begin at bytes, of which eight must be readable. A quick test for a
 * search in steps of eight, the alignment of such variables.
 */
static inline bool version_text_may_begin(const uint8_t *bytes)
{
	return bytes[1] == '.' && (bytes[0] == '2' || bytes[0] == '3');
}
