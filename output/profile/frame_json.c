/* SPDX-License-Identifier: MIT */
#include "output/profile/frame_json.h"

#include <errno.h>

#include "output/profile/label.h"

/* Write a number, or null if it is not positive (unknown). */
static void write_positive(struct json *json, const char *key, int32_t value)
{
	json_member_known(json, key, value > 0 ? (uint64_t)value : 0);
}

void frame_json_function(struct json *json, const char *qualname, enum function_kind kind,
			 const char *path, int32_t first_line)
{
	json_member_string(json, "name", qualname);
	json_member_string(json, "kind", label_kind(kind));
	json_member_string(json, "path", path);
	write_positive(json, "first_line", first_line);
}

void frame_json_line(struct json *json, int32_t line)
{
	write_positive(json, "line", line);
}

void frame_json_source(struct json *json, struct source_lines *sources, const char *path,
		       int32_t line)
{
	struct stripped_line stripped;
	const char *text;
	int err = source_lines_get(sources, path, line, &text);

	json_key(json, "source");
	if (err) {
		json_null(json);
		if (err == -ENOMEM)
			json->error = err;
		return;
	}
	stripped = stripped_line_of(text);
	json_string_n(json, text + stripped.start, stripped.end - stripped.start);
}

void frame_json_thread(struct json *json, pid_t tid, const char *name, int64_t interpreter_id,
		       bool is_main)
{
	write_positive(json, "tid", tid);
	json_member_string(json, "name", name);
	json_key(json, "interpreter");
	json_i64(json, interpreter_id);
	json_member_bool(json, "main", is_main);
}
