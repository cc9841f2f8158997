/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/text.h"

static const char *const record_names[NR_JITDUMP_IDS] = {
	[JITDUMP_LOAD] = "LOAD",
	[JITDUMP_MOVE] = "MOVE",
	[JITDUMP_DEBUG_INFO] = "DEBUG_INFO",
	[JITDUMP_CLOSE] = "CLOSE",
	[JITDUMP_UNWINDING_INFO] = "UNWINDING_INFO",
};

/* The name of each fault in JSON, its text, and whether it is damage. */
static const struct {
	const char *key;
	const char *text;
	bool is_damage;
} faults[NR_JITDUMP_FAULTS] = {
	[JITDUMP_SKIPPED] = {"skipped", "bytes outside any record", true},
	[JITDUMP_INCOMPLETE] =
		{"incomplete",
		 "the last record is incomplete (if its process still runs, use --verify PID)",
		 true},
	[JITDUMP_DUPLICATE] = {"duplicate", "a duplicate record", true},
	[JITDUMP_ORPHAN_LINES] = {"orphan_lines", "a DEBUG_INFO not followed by its LOAD", true},
	[JITDUMP_ORPHAN_UNWINDING] = {"orphan_unwinding",
				      "an UNWINDING_INFO not followed by its LOAD", true},
	[JITDUMP_UNKNOWN_MOVE] = {"unknown_move", "a MOVE of unknown code", true},
	[JITDUMP_UNKNOWN_ID] = {"unknown_id", "a record of unknown type", false},
	[JITDUMP_OTHER_PROCESS] = {"other_process", "a record of another process", true},
	[JITDUMP_EMPTY_CODE] = {"empty_code", "a LOAD without code", false},
	[JITDUMP_REFUSED] = {"refused", "a record beyond the limit on functions or names", true},
	[JITDUMP_AFTER_CLOSE] = {"after_close", "a record after CLOSE", true},
	[JITDUMP_RESTARTED] = {"restarted", "the file was truncated or rewritten", true},
};

static bool is_damaged(const struct jit_file *file)
{
	const struct jitdump_stats *stats = jitdump_stats(file->jitdump);

	for (size_t i = 0; i < NR_JITDUMP_FAULTS; i++)
		if (faults[i].is_damage && stats->nr_faults[i])
			return true;
	return file->error || !jitdump_header(file->jitdump);
}

/*
 * Returns how many functions are in the file. What its process has not written yet does not
 * count.
 */
static uint32_t nr_codes_of(const struct jit_target *target, const struct jit_file *file,
			    uint32_t file_index)
{
	const uint64_t end_offset = jitdump_offset(file->jitdump);
	uint32_t nr_codes, nr = 0;
	const struct jit_code *codes = jit_map_codes(jit_sources_map(target->sources), &nr_codes);

	for (uint32_t i = 0; i < nr_codes; i++)
		nr += codes[i].source == JIT_SOURCE_JITDUMP && codes[i].file_index == file_index &&
		      codes[i].code_place < end_offset;
	return nr;
}

/* Text. */

static void append_header(struct text *text, const struct jit_file *file)
{
	const struct jitdump_header *header = jitdump_header(file->jitdump);

	label_append_escaped(text, file->path, strlen(file->path), LABEL_DISPLAY);
	if (!header) {
		text_printf(text, ": %s\n",
			    file->error ? jit_target_error_text(file->error)
					: "it has no header yet");
		return;
	}
	text_printf(text,
		    "\nheader       %s endian, %" PRIu32 " bytes, ELF machine %" PRIu32
		    ", pid %" PRIu32 ", times in %s\n",
		    header->is_big_endian ? "big" : "little", header->nr_bytes, header->elf_machine,
		    header->pid, header->has_ticks ? "processor ticks" : "nanoseconds");
	if (file->error)
		text_printf(text, "stopped      %s\n", jit_target_error_text(file->error));
}

static void append_counts(struct text *text, const struct jitdump_stats *stats, uint32_t nr_codes)
{
	text_puts(text, "records     ");
	for (size_t i = 0; i < NR_JITDUMP_IDS; i++)
		text_printf(text, " %s %" PRIu64, record_names[i], stats->nr_records[i]);
	text_printf(text, "\ncodes        %" PRIu32 "\n", nr_codes);
}

static void append_places(struct text *text, const struct jitdump_stats *stats)
{
	uint64_t nr_faults = 0;

	for (size_t i = 0; i < NR_JITDUMP_FAULTS; i++)
		nr_faults += stats->nr_faults[i];
	for (uint32_t i = 0; i < stats->nr_places; i++) {
		const struct jitdump_place *place = &stats->places[i];

		text_printf(text, "at %-9" PRIu64 " %s: %" PRIu64 " bytes\n", place->offset,
			    faults[place->fault].text, place->nr_bytes);
	}
	if (nr_faults > stats->nr_places)
		text_printf(text, "…            and %" PRIu64 " more\n",
			    nr_faults - stats->nr_places);
}

static void append_verdict(struct text *text, const struct jit_file *file)
{
	const struct jitdump_stats *stats = jitdump_stats(file->jitdump);

	text_puts(text, "verdict      ");
	if (!is_damaged(file)) {
		text_puts(text, "sound\n");
		return;
	}
	text_printf(text,
		    "damaged: %" PRIu64 " bytes skipped in %" PRIu64 " place%s, %" PRIu64
		    " duplicate%s\n",
		    stats->skipped_bytes,
		    stats->nr_faults[JITDUMP_SKIPPED] + stats->nr_faults[JITDUMP_INCOMPLETE],
		    text_plural(stats->nr_faults[JITDUMP_SKIPPED] +
				stats->nr_faults[JITDUMP_INCOMPLETE]),
		    stats->nr_faults[JITDUMP_DUPLICATE],
		    text_plural(stats->nr_faults[JITDUMP_DUPLICATE]));
}

static void print_file(const struct jit_target *target, const struct jit_file *file, uint32_t index)
{
	const struct jitdump_stats *stats = jitdump_stats(file->jitdump);
	struct text text = {0};

	append_header(&text, file);
	if (jitdump_header(file->jitdump)) {
		append_counts(&text, stats, nr_codes_of(target, file, index));
		append_places(&text, stats);
		append_verdict(&text, file);
	}
	(void)text_write(&text, stdout);
	text_done(&text);
}

/* JSON. */

static void write_places(struct json *json, const struct jitdump_stats *stats)
{
	json_key(json, "places");
	json_array_begin(json);
	for (uint32_t i = 0; i < stats->nr_places; i++) {
		json_object_begin(json);
		json_member_u64(json, "offset", stats->places[i].offset);
		json_member_u64(json, "bytes", stats->places[i].nr_bytes);
		json_member_string(json, "fault", faults[stats->places[i].fault].key);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_header(struct json *json, const struct jitdump_header *header)
{
	json_key(json, "header");
	if (!header) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_member_bool(json, "big_endian", header->is_big_endian);
	json_member_u64(json, "size", header->nr_bytes);
	json_member_u64(json, "elf_machine", header->elf_machine);
	json_member_u64(json, "pid", header->pid);
	json_member_u64(json, "timestamp", header->timestamp);
	json_member_bool(json, "times_are_ticks", header->has_ticks);
	json_object_end(json);
}

static void write_file(struct json *json, const struct jit_target *target,
		       const struct jit_file *file, uint32_t index)
{
	const struct jitdump_stats *stats = jitdump_stats(file->jitdump);

	json_object_begin(json);
	json_member_string(json, "path", file->path);
	json_member_string(json, "error", file->error ? jit_target_error_text(file->error) : NULL);
	write_header(json, jitdump_header(file->jitdump));
	json_key(json, "records");
	json_object_begin(json);
	for (size_t i = 0; i < NR_JITDUMP_IDS; i++)
		json_member_u64(json, record_names[i], stats->nr_records[i]);
	json_object_end(json);
	json_member_u64(json, "codes", nr_codes_of(target, file, index));
	json_member_u64(json, "skipped_bytes", stats->skipped_bytes);
	json_key(json, "faults");
	json_object_begin(json);
	for (size_t i = 0; i < NR_JITDUMP_FAULTS; i++)
		json_member_u64(json, faults[i].key, stats->nr_faults[i]);
	json_object_end(json);
	write_places(json, stats);
	json_member_bool(json, "damaged", is_damaged(file));
	json_object_end(json);
}

static void explain_no_jitdump(const struct jit_target *target, struct message *reterr)
{
	if (jit_target_is_process(target))
		message_set(
			reterr,
			"process %d has no jitdump mapped, so there is nothing to check; python3 "
			"-X perf_jit writes one",
			target->process.pid);
	else
		message_set(reterr, "a perf map cannot be checked: only jitdumps can");
}

enum exit_status jit_verify_print(const struct jit_target *target, bool as_json,
				  struct message *reterr)
{
	uint32_t nr_files, nr_jitdumps = 0;
	const struct jit_file *files = jit_sources_files(target->sources, &nr_files);
	bool damaged = false;
	struct json json;

	json_init(&json, stdout, 1);
	if (as_json)
		json_array_begin(&json);
	for (uint32_t i = 0; i < nr_files; i++) {
		if (!files[i].jitdump)
			continue;
		nr_jitdumps++;
		damaged |= is_damaged(&files[i]);
		if (as_json)
			write_file(&json, target, &files[i], i);
		else
			print_file(target, &files[i], i);
	}
	if (as_json) {
		json_array_end(&json);
		(void)json_finish(&json); /* print_finish() reports errors */
	}
	if (!nr_jitdumps) {
		explain_no_jitdump(target, reterr);
		return EXIT_NO_SAMPLE;
	}
	return damaged ? EXIT_ERROR : EXIT_OK;
}
