/* SPDX-License-Identifier: MIT */
/* What was missing or damaged in the input: sentences for the end of a report. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Further sentences are dropped. Each stands for a kind of trouble, with a count. */
#define PROBLEMS_MAX 64

/* Empty when all zero. */
struct problems {
	char *sentences[PROBLEMS_MAX]; /* owned; control characters are not escaped */
	size_t nr_sentences;
};

/* Add a sentence, formatted like printf(3). It is dropped if out of memory. */
void problems_add(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Free the sentences and empty problems. */
void problems_done(struct problems *problems);
