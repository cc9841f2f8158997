/* SPDX-License-Identifier: MIT */
/*
 * The source lines of a page: those of functions that were seen running, each from its first
 * line to the last one seen executing, and of what ran outside of functions the executed lines
 * with PAGE_SOURCE_AROUND on both sides. Files that have the most time of their own come first.
 */
#pragma once

#include <stdint.h>

#include "output/artefact.h"
#include "output/page/page_index.h"

/* Enough to see what a line of a module is about. */
#define PAGE_SOURCE_AROUND 2

/* What is longer is machine-made: of a function its first lines are shown, of a line its start. */
#define PAGE_SOURCE_MAX_LINES	   1000
#define PAGE_SOURCE_MAX_LINE_BYTES 400

/*
 * Of one file and of all, as they are; compressed a fifth of it. A file's ranges are shown
 * from its beginning as far as they fit, and files as long as all fit.
 */
#define PAGE_SOURCE_MAX_FILE_BYTES (256u << 10)
#define PAGE_SOURCE_MAX_BYTES	   (1u << 20)

/* Lines of one file that follow each other. */
struct page_source {
	uint32_t path; /* number of a string */
	uint32_t first_line, nr_lines;
	char *lines; /* owned; each terminated */
};

/* All zero there are none. */
struct page_sources {
	struct page_source *rows; /* owned */
	uint32_t nr, max;
	size_t bytes;
};

/*
 * Read what may be shown (source_file.h) and was not changed since the last run ended; nothing
 * if the runs were on another machine, where the paths mean other files. 0, or -ENOMEM: there
 * are none.
 */
int page_sources_read(struct page_sources *sources, const struct page_index *index,
		      const struct artefact *artefact);

/* Free what they hold; there are none then. */
void page_sources_done(struct page_sources *sources);
