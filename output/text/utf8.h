/* SPDX-License-Identifier: MIT */
/* UTF-8, one code point at a time, for names that any process may have chosen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decode the code point at the start of size bytes; size is not 0. Returns its length in bytes, 1
 * to 4, or 0 if the bytes are not UTF-8 (overlong forms, surrogates, beyond U+10FFFF, cut off),
 * with *ret_code_point unset.
 *
 * Source: The Unicode Standard, table 3-7, well-formed UTF-8 byte sequences.
 */
size_t utf8_decode(const char *bytes, size_t size, uint32_t *ret_code_point);

/*
 * Whether a code point must never reach a terminal or a line of text: C0, DEL, C1, the
 * line and paragraph separators, and the bidirectional controls, which can disguise a name as
 * another.
 *
 * Source: The Unicode Standard, Bidi_Control; Unicode TR 36, 3.2.
 */
bool utf8_is_control(uint32_t code_point);

/*
 * Returns the width of a code point on a terminal: 0 for combining marks and joiners, 2 for wide
 * East Asian characters and emoji, else 1. wcwidth() would need a locale.
 *
 * Source: Unicode EastAsianWidth.txt (W and F), by block.
 */
unsigned utf8_width(uint32_t code_point);
