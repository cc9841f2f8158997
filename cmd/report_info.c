/* SPDX-License-Identifier: MIT */
#include "cmd/report_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/json.h"
#include "output/label.h"
#include "output/stats.h"
#include "output/text.h"

static void print_pair(void *context, const char *name, const char *value)
{
	struct text *line = context;

	text_clear(line);
	label_append_escaped(line, name, strlen(name), LABEL_DISPLAY);
	text_puts(line, ": ");
	label_append_escaped(line, value, strlen(value), LABEL_DISPLAY);
	text_puts(line, "\n");
	(void)text_write(line, stdout);
}

static void print_text(const struct recording *recording, const char *path, bool is_torn,
		       uint64_t torn_bytes)
{
	struct text line = {0};
	char bytes[24];

	(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, torn_bytes);
	print_pair(&line, "file", path);
	print_pair(&line, "torn", is_torn ? "yes" : "no");
	print_pair(&line, "unreadable_bytes", bytes);
	run_tell(recording_run(recording), print_pair, &line);
	text_done(&line);
}

static void print_json(const struct recording *recording, const char *path, bool is_torn,
		       uint64_t torn_bytes)
{
	const struct run *run = recording_run(recording);
	struct json json;

	json_init(&json, stdout, 2);
	json_object_begin(&json);
	json_key(&json, "file");
	json_string(&json, path);
	json_key(&json, "torn");
	json_bool(&json, is_torn);
	json_key(&json, "unreadable_bytes");
	json_u64(&json, torn_bytes);
	stats_append_json(&json, &run->stats, &run->info);
	json_object_end(&json);
	(void)json_finish(&json);
}

void report_info_print(const struct recording *recording, const char *path, bool json)
{
	uint64_t torn_bytes = 0;
	const bool is_torn = recording_is_torn(recording, &torn_bytes);

	if (json)
		print_json(recording, path, is_torn, torn_bytes);
	else
		print_text(recording, path, is_torn, torn_bytes);
}
