/* SPDX-License-Identifier: MIT */
/* The line of source that a frame executes, in a dump. */
#pragma once

#include "output/dump/source_lines.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/*
 * Append the line as CPython's tracebacks have it: without its indentation, and if the columns are
 * known and not those of all of it, a line that marks them with ^, up to its end if they go on in
 * another one. If the file is newer, a line that says so; if there is none, nothing. -ENOMEM is
 * kept in the text, or the document.
 */
void dump_source_append(struct text *text, struct source_lines *lines, const struct frame *frame,
			const struct frame_detail *detail);

/* Write the member "source": the line without its indentation, or null. */
void dump_source_write(struct json *json, struct source_lines *lines, const struct frame *frame);
