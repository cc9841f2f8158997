/* SPDX-License-Identifier: MIT */
/*
 * Names for people: what a frame or a thread is called in a text. Names come
 * from the target and may hold anything; what these functions append is valid
 * UTF-8 without control characters. Failures are kept in the text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"
#include "output/text/text.h"

/* The row of samples that have no Python frame. */
#define LABEL_NO_PYTHON_FRAMES "[no python frames]"

/* The root of threads that came when there was no place for one more. */
#define LABEL_OTHER_THREADS "[other threads]"

enum label_style {
	LABEL_DISPLAY,	 /* for a screen or a field of its own */
	LABEL_COLLAPSED, /* for collapsed stacks: ';' separates frames, so it becomes ':' */
};

/*
 * Append bytes, made harmless: a control character becomes \x0a, one outside
 * ASCII \u0085, and a byte that is not UTF-8 \xff. Backslashes stay as they are,
 * so this is for reading, not for parsing back.
 */
void label_append_escaped(struct text *text, const char *bytes, size_t length,
			  enum label_style style);

/*
 * "path:line" with the mark in front of the line, "path" if the line is not known (0), nothing
 * if the path is empty.
 */
void label_append_location(struct text *text, const char *path, const char *mark, int32_t line,
			   enum label_style style);

/* "qualname (path:line)"; "?" for an empty name, no parentheses for an empty path. */
void label_append_function(struct text *text, const char *qualname, const char *path, int32_t line,
			   enum label_style style);

/*
 * "thread NAME (TID)", without what is not known; in a sub-interpreter "thread NAME (TID,
 * interpreter ID)".
 */
void label_append_thread(struct text *text, const struct profile_thread *thread,
			 enum label_style style);

/*
 * The mark of a row's line: "~" where rows are lines and this one may be some statements late
 * (profile_frame.is_late), else "". Static.
 */
const char *label_line_mark(const struct profile *profile, uint32_t frame);

/*
 * The label of a row of the profile, of whichever kind, with the mark of its line. In
 * LABEL_COLLAPSED also safe as the last frame of a line: label_end_leaf() was applied; lines
 * have no marks there, as stacks of two files are compared by their names.
 */
void label_append_frame(struct text *text, const struct profile *profile, uint32_t frame,
			enum label_style style);

/* What runs a function's code, one word in lower case; stable. */
const char *label_kind(enum function_kind kind);

/*
 * Append " ()" if the text ends in a space and a number: the viewers of collapsed
 * stacks would take that for a second count, that of a differential profile.
 *
 * Source: flamegraph.pl, "there may be an extra samples column for differentials".
 */
void label_end_leaf(struct text *text);
