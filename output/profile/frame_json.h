/* SPDX-License-Identifier: MIT */
/*
 * The members by which objects of JSON say which function, frame or thread they are. They are the
 * same, in this order, in all JSON that pysample writes; docs/profile.schema.json describes them.
 * Strings are as the target has them, escaped for JSON only. What is unknown is null.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/source/source_lines.h"
#include "output/text/json.h"
#include "sampler/cpython/base/frame.h"

/* Write name, kind (label_kind()), path ("" if it has none) and first_line. */
void frame_json_function(struct json *json, const char *qualname, enum function_kind kind,
			 const char *path, int32_t first_line);

/* Write what a frame has besides: line, which was executing. */
void frame_json_line(struct json *json, int32_t line);

/*
 * Write source: the line without the blanks around it, or null if there is none that may be shown.
 * -ENOMEM is kept in json.
 */
void frame_json_source(struct json *json, struct source_lines *sources, const char *path,
		       int32_t line);

/* Write tid, name, interpreter and main. */
void frame_json_thread(struct json *json, pid_t tid, const char *name, int64_t interpreter_id,
		       bool is_main);
