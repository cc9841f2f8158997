/* SPDX-License-Identifier: MIT */
/* The source line that a frame executes, in a dump. */
#pragma once

#include "output/source/source_lines.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/*
 * Append the line as in CPython's tracebacks, without its indentation. If the columns are known
 * and not the whole line, a second line marks them with ^, up to the line's end if they continue
 * on another. If the file is newer, append a line that says so; without a file nothing. -ENOMEM
 * is kept in text.
 */
void dump_source_append(struct text *text, struct source_lines *lines, const struct frame *frame,
			const struct frame_detail *detail);
