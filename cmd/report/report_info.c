/* SPDX-License-Identifier: MIT */
#include "cmd/report/report_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/run/stats.h"
#include "output/text/json.h"
#include "output/text/text.h"

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

static void print_number(struct text *line, const char *name, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, value);
	print_pair(line, name, digits);
}

static void print_text(const struct recording *recording, const char *path)
{
	const struct recording_about *about = recording_about(recording);
	struct text line = {0};
	uint64_t torn_bytes;
	const bool is_torn = recording_is_torn(recording, &torn_bytes);

	print_pair(&line, "file", path);
	print_number(&line, "format_version", about->version);
	print_number(&line, "epoch_us", about->epoch_us);
	print_number(&line, "file_bytes", about->file_bytes);
	print_number(&line, "frames", about->nr_zstd_frames);
	print_number(&line, "recorded_samples", about->nr_samples);
	print_pair(&line, "has_end", about->has_end ? "yes" : "no");
	print_number(&line, "seek_table_frames", about->nr_seek_rows);
	print_pair(&line, "torn", is_torn ? "yes" : "no");
	print_number(&line, "unreadable_bytes", torn_bytes);
	run_for_each_pair(recording_run(recording), print_pair, &line);
	text_done(&line);
}

static void print_json(const struct recording *recording, const char *path)
{
	const struct recording_about *about = recording_about(recording);
	const struct run *run = recording_run(recording);
	struct json json;
	uint64_t torn_bytes;
	const bool is_torn = recording_is_torn(recording, &torn_bytes);

	json_init(&json, stdout, 2);
	json_object_begin(&json);
	json_member_string(&json, "file", path);
	json_member_u64(&json, "format_version", about->version);
	json_member_u64(&json, "epoch_us", about->epoch_us);
	json_member_u64(&json, "file_bytes", about->file_bytes);
	json_member_u64(&json, "frames", about->nr_zstd_frames);
	json_member_u64(&json, "recorded_samples", about->nr_samples);
	json_member_bool(&json, "has_end", about->has_end);
	json_member_u64(&json, "seek_table_frames", about->nr_seek_rows);
	json_member_bool(&json, "torn", is_torn);
	json_member_u64(&json, "unreadable_bytes", torn_bytes);
	stats_append_json(&json, &run->stats, &run->info);
	json_object_end(&json);
	(void)json_finish(&json);
}

void report_info_print(const struct recording *recording, const char *path, bool json)
{
	if (json)
		print_json(recording, path);
	else
		print_text(recording, path);
}
