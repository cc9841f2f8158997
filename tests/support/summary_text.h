/* SPDX-License-Identifier: MIT */
/* The summary of a profile as text, for tests of its parts. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/summary/summary.h"
#include "output/text/utf8.h"
#include "tests/support/artefact_text.h"

/* The summary; free() it. */
static inline char *summary_text(const struct artefact *artefact)
{
	size_t size;

	return artefact_text(summary_write, artefact, &size);
}

/* The summary from first_line on, which must occur in it. Borrowed from text. */
static inline const char *summary_body(const char *text, const char *first_line)
{
	const char *found = strstr(text, first_line);

	cr_assert(found != NULL, "%s", text);
	return found;
}

/* Expect every line to be UTF-8 and at most columns wide. */
static inline void expect_width(const char *text, unsigned columns)
{
	unsigned width = 0;
	uint32_t code_point;

	for (size_t step; *text; text += step) {
		step = utf8_decode(text, strlen(text), &code_point);
		cr_assert(step > 0);
		width = *text == '\n' ? 0 : width + utf8_width(code_point);
		cr_expect(width <= columns, "%u columns: %.20s", columns, text);
	}
}
