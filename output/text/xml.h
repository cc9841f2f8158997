/* SPDX-License-Identifier: MIT */
/* Text for XML and HTML: between tags, and in attributes in double quotes. */
#pragma once

#include <stddef.h>

#include "output/text/text.h"

/*
 * Append bytes as text that can never be markup, whatever they hold: as
 * label_append_escaped() makes them harmless, and then with entities for what means something
 * to a parser; U+FFFE and U+FFFF, which XML has no way to say, become U+FFFD.
 *
 * Source: XML 1.0, fifth edition, 2.2 "Characters" and 2.4 "Character Data and Markup".
 */
void xml_append(struct text *text, const char *bytes, size_t length);
void xml_puts(struct text *text, const char *string);
