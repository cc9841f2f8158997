/* SPDX-License-Identifier: MIT */
#include "output/dump/paragraphs.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"

void paragraphs_done(struct paragraphs *paragraphs)
{
	for (uint32_t i = 0; i < paragraphs->nr; i++)
		free(paragraphs->texts[i]);
	free(paragraphs->texts);
	*paragraphs = (struct paragraphs){.texts = NULL};
}

int paragraphs_add(struct paragraphs *paragraphs, struct text *text)
{
	char **texts = array_reserve(paragraphs->texts, paragraphs->nr + 1, &paragraphs->max,
				     sizeof(*texts));

	if (texts)
		paragraphs->texts = texts;
	if (!texts || text->error || !text->bytes) {
		text_done(text);
		return -ENOMEM;
	}
	texts[paragraphs->nr++] = text->bytes;
	*text = (struct text){.bytes = NULL};
	return 0;
}

void paragraphs_append(struct text *text, const struct paragraphs *paragraphs)
{
	for (uint32_t i = 0; i < paragraphs->nr; i++) {
		text_puts(text, "\n");
		text_puts(text, paragraphs->texts[i]);
	}
}
