/* SPDX-License-Identifier: MIT */
#include "cmd/report/report_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/recording/process_amounts.h"
#include "output/run/stats.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "procmem/clock.h"

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

/* Append a process's numbers: "3 threads, 120 samples, 0.120 s". */
static void append_amounts(struct text *line, const struct process_amounts *amounts)
{
	text_printf(line, "%" PRIu32 " thread%s, %" PRIu64 " sample%s, %.3f s", amounts->nr_threads,
		    text_plural(amounts->nr_threads), amounts->nr_samples,
		    text_plural(amounts->nr_samples), (double)amounts->wall_ns / NS_PER_S);
}

/* Print a line for each process with samples: "process: app (4711), parent 4710: …". */
static void print_processes(struct text *line, const struct recording *recording,
			    const struct process_amounts *amounts)
{
	const struct process_rows *processes = recording_processes(recording);

	for (uint32_t i = 0; i < processes->nr; i++) {
		const struct profile_process *process = &processes->rows[i];

		if (!amounts[i].nr_samples)
			continue;
		text_clear(line);
		text_puts(line, "process: ");
		label_append_process(line, process, LABEL_DISPLAY);
		if (process->parent_pid)
			text_printf(line, ", parent %jd", (intmax_t)process->parent_pid);
		text_puts(line, ": ");
		append_amounts(line, &amounts[i]);
		text_puts(line, "\n");
		(void)text_write(line, stdout);
	}
}

static void print_text(const struct recording *recording, const char *path,
		       const struct process_amounts *amounts)
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
	print_processes(&line, recording, amounts);
	text_done(&line);
}

static void append_processes(struct json *json, const struct recording *recording,
			     const struct process_amounts *amounts)
{
	const struct process_rows *processes = recording_processes(recording);

	json_key(json, "processes");
	json_array_begin(json);
	for (uint32_t i = 0; i < processes->nr; i++) {
		const struct profile_process *process = &processes->rows[i];

		if (!amounts[i].nr_samples)
			continue;
		json_object_begin(json);
		json_key(json, "pid");
		json_i64(json, process->pid);
		json_member_known(json, "parent_pid", (uint64_t)process->parent_pid);
		json_member_string(json, "name", process->name);
		json_member_string(json, "command_line", process->command_line);
		json_member_u64(json, "threads", amounts[i].nr_threads);
		json_member_u64(json, "samples", amounts[i].nr_samples);
		json_member_u64(json, "wall_ns", amounts[i].wall_ns);
		json_member_u64(json, "cpu_ns", amounts[i].cpu_ns);
		json_member_known(json, "start_ns", process->start_ns);
		json_member_known(json, "end_ns", process->end_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void print_json(const struct recording *recording, const char *path,
		       const struct process_amounts *amounts)
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
	append_processes(&json, recording, amounts);
	json_object_end(&json);
	(void)json_finish(&json);
}

int report_info_print(struct recording *recording, const char *path, bool json)
{
	struct process_amounts *amounts;
	int err = process_amounts_read(recording, &amounts);

	if (err)
		return err;
	if (json)
		print_json(recording, path, amounts);
	else
		print_text(recording, path, amounts);
	free(amounts);
	return 0;
}
