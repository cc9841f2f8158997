/* SPDX-License-Identifier: MIT */
#include "output/dump/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void problems_add(struct problems *problems, const char *format, ...)
{
	char **sentence = &problems->sentences[problems->nr_sentences];
	va_list args;

	if (problems->nr_sentences == PROBLEMS_MAX)
		return;
	va_start(args, format);
	if (vasprintf(sentence, format, args) >= 0)
		problems->nr_sentences++;
	va_end(args);
}

void problems_done(struct problems *problems)
{
	for (size_t i = 0; i < problems->nr_sentences; i++)
		free(problems->sentences[i]);
	*problems = (struct problems){.nr_sentences = 0};
}
