/* SPDX-License-Identifier: MIT */
/* The frames of a stack in a dump, as both of its writers have them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/dump/source_lines.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/* Frames, outermost first; all borrowed. */
struct dump_frames {
	const struct frame *frames;
	const struct frame_detail *details; /* one for each; NULL: not known */
	uint32_t nr;
	bool with_variables;	      /* the details were asked for them */
	struct source_lines *sources; /* NULL: no source */
};

/*
 * Append a line for each frame, as CPython's tracebacks have it, its source and variables. Of a
 * recursion, of up to eight frames a round, one round is written and how often it comes.
 */
void dump_frames_append(struct text *text, const struct dump_frames *frames);

/* Write the value of a key: an array of objects, as dump_write_json() has them. */
void dump_frames_write(struct json *json, const struct dump_frames *frames);

/*
 * Have nr copied details own their variables, which are another's so far: copies of them. 0 or
 * -ENOMEM; dump_free_variables() in either case.
 */
int dump_copy_variables(struct frame_detail *details, uint32_t nr);
void dump_free_variables(struct frame_detail *details, uint32_t nr);

/* What sample.error, which is not 0, means: a few words that end a sentence. */
const char *dump_error_text(int error);
