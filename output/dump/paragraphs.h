/* SPDX-License-Identifier: MIT */
/* Paragraphs of a dump that are compared one by one. */
#pragma once

#include <stdint.h>

#include "output/text/text.h"

/* Empty when all zero. */
struct paragraphs {
	char **texts; /* owned, like the strings: whole lines */
	uint32_t nr, max;
};

/* Free and empty it. */
void paragraphs_done(struct paragraphs *paragraphs);

/* Add a text, which is emptied. Returns 0; or -ENOMEM, also if that is the text's own error. */
int paragraphs_add(struct paragraphs *paragraphs, struct text *text);

/* Append all, with an empty line before each. */
void paragraphs_append(struct text *text, const struct paragraphs *paragraphs);
