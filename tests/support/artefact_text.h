/* SPDX-License-Identifier: MIT */
/* What the writer of a text format writes. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#include "output/artefact.h"

/* Returns the text that write() writes, of *ret_size bytes. free() it. */
static inline char *artefact_text(int (*write)(const struct artefact *artefact, FILE *out),
				  const struct artefact *artefact, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	cr_assert(out != NULL);
	cr_assert(eq(int, write(artefact, out), 0));
	cr_assert(eq(int, fclose(out), 0));
	return text;
}
