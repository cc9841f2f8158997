/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print.h"
#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "procmem/cleanup.h"

enum { NS_PER_US = 1000, US_PER_S = 1000000 };

/* A table. */

static void append_time(struct text *line, uint64_t time_ns)
{
	const uint64_t time_us = time_ns / NS_PER_US;

	if (time_ns == JIT_MAP_OPEN_NS)
		text_printf(line, " %16s", "-");
	else
		text_printf(line, " %9" PRIu64 ".%06" PRIu64, time_us / US_PER_S,
			    time_us % US_PER_S);
}

static void print_heading(void)
{
	(void)printf("%-18s %8s %16s %16s %-9s %s\n", "address", "bytes", "since [s]", "until [s]",
		     "source", "name");
}

static void print_code(const struct jit_code *code)
{
	struct text line = {0};

	text_printf(&line, "0x%016" PRIx64 " %8" PRIu64, code->start_addr, code->nr_bytes);
	append_time(&line, code->from_ns);
	append_time(&line, code->to_ns);
	text_printf(&line, " %-9s ", jit_source_text(code->source));
	label_append_escaped(&line, code->name, strlen(code->name), LABEL_DISPLAY);
	text_puts(&line, "\n");
	(void)text_write(&line, stdout);
	text_done(&line);
}

/* JSON. */

static void write_addr(struct json *json, const char *key, remote_addr addr)
{
	char digits[32];

	(void)snprintf(digits, sizeof(digits), "0x%" PRIx64, addr);
	json_member_string(json, key, digits);
}

static void write_code(struct json *json, const struct jit_code *code)
{
	json_object_begin(json);
	write_addr(json, "address", code->start_addr);
	json_member_u64(json, "size", code->nr_bytes);
	json_member_string(json, "name", code->name);
	json_member_string(json, "source", jit_source_text(code->source));
	json_member_u64(json, "from_ns", code->from_ns);
	json_key(json, "to_ns");
	if (code->to_ns == JIT_MAP_OPEN_NS)
		json_null(json);
	else
		json_u64(json, code->to_ns);
	json_member_u64(json, "index", code->code_index);
	json_member_bool(json, "lines", code->lines_place != 0);
	json_member_bool(json, "unwind", code->unwind_place != 0);
	json_object_end(json);
}

static void write_file(struct json *json, const struct jit_file *file)
{
	const struct jitdump_header *header = file->jitdump ? jitdump_header(file->jitdump) : NULL;

	json_object_begin(json);
	json_member_string(json, "path", file->path);
	json_member_string(json, "source", jit_source_text(file->source));
	json_key(json, "pid");
	if (file->pid)
		json_i64(json, file->pid);
	else
		json_null(json);
	json_member_bool(json, "times_are_ticks", header && header->has_ticks);
	json_member_string(json, "error", file->error ? jit_target_error_text(file->error) : NULL);
	json_object_end(json);
}

static int write_json(const struct jit_target *target, const uint32_t *indexes, uint32_t nr)
{
	uint32_t nr_files, nr_codes;
	const struct jit_file *files = jit_sources_files(target->sources, &nr_files);
	const struct jit_code *codes = jit_map_codes(jit_sources_map(target->sources), &nr_codes);
	struct json json;

	json_init(&json, stdout, 1);
	json_object_begin(&json);
	json_key(&json, "files");
	json_array_begin(&json);
	for (uint32_t i = 0; i < nr_files; i++)
		write_file(&json, &files[i]);
	json_array_end(&json);
	json_key(&json, "codes");
	json_array_begin(&json);
	for (uint32_t i = 0; i < nr; i++)
		write_code(&json, &codes[indexes[i]]);
	json_array_end(&json);
	json_object_end(&json);
	return json_finish(&json);
}

/* All code. */

static void note_files(const struct jit_target *target)
{
	uint32_t nr_files;
	const struct jit_file *files = jit_sources_files(target->sources, &nr_files);

	for (uint32_t i = 0; i < nr_files; i++) {
		const struct jit_file *file = &files[i];
		const struct jitdump_header *header =
			file->jitdump ? jitdump_header(file->jitdump) : NULL;

		if (file->error)
			print_note("%s is ignored: %s", file->path,
				   jit_target_error_text(file->error));
		if (header && header->has_ticks)
			print_note("%s has processor clock ticks as times, not seconds",
				   file->path);
	}
}

enum exit_status jit_list_print(const struct jit_target *target, bool as_json,
				struct message *reterr)
{
	const struct jit_map *map = jit_sources_map(target->sources);
	uint32_t nr_codes, nr;
	const struct jit_code *codes = jit_map_codes(map, &nr_codes);
	cleanup_free uint32_t *indexes = NULL;

	if (jit_map_sort(map, &indexes, &nr)) {
		message_set(reterr, "out of memory");
		return EXIT_ERROR;
	}
	note_files(target);
	if (as_json) {
		(void)write_json(target, indexes, nr); /* print_finish() reports errors */
		return EXIT_OK;
	}
	print_heading();
	for (uint32_t i = 0; i < nr; i++)
		print_code(&codes[indexes[i]]);
	return EXIT_OK;
}

uint32_t jit_list_print_new(const struct jit_target *target, uint32_t first, bool as_json)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(jit_sources_map(target->sources), &nr_codes);
	struct json json;

	json_init(&json, stdout, 0);
	if (!first && nr_codes && !as_json)
		print_heading();
	for (uint32_t i = first; i < nr_codes; i++)
		if (as_json) {
			write_code(&json, &codes[i]);
			json_next(&json);
		} else {
			print_code(&codes[i]);
		}
	return nr_codes;
}
