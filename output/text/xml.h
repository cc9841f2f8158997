/* SPDX-License-Identifier: MIT */
/* Escaped text for XML and HTML: between tags, and in attributes in double quotes. */
#pragma once

#include <stddef.h>

#include "output/text/text.h"

/*
 * Append bytes so that they can never be markup: escaped as by label_append_escaped(), then with
 * entities for characters that parsers interpret. U+FFFE and U+FFFF, which XML cannot represent,
 * become U+FFFD.
 *
 * Source: XML 1.0, fifth edition, 2.2 "Characters" and 2.4 "Character Data and Markup".
 */
void xml_append(struct text *text, const char *bytes, size_t length);
void xml_puts(struct text *text, const char *string);
