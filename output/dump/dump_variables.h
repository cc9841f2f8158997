/* SPDX-License-Identifier: MIT */
/* The variables of the frames of a dump. */
#pragma once

#include "output/text/json.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/*
 * Have nr copied details own their variables, which are another's so far: copies of them. 0 or
 * -ENOMEM; dump_free_variables() in either case.
 */
int dump_copy_variables(struct frame_detail *details, uint32_t nr);
void dump_free_variables(struct frame_detail *details, uint32_t nr);

/* A line for each, indented below its frame's; or one that says that they could not be read. */
void dump_append_variables(struct text *text, const struct frame_detail *detail);

/* "locals": an array of name, kind, value; or null if they could not be read. */
void dump_write_variables(struct json *json, const struct frame_detail *detail);
