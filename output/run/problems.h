/* SPDX-License-Identifier: MIT */
/* What was missing or damaged of what is shown: sentences for the end of a report. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* More than this are not kept: each stands for a kind of trouble, with a count. */
#define PROBLEMS_MAX 64

/* All zero there are none. */
struct problems {
	char *sentences[PROBLEMS_MAX]; /* owned; control characters not escaped */
	size_t nr_sentences;
};

/* Add a sentence, as printf(3) formats; without memory it is lost. */
void problems_add(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Free the sentences; there are none then. */
void problems_done(struct problems *problems);
