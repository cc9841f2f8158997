/* SPDX-License-Identifier: MIT */
/*
 * Names of frames and threads, for people. Names come from the target and may hold any bytes;
 * these functions append valid UTF-8 without control characters. Errors are kept in the text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"
#include "output/text/text.h"

/* The row of samples without Python frames. */
#define LABEL_NO_PYTHON_FRAMES "[no python frames]"

/* The roots of threads and processes without a row. */
#define LABEL_OTHER_THREADS   "[other threads]"
#define LABEL_OTHER_PROCESSES "[other processes]"

enum label_style {
	LABEL_DISPLAY,	 /* for a screen or a field of its own */
	LABEL_COLLAPSED, /* for collapsed stacks: ';' separates frames, so it becomes ':' */
};

/*
 * Append bytes, escaped: a control character in ASCII becomes \x0a, one outside ASCII \u0085, and
 * a byte that is not UTF-8 \xff. Backslashes are not escaped, so the result cannot be parsed
 * back.
 */
void label_append_escaped(struct text *text, const char *bytes, size_t length,
			  enum label_style style);

/* Append a string, escaped for display. */
void label_append_string(struct text *text, const char *string);

/*
 * Append "path:line" with mark before the line, "path" if the line is unknown (0), or nothing if
 * the path is empty.
 */
void label_append_location(struct text *text, const char *path, const char *mark, int32_t line,
			   enum label_style style);

/* Append "qualname (path:line)". An empty name becomes "?"; an empty path drops the parentheses. */
void label_append_function(struct text *text, const char *qualname, const char *path, int32_t line,
			   enum label_style style);

/*
 * Append "thread NAME (TID)" without the parts that are unknown, or in a sub-interpreter "thread
 * NAME (TID, interpreter ID)".
 */
void label_append_thread(struct text *text, const struct profile_thread *thread,
			 enum label_style style);

/* Append "NAME (PID)" without the part that is unknown, such as "gunicorn app:wsgi (4711)". */
void label_append_process(struct text *text, const struct profile_process *process,
			  enum label_style style);

/* Append only "NAME", or "process" if it is unknown. */
void label_append_process_name(struct text *text, const struct profile_process *process,
			       enum label_style style);

/*
 * Returns the mark of a row's line: "~" if rows are lines and this one may be a few statements
 * late (profile_frame.line_is_uncertain), else "". The string is static.
 */
const char *label_line_mark(const struct profile *profile, uint32_t frame);

/*
 * Append the label of any row of the profile, with the mark of its line. LABEL_COLLAPSED has no
 * marks, because the stacks of two files are compared by name, and applies label_end_leaf(), so
 * the label is safe as the last frame of a line.
 */
void label_append_frame(struct text *text, const struct profile *profile, uint32_t frame,
			enum label_style style);

/* Returns what runs a function's code: one word in lower case, stable. */
const char *label_kind(enum function_kind kind);

/*
 * Append " ()" if the text ends in a space and a number, which viewers of collapsed stacks would
 * read as the second count of a differential profile. Source: flamegraph.pl, "there may be an
 * extra samples column for differentials".
 */
void label_end_leaf(struct text *text);
