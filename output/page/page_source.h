/* SPDX-License-Identifier: MIT */
/*
 * The source lines of a page: of each function that was seen running, from its first line to the
 * last one seen executing; of code outside functions, the executed lines with PAGE_SOURCE_AROUND
 * lines before and after. Files with the most self time come first.
 */
#pragma once

#include <stdint.h>

#include "output/artefact.h"
#include "output/page/page_index.h"

/* Enough context for a line of a module. */
#define PAGE_SOURCE_AROUND 2

/*
 * Longer code is machine-made. A function is cut after this many lines, a line after this many
 * bytes.
 */
#define PAGE_SOURCE_MAX_LINES	   1000
#define PAGE_SOURCE_MAX_LINE_BYTES 400

/*
 * Limits for one file and for all, uncompressed; compression makes it a fifth. Ranges of a file,
 * and files, are included in order until they no longer fit.
 */
#define PAGE_SOURCE_MAX_FILE_BYTES (256u << 10)
#define PAGE_SOURCE_MAX_BYTES	   (1u << 20)

/* Consecutive lines of one file. */
struct page_source {
	uint32_t path; /* number in strings */
	uint32_t first_line, nr_lines;
	char *lines; /* owned; each terminated */
};

/* Empty when all zero. */
struct page_sources {
	struct page_source *rows; /* owned */
	uint32_t nr, max;
	size_t bytes;
};

/*
 * Read the files that may be shown (source_file.h) and have not changed since the first run
 * ended. Nothing is read with options.no_source, or if a run is from another machine, where the
 * paths mean other files. Returns 0, or -ENOMEM with sources empty.
 */
int page_sources_read(struct page_sources *sources, const struct page_index *index,
		      const struct artefact *artefact);

/* Free the lines and empty sources. */
void page_sources_done(struct page_sources *sources);
