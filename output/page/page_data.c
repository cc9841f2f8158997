/* SPDX-License-Identifier: MIT */
#include "output/page/page_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/page/page_columns.h"
#include "output/page/page_index.h"
#include "output/page/page_source.h"
#include "output/profile/label.h"
#include "output/run/run_json.h"
#include "output/text/json.h"

#define PAGE_DATA_VERSION 1
#define US_PER_MS	  1000.0
#define NS_PER_US	  1000u

struct page_data {
	const struct artefact *artefact; /* borrowed */
	struct page_index index;
	struct page_sources sources;
	const struct page_column *columns[PAGE_MAX_COLUMNS];
	struct page_numbers sizes[PAGE_MAX_COLUMNS]; /* parallel to columns */
	uint32_t nr_columns;
};

static void page_data_done(struct page_data *data)
{
	page_sources_done(&data->sources);
	page_index_done(&data->index);
}

static int page_data_init(struct page_data *data, const struct artefact *artefact)
{
	int err;

	*data = (struct page_data){.artefact = artefact};
	err = page_index_init(&data->index, artefact);
	if (err)
		return err;
	err = page_sources_read(&data->sources, &data->index, artefact);
	if (err) {
		page_index_done(&data->index);
		return err;
	}
	page_columns_choose(&data->index, artefact->has_base, data->columns, &data->nr_columns);
	for (uint32_t i = 0; i < data->nr_columns; i++)
		data->sizes[i] = page_column_measure(data->columns[i], &data->index);
	return 0;
}

static void write_runs(struct json *json, const char *key, const struct run *runs, uint32_t nr)
{
	json_key(json, key);
	json_array_begin(json);
	for (uint32_t i = 0; i < nr; i++)
		run_append_json(json, &runs[i]);
	json_array_end(json);
}

static void write_strings(struct json *json, const struct string_table *strings)
{
	json_key(json, "strings");
	json_array_begin(json);
	for (uint32_t i = 0; i < strings->nr; i++)
		json_string(json, strings->strings[i]);
	json_array_end(json);
}

static void write_processes(struct json *json, const struct profile *profile)
{
	uint32_t nr;
	const struct profile_process *processes = profile_processes(profile, &nr);
	struct text name = {0};

	json_key(json, "processes");
	json_array_begin(json);
	for (uint32_t i = 0; i < nr; i++) {
		json_object_begin(json);
		json_key(json, "pid");
		json_i64(json, processes[i].pid);
		json_member_string(json, "command_line", processes[i].command_line);
		text_clear(&name);
		label_append_process_name(&name, &processes[i], LABEL_DISPLAY);
		json_member_string(json, "name", text_string(&name));
		json_object_end(json);
	}
	json_array_end(json);
	text_done(&name);
}

/* Write the numbers of the functions that are roots of one kind. */
static void write_roots(struct json *json, const char *key, const struct page_index *index,
			enum root_kind kind)
{
	uint32_t nr;
	uint32_t root; /* the next; roots come after the functions */
	const struct profile_frame *frames = profile_frames(index->profile, &nr);

	(void)profile_functions(index->profile, &root);
	json_key(json, key);
	json_array_begin(json);
	for (uint32_t i = 0; i < index->nr_frames; i++) {
		const struct profile_frame *frame = &frames[index->frames[i]];

		if (frame->root == kind)
			json_u64(json, root);
		root += frame->root != ROOT_NONE;
	}
	json_array_end(json);
}

static void write_thread(struct json *json, const struct profile_thread *thread)
{
	json_object_begin(json);
	json_key(json, "process");
	if (thread->process == PROFILE_NONE)
		json_null(json);
	else
		json_u64(json, thread->process);
	json_key(json, "tid");
	json_i64(json, thread->tid);
	json_key(json, "name");
	json_string_n(json, thread->name, strnlen(thread->name, sizeof(thread->name)));
	json_member_bool(json, "main", thread->is_main);
	json_key(json, "interpreter");
	json_i64(json, thread->interpreter_id);
	json_object_end(json);
}

static void write_threads(struct json *json, const struct profile *profile)
{
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(profile, &nr);

	json_key(json, "threads");
	json_array_begin(json);
	for (uint32_t i = 0; i < nr; i++)
		write_thread(json, &threads[i]);
	json_array_end(json);
}

/* Write the meaning of function.kind and function.origin. */
static void write_names(struct json *json)
{
	json_key(json, "kinds");
	json_array_begin(json);
	for (int i = 0; i < NR_FUNCTION_KINDS; i++)
		json_string(json, label_kind((enum function_kind)i));
	json_array_end(json);
	json_key(json, "origins");
	json_array_begin(json);
	for (int i = 0; i < NR_ORIGINS; i++)
		json_string(json, origin_name((enum origin)i));
	json_array_end(json);
}

static void write_source(struct json *json, const struct page_source *source)
{
	const char *line = source->lines;

	json_object_begin(json);
	json_key(json, "path");
	json_u64(json, source->path);
	json_key(json, "first");
	json_u64(json, source->first_line);
	json_key(json, "lines");
	json_array_begin(json);
	for (uint32_t i = 0; i < source->nr_lines; i++, line += strlen(line) + 1)
		json_string(json, line);
	json_array_end(json);
	json_object_end(json);
}

static void write_columns(struct json *json, const struct page_data *data)
{
	json_key(json, "columns");
	json_array_begin(json);
	for (uint32_t i = 0; i < data->nr_columns; i++) {
		json_object_begin(json);
		json_key(json, "name");
		json_string(json, data->columns[i]->name);
		json_key(json, "type");
		json_string(json, data->columns[i]->is_signed ? "s" : "u");
		json_key(json, "count");
		json_u64(json, data->sizes[i].nr);
		json_key(json, "bytes");
		json_u64(json, data->sizes[i].bytes);
		if (data->sizes[i].unit > 1) {
			json_key(json, "unit");
			json_u64(json, data->sizes[i].unit);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

/* Write the base's samples without frames and root, which have no node. */
static void write_base_idle(struct json *json, const struct profile *profile)
{
	const struct profile_weight base = profile_rootless_idle(profile, PROFILE_BASE);

	json_key(json, "base_idle");
	json_object_begin(json);
	json_member_u64(json, "samples", base.samples);
	json_member_u64(json, "weight", (base.ns + NS_PER_US / 2) / NS_PER_US);
	json_object_end(json);
}

/* Write the share of the samples shown, of both sides, that is approximate. */
static void write_approximate(struct json *json, const struct profile *profile)
{
	uint64_t nr = 0, nr_shown = 0;

	for (int side = 0; side < NR_PROFILE_SIDES; side++) {
		const struct profile_account *account =
			&profile_sums(profile, (enum profile_side)side)->account;

		nr += account->nr_approximate;
		nr_shown += account->nr_shown;
	}
	json_member_double(json, "approximate", nr_shown ? (double)nr / (double)nr_shown : 0);
}

static void write_caveats(struct json *json, const struct artefact *artefact)
{
	struct text text = {0};

	caveats_append(&text, artefact);
	json_member_string(json, "caveats", text_string(&text));
	text_done(&text);
}

static int meta_write(const struct page_data *data, FILE *out)
{
	const struct artefact *artefact = data->artefact;
	struct json json;

	json_init(&json, out, 0);
	json_object_begin(&json);
	json_key(&json, "version");
	json_u64(&json, PAGE_DATA_VERSION);
	json_member_string(&json, "pysample", PYSAMPLE_VERSION);
	json_member_string(&json, "mode", profile_mode_name(profile_mode(artefact->profile)));
	json_member_bool(&json, "hides_idle", artefact->options.hides_idle);
	json_member_string(&json, "unit", "us");
	json_member_bool(&json, "has_base", artefact->has_base);
	json_key(&json, "start_ms");
	json_double(&json, (double)data->index.start_us / US_PER_MS);
	json_key(&json, "first_us");
	json_u64(&json, data->index.nr_ticks ? data->index.ticks_us[0] : 0);
	write_runs(&json, "runs", artefact->runs, artefact->nr_runs);
	write_runs(&json, "base_runs", artefact->base_runs, artefact->nr_base_runs);
	write_caveats(&json, artefact);
	write_approximate(&json, artefact->profile);
	if (artefact->has_base)
		write_base_idle(&json, artefact->profile);
	write_strings(&json, &data->index.strings);
	write_processes(&json, artefact->profile);
	write_threads(&json, artefact->profile);
	write_roots(&json, "process_roots", &data->index, ROOT_PROCESS);
	write_roots(&json, "thread_roots", &data->index, ROOT_THREAD);
	write_names(&json);
	json_key(&json, "sources");
	json_array_begin(&json);
	for (uint32_t i = 0; i < data->sources.nr; i++)
		write_source(&json, &data->sources.rows[i]);
	json_array_end(&json);
	write_columns(&json, data);
	json_object_end(&json);
	return json_finish(&json);
}

/* For fopencookie(3): count the bytes. */
static ssize_t count_bytes(void *cookie, const char *bytes, size_t length)
{
	size_t *total = cookie;

	(void)bytes;
	*total += length;
	return (ssize_t)length;
}

/* Compute the length of the header. */
static int meta_measure(const struct page_data *data, size_t *ret_bytes)
{
	static const cookie_io_functions_t functions = {.write = count_bytes};
	FILE *counter;
	int err;

	*ret_bytes = 0;
	counter = fopencookie(ret_bytes, "w", functions);
	if (!counter)
		return -ENOMEM;
	err = meta_write(data, counter);
	return fclose(counter) && !err ? -errno : err;
}

static int length_write(size_t length, FILE *out)
{
	if (length > UINT32_MAX)
		return -E2BIG;
	for (unsigned shift = 0; shift < 32; shift += 8)
		(void)putc((int)(length >> shift & 0xff), out);
	return 0;
}

/* Write a column and flush, because each column compresses best on its own: gzip.h. */
static int column_write(const struct page_data *data, uint32_t i, FILE *out)
{
	page_column_write(data->columns[i], &data->index, data->sizes[i].unit, out);
	errno = EIO; /* in case the stream fails without setting it */
	return fflush(out) ? -errno : 0;
}

int page_data_write(const struct artefact *artefact, FILE *out)
{
	struct page_data data;
	size_t meta_bytes;
	int err = page_data_init(&data, artefact);

	if (err)
		return err;
	err = meta_measure(&data, &meta_bytes);
	if (!err)
		err = length_write(meta_bytes, out);
	if (!err)
		err = meta_write(&data, out);
	for (uint32_t i = 0; !err && i < data.nr_columns; i++)
		err = column_write(&data, i, out);
	page_data_done(&data);
	return err;
}
