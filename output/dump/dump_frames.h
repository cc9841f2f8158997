/* SPDX-License-Identifier: MIT */
/* The frames of a stack in a dump, for its text and its JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/source/source_lines.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/* A stack, outermost frame first; everything is borrowed. */
struct dump_frames {
	const struct frame *frames;
	const struct frame_detail *details; /* one per frame; NULL: unknown */
	uint32_t nr;
	bool with_variables;	      /* the details have variables */
	bool folds_starts;	      /* the text has one line for frames that start a process */
	struct source_lines *sources; /* NULL: no source */
};

/*
 * Append a line for each frame, as in CPython's tracebacks, with its source and variables. A
 * recursion of up to 32 frames a round is printed once, with the number of its repetitions. With
 * folds_starts, frames by which multiprocessing starts a process, and threading a thread, are only
 * counted.
 */
void dump_frames_append(struct text *text, const struct dump_frames *frames);

/* Write the value of a key: an array of objects as in dump_write_json(). */
void dump_frames_write(struct json *json, const struct dump_frames *frames);

/*
 * Replace the borrowed variables of nr copied details by copies that they own. Returns 0 or
 * -ENOMEM; call dump_free_variables() either way.
 */
int dump_copy_variables(struct frame_detail *details, uint32_t nr);
void dump_free_variables(struct frame_detail *details, uint32_t nr);

/* Returns the meaning of a sample.error that is not 0: a few words to end a sentence. */
const char *dump_error_text(int error);
