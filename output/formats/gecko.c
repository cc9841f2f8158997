/* SPDX-License-Identifier: MIT */
#include "output/formats/gecko.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/caveats.h"
#include "output/encoding/gzip.h"
#include "output/formats/gecko_markers.h"
#include "output/profile/origin.h"
#include "output/profile/thread_samples.h"
#include "output/run/stats.h"
#include "output/tables/string_table.h"
#include "output/text/json.h"
#include "output/text/text.h"

#define FORMAT_VERSION 60

#define NS_PER_US 1000u

#define MS_PER_S 1000

/* The category of samples without frames, after those of the origins. */
enum { IDLE = NR_ORIGINS };

/* Decimals to write nanoseconds with, as milliseconds or microseconds. */
enum { MS = 6, US = 3 };

/* State of the writer. */
struct writer {
	struct json json;
	const struct profile *profile;
	struct thread_samples samples;
	const struct profile_function *functions;
	const struct profile_frame *frames;
	const struct profile_node *nodes;
	const struct profile_sample *rows;
	uint32_t nr_functions, nr_frames, nr_nodes;
	struct string_table strings;
	struct string_table sources;	  /* paths of files */
	struct string_table libraries;	  /* paths of native functions' modules */
	const struct thread_slice *slice; /* the thread being written */
	struct text text;
	int error; /* the first one, except the stream's, which is in json */
};

/* A column of a table: one value a row. */
struct column {
	const char *name;
	void (*value)(struct writer *writer, uint32_t row);
};

/* JSON by members and columns. */

/* Write a member that is an array of nr_rows values. */
static void put_column(struct writer *writer, const struct column *column, uint32_t nr_rows)
{
	json_key(&writer->json, column->name);
	json_array_begin(&writer->json);
	for (uint32_t i = 0; i < nr_rows && !writer->json.error; i++)
		column->value(writer, i);
	json_array_end(&writer->json);
}

/* Write columns, up to one without a name, and their length into an open object. */
static void put_columns(struct writer *writer, const struct column *columns, uint32_t nr_rows)
{
	for (; columns->name; columns++)
		put_column(writer, columns, nr_rows);
	json_member_u64(&writer->json, "length", nr_rows);
}

static void put_empty_array(struct json *json, const char *key)
{
	json_key(json, key);
	json_array_begin(json);
	json_array_end(json);
}

/* Write nanoseconds in a larger unit, with that many decimals. */
static void put_fixed(struct json *json, const char *key, uint64_t ns, unsigned decimals)
{
	json_key(json, key);
	json_fixed(json, ns, decimals);
}

/*
 * Write the number of a string in a table of strings, which it is added to. The string is
 * borrowed until the end.
 */
static void put_string_number(struct writer *writer, struct string_table *table, const char *string)
{
	uint32_t number = 0;
	int err = string_table_get(table, string, &number);

	if (err && !writer->error)
		writer->error = err;
	json_u64(&writer->json, number);
}

/* The meta object. */

/* The Firefox Profiler accepts only these colours, and requires one category to be grey. */
static const char *const category_colours[] = {
	[ORIGIN_APPLICATION] = "yellow",
	[ORIGIN_SITE_PACKAGES] = "green",
	[ORIGIN_STANDARD_LIBRARY] = "lightblue",
	[ORIGIN_NATIVE] = "purple",
	[ORIGIN_JIT] = "magenta",
	[ORIGIN_COLLECTOR] = "orange",
	[ORIGIN_KERNEL] = "lightred",
	[ORIGIN_TASK] = "blue",
	[ORIGIN_OTHER] = "grey",
	[IDLE] = "transparent",
};

static void categories_write(struct writer *writer)
{
	struct json *json = &writer->json;

	json_key(json, "categories");
	json_array_begin(json);
	for (int i = 0; i <= IDLE; i++) {
		json_object_begin(json);
		json_member_string(json, "name", i == IDLE ? "idle" : origin_name((enum origin)i));
		json_member_string(json, "color", category_colours[i]);
		json_key(json, "subcategories");
		json_array_begin(json);
		json_string(json, "Other");
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void marker_schema_write(struct writer *writer)
{
	static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
	struct json *json = &writer->json;

	json_key(json, "markerSchema");
	json_array_begin(json);
	for (int i = 0; i < NR_GECKO_MARKERS; i++) {
		json_object_begin(json);
		json_member_string(json, "name", gecko_marker_name((enum gecko_marker_kind)i));
		json_key(json, "display");
		json_array_begin(json);
		for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++)
			json_string(json, places[k]);
		json_array_end(json);
		put_empty_array(json, "fields");
		json_object_end(json);
	}
	json_array_end(json);
}

static void units_write(struct writer *writer)
{
	json_key(&writer->json, "sampleUnits");
	json_object_begin(&writer->json);
	json_member_string(&writer->json, "time", "ms");
	json_member_string(&writer->json, "eventDelay", "ms");
	json_member_string(&writer->json, "threadCPUDelta", "\u00b5s");
	json_object_end(&writer->json);
}

/* Callback of run_for_each_pair(). */
static void pair_write(void *context, const char *name, const char *value)
{
	struct writer *writer = context;

	json_object_begin(&writer->json);
	json_member_string(&writer->json, "label", name);
	json_member_string(&writer->json, "format", "string");
	json_member_string(&writer->json, "value", value);
	json_object_end(&writer->json);
}

/* Write a section for each run, which the page shows as "additional information". */
static void runs_write(struct writer *writer, const struct artefact *artefact)
{
	struct json *json = &writer->json;
	struct text caveats = {0};

	caveats_append(&caveats, artefact);
	if (caveats.error)
		writer->error = caveats.error;

	json_key(json, "extra");
	json_array_begin(json);
	for (uint32_t i = 0; i < artefact->nr_runs; i++) {
		json_object_begin(json);
		text_clear(&writer->text);
		text_printf(&writer->text, "pysample, run %u", i + 1);
		json_member_string(json, "label", text_string(&writer->text));
		json_key(json, "entries");
		json_array_begin(json);
		if (caveats.length)
			pair_write(writer, "note", text_string(&caveats));
		run_for_each_pair(&artefact->runs[i], pair_write, writer);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	text_done(&caveats);
}

/* Returns the time between ticks: as requested, else as achieved. */
static double interval_ms(const struct artefact *artefact)
{
	const struct run *run = artefact->runs;
	double hz = 0;

	if (artefact->nr_runs)
		hz = run->info.requested_hz > 0 ? run->info.requested_hz
						: stats_achieved_hz(&run->stats);
	return hz > 0 ? MS_PER_S / hz : 1;
}

static bool is_named(const struct writer *writer, uint32_t function)
{
	return function < writer->nr_functions;
}

static bool is_native(const struct writer *writer, uint32_t function)
{
	enum function_kind kind;

	if (!is_named(writer, function))
		return false;
	kind = writer->functions[function].kind;
	return kind == FUNCTION_NATIVE || kind == FUNCTION_JIT || kind == FUNCTION_KERNEL;
}

static bool has_native(const struct writer *writer)
{
	for (uint32_t i = 0; i < writer->nr_functions; i++)
		if (is_native(writer, i))
			return true;
	return false;
}

static void meta_write(struct writer *writer, const struct artefact *artefact)
{
	const char *command = artefact->nr_runs ? artefact->runs[0].info.target.command_line : NULL;
	struct json *json = &writer->json;

	json_key(json, "meta");
	json_object_begin(json);
	json_member_u64(json, "preprocessedProfileVersion", FORMAT_VERSION);
	json_member_u64(json, "version", 24);
	json_member_string(json, "importedFrom", "pysample " PYSAMPLE_VERSION);
	json_member_string(json, "product", command && command[0] ? command : "Python");
	json_member_double(json, "interval", interval_ms(artefact));
	put_fixed(json, "startTime", writer->samples.start_ns, MS);
	json_member_u64(json, "profilingStartTime", 0);
	/* The page shows the time before this, so the last sample must be earlier. */
	put_fixed(json, "profilingEndTime",
		  writer->samples.end_ns - writer->samples.start_ns + NS_PER_US, MS);
	json_member_u64(json, "processType", 0);
	json_member_u64(json, "stackwalk", 1);
	json_member_bool(json, "debug", false);
	json_member_bool(json, "symbolicated", true);
	json_member_bool(json, "usesOnlyOneStackType", !has_native(writer));
	json_member_bool(json, "sourceCodeIsNotOnSearchfox", true);
	categories_write(writer);
	marker_schema_write(writer);
	units_write(writer);
	runs_write(writer, artefact);
	json_object_end(json);
}

/* Functions, frames, stacks, and the tables they refer to. */

/* Resource type of a library. */
enum { RESOURCE_LIBRARY = 1 };

static void table_write(struct writer *writer, const char *name, const struct column *columns,
			uint32_t nr_rows)
{
	json_key(&writer->json, name);
	json_object_begin(&writer->json);
	put_columns(writer, columns, nr_rows);
	json_object_end(&writer->json);
}

static void value_null(struct writer *writer, uint32_t row)
{
	(void)row;
	json_null(&writer->json);
}

static void value_zero(struct writer *writer, uint32_t row)
{
	(void)row;
	json_u64(&writer->json, 0);
}

static void value_none(struct writer *writer, uint32_t row)
{
	(void)row;
	json_i64(&writer->json, -1);
}

/*
 * The tables of functions, frames and stacks have the rows of the profile, and one more for
 * samples without frames. A thread's root has rows as well, with the function of that last one,
 * but no sample or prefix refers to them.
 */
/* Whether a function's path is a source file, not the module of its machine code. */
static bool is_python(const struct writer *writer, uint32_t function)
{
	return is_named(writer, function) && writer->functions[function].kind == FUNCTION_PYTHON;
}

static void func_name(struct writer *writer, uint32_t row)
{
	const char *name = LABEL_NO_PYTHON_FRAMES;

	if (is_named(writer, row))
		name = writer->functions[row].qualname[0] ? writer->functions[row].qualname : "?";
	put_string_number(writer, &writer->strings, name);
}

/* The page treats JavaScript as interpreted code; with this its views of one kind or both work. */
static void func_is_js(struct writer *writer, uint32_t row)
{
	json_bool(&writer->json, is_python(writer, row));
}

static void func_source(struct writer *writer, uint32_t row)
{
	if (is_python(writer, row) && writer->functions[row].path[0])
		put_string_number(writer, &writer->sources, writer->functions[row].path);
	else
		json_null(&writer->json);
}

static void func_resource(struct writer *writer, uint32_t row)
{
	if (is_native(writer, row) && writer->functions[row].path[0])
		put_string_number(writer, &writer->libraries, writer->functions[row].path);
	else
		json_i64(&writer->json, -1);
}

static void line_write(struct writer *writer, int32_t line)
{
	if (line)
		json_i64(&writer->json, line);
	else
		json_null(&writer->json);
}

static void func_line(struct writer *writer, uint32_t row)
{
	line_write(writer, is_named(writer, row) ? writer->functions[row].first_line : 0);
}

/* Returns the function of a frame; without one, that of samples without frames. */
static uint32_t frame_function(const struct writer *writer, uint32_t frame)
{
	if (frame == writer->nr_frames || writer->frames[frame].function == PROFILE_NONE)
		return writer->nr_functions;
	return writer->frames[frame].function;
}

static void frame_category(struct writer *writer, uint32_t row)
{
	uint32_t function = frame_function(writer, row);

	if (is_named(writer, function))
		json_u64(&writer->json, (uint64_t)origin_of(&writer->functions[function]));
	else
		json_u64(&writer->json, IDLE);
}

static void frame_func(struct writer *writer, uint32_t row)
{
	json_u64(&writer->json, frame_function(writer, row));
}

static void frame_line(struct writer *writer, uint32_t row)
{
	line_write(writer, row < writer->nr_frames ? writer->frames[row].line : 0);
}

static void stack_frame(struct writer *writer, uint32_t row)
{
	json_u64(&writer->json,
		 row < writer->nr_nodes ? writer->nodes[row].frame : writer->nr_frames);
}

static void stack_prefix(struct writer *writer, uint32_t row)
{
	uint32_t parent = row < writer->nr_nodes ? writer->nodes[row].parent : PROFILE_NONE;

	parent = thread_samples_node(writer->profile, parent);
	if (parent == PROFILE_NONE)
		json_null(&writer->json);
	else
		json_u64(&writer->json, parent);
}

static void source_name(struct writer *writer, uint32_t row)
{
	put_string_number(writer, &writer->strings, writer->sources.strings[row]);
}

static void library_name(struct writer *writer, uint32_t row)
{
	put_string_number(writer, &writer->strings, writer->libraries.strings[row]);
}

static void library_type(struct writer *writer, uint32_t row)
{
	(void)row;
	json_u64(&writer->json, RESOURCE_LIBRARY);
}

static void string_value(struct writer *writer, uint32_t row)
{
	json_string(&writer->json, writer->strings.strings[row]);
}

static const struct column func_columns[] = {
	{"name", func_name},	       {"isJS", func_is_js},
	{"relevantForJS", func_is_js}, {"resource", func_resource},
	{"source", func_source},       {"lineNumber", func_line},
	{"columnNumber", value_null},  {0},
};
static const struct column frame_columns[] = {
	{"address", value_none},       {"inlineDepth", value_zero},
	{"category", frame_category},  {"subcategory", value_zero},
	{"func", frame_func},	       {"nativeSymbol", value_null},
	{"innerWindowID", value_zero}, {"line", frame_line},
	{"column", value_null},	       {0},
};
static const struct column stack_columns[] = {
	{"frame", stack_frame},
	{"prefix", stack_prefix},
	{0},
};
static const struct column source_columns[] = {
	{"uuid", value_null},
	{"filename", source_name},
	{0},
};
static const struct column library_columns[] = {
	{"lib", value_null},
	{"name", library_name},
	{"host", value_null},
	{"type", library_type},
	{0},
};
static const struct column symbol_columns[] = {
	{"libIndex", value_null},
	{"address", value_null},
	{"name", value_null},
	{"functionSize", value_null},
	{0},
};

/*
 * Write the member "shared": the tables that all threads refer to. Strings come last, because the
 * other tables add to them.
 */
static void shared_write(struct writer *writer)
{
	static const struct column strings = {"stringArray", string_value};

	json_key(&writer->json, "shared");
	json_object_begin(&writer->json);
	table_write(writer, "funcTable", func_columns, writer->nr_functions + 1);
	table_write(writer, "frameTable", frame_columns, writer->nr_frames + 1);
	table_write(writer, "stackTable", stack_columns, writer->nr_nodes + 1);
	table_write(writer, "sources", source_columns, writer->sources.nr);
	table_write(writer, "resourceTable", library_columns, writer->libraries.nr);
	table_write(writer, "nativeSymbols", symbol_columns, 0);
	for (int i = 0; i < NR_GECKO_MARKERS && !writer->error; i++) {
		uint32_t number;

		writer->error = string_table_get(
			&writer->strings, gecko_marker_name((enum gecko_marker_kind)i), &number);
	}
	put_column(writer, &strings, writer->strings.nr);
	json_object_end(&writer->json);
}

/* The samples and markers of each thread. */

/* Phase of a marker with a start and an end. */
enum { PHASE_INTERVAL = 1 };

/* Returns a sample of the current thread, by time. */
static const struct profile_sample *sample_at(const struct writer *writer, uint32_t row)
{
	return &writer->rows[writer->samples.order[writer->slice->first + row]];
}

static void sample_stack(struct writer *writer, uint32_t row)
{
	uint32_t node = thread_samples_node(writer->profile, sample_at(writer, row)->node);

	json_u64(&writer->json, node == PROFILE_NONE ? writer->nr_nodes : node);
}

/* Write milliseconds since the start of the first sample of all. */
static void since_start_write(struct writer *writer, uint64_t time_ns)
{
	json_fixed(&writer->json, time_ns - writer->samples.start_ns, MS);
}

static void sample_time(struct writer *writer, uint32_t row)
{
	since_start_write(writer, sample_at(writer, row)->time_ns);
}

static void sample_weight(struct writer *writer, uint32_t row)
{
	json_fixed(&writer->json, sample_at(writer, row)->weight_ns, MS);
}

static void sample_cpu(struct writer *writer, uint32_t row)
{
	const struct profile_sample *sample = sample_at(writer, row);

	if (sample->flags & SAMPLE_CPU_MEASURED)
		json_fixed(&writer->json, sample->cpu_ns, US);
	else
		json_null(&writer->json);
}

static const struct column sample_columns[] = {
	{"stack", sample_stack},
	{"time", sample_time},
	{"weight", sample_weight},
	{0},
};
static const struct column cpu_column = {"threadCPUDelta", sample_cpu};

static void samples_write(struct writer *writer)
{
	uint32_t nr = writer->slice->end - writer->slice->first;
	bool has_cpu = profile_sums(writer->profile, PROFILE_SHOWN)->account.nr_cpu_measured;

	json_key(&writer->json, "samples");
	json_object_begin(&writer->json);
	json_member_string(&writer->json, "weightType", "tracing-ms");
	if (has_cpu)
		put_column(writer, &cpu_column, nr);
	put_columns(writer, sample_columns, nr);
	json_object_end(&writer->json);
}

/* A column of the markers; the markers are computed again for each column. */
struct marker_column {
	const char *name;
	void (*value)(struct writer *writer, const struct gecko_marker *marker);
};

static void marker_name(struct writer *writer, const struct gecko_marker *marker)
{
	put_string_number(writer, &writer->strings, gecko_marker_name(marker->kind));
}

static void marker_start(struct writer *writer, const struct gecko_marker *marker)
{
	since_start_write(writer, marker->begin_ns);
}

static void marker_end(struct writer *writer, const struct gecko_marker *marker)
{
	since_start_write(writer, marker->end_ns);
}

static void marker_phase(struct writer *writer, const struct gecko_marker *marker)
{
	(void)marker;
	json_u64(&writer->json, PHASE_INTERVAL);
}

static void marker_category(struct writer *writer, const struct gecko_marker *marker)
{
	static const int categories[NR_GECKO_MARKERS] = {
		[GECKO_COLLECTS] = ORIGIN_COLLECTOR,  [GECKO_HAS_GIL] = ORIGIN_OTHER,
		[GECKO_WAITS_FOR_GIL] = ORIGIN_OTHER, [GECKO_IN_JIT] = ORIGIN_JIT,
		[GECKO_APPROXIMATE] = ORIGIN_OTHER,   [GECKO_WAITS] = IDLE,
	};

	json_u64(&writer->json, (uint64_t)categories[marker->kind]);
}

static void marker_data(struct writer *writer, const struct gecko_marker *marker)
{
	json_object_begin(&writer->json);
	json_member_string(&writer->json, "type", gecko_marker_name(marker->kind));
	json_object_end(&writer->json);
}

static const struct marker_column marker_columns[] = {
	{"name", marker_name},
	{"startTime", marker_start},
	{"endTime", marker_end},
	{"phase", marker_phase},
	{"category", marker_category},
	{"data", marker_data},
	{0},
};

static uint32_t marker_column_write(struct writer *writer, const struct marker_column *column)
{
	struct gecko_markers markers;
	struct gecko_marker marker;
	uint32_t nr = 0;

	gecko_markers_init(&markers, writer->profile, &writer->samples, writer->slice);
	json_key(&writer->json, column->name);
	json_array_begin(&writer->json);
	for (; gecko_markers_next(&markers, &marker) && !writer->json.error; nr++)
		column->value(writer, &marker);
	json_array_end(&writer->json);
	return nr;
}

static void markers_write(struct writer *writer)
{
	uint32_t nr = 0;

	json_key(&writer->json, "markers");
	json_object_begin(&writer->json);
	for (const struct marker_column *column = marker_columns; column->name; column++)
		nr = marker_column_write(writer, column);
	json_member_u64(&writer->json, "length", nr);
	json_object_end(&writer->json);
}

/* Write a thread's name, ids and process. A thread without a row has a name only. */
static void identity_write(struct writer *writer)
{
	uint32_t thread = writer->slice->thread;
	const struct profile_process *process = thread_samples_process(writer->profile, thread);
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(writer->profile, &nr);
	char pid[24];

	text_clear(&writer->text);
	thread_samples_name(&writer->text, writer->profile, thread);
	json_member_string(&writer->json, "name", text_string(&writer->text));
	json_member_bool(&writer->json, "isMainThread",
			 thread != PROFILE_NONE && threads[thread].is_main);
	json_member_string(&writer->json, "processType", "default");
	if (process && (process->name[0] || process->command_line[0]))
		json_member_string(&writer->json, "processName",
				   process->name[0] ? process->name : process->command_line);
	(void)snprintf(pid, sizeof(pid), "%jd", process ? (intmax_t)process->pid : 0);
	json_member_string(&writer->json, "pid", pid);
	json_key(&writer->json, "tid");
	json_i64(&writer->json, thread == PROFILE_NONE ? 0 : threads[thread].tid);
}

/* Write when the thread's process was first seen, and when it ended. */
static void lifetime_write(struct writer *writer)
{
	const struct profile_process *process =
		thread_samples_process(writer->profile, writer->slice->thread);

	json_key(&writer->json, "processStartupTime");
	since_start_write(writer, process && process->start_ns > writer->samples.start_ns
					  ? process->start_ns
					  : writer->samples.start_ns);
	json_key(&writer->json, "processShutdownTime");
	if (process && process->end_ns > writer->samples.start_ns)
		since_start_write(writer, process->end_ns);
	else
		json_null(&writer->json);
}

static void thread_write(struct writer *writer)
{
	const struct profile_sample *first = sample_at(writer, 0);
	const struct profile_sample *last =
		sample_at(writer, writer->slice->end - writer->slice->first - 1);
	struct json *json = &writer->json;

	json_object_begin(json);
	identity_write(writer);
	lifetime_write(writer);
	json_key(json, "registerTime");
	since_start_write(writer, thread_samples_begin_ns(first));
	json_key(json, "unregisterTime");
	since_start_write(writer, last->time_ns);
	put_empty_array(json, "pausedRanges");
	json_member_bool(json, "showMarkersInTimeline", true);
	samples_write(writer);
	markers_write(writer);
	json_object_end(json);
}

/* Write the member "threads": the threads with their samples and markers. */
static void threads_write(struct writer *writer)
{
	json_key(&writer->json, "threads");
	json_array_begin(&writer->json);
	for (uint32_t i = 0; i < writer->samples.nr_slices && !writer->json.error; i++) {
		writer->slice = &writer->samples.slices[i];
		thread_write(writer);
	}
	json_array_end(&writer->json);
}

/* The document. */

static int document_write(struct writer *writer, const struct artefact *artefact)
{
	struct json *json = &writer->json;
	int err;

	json_object_begin(json);
	meta_write(writer, artefact);
	put_empty_array(json, "libs");
	put_empty_array(json, "pages");
	shared_write(writer);
	threads_write(writer);
	json_object_end(json);
	err = json_finish(json);
	if (!err)
		err = writer->error;
	return err ? err : writer->text.error;
}

static void writer_done(struct writer *writer)
{
	thread_samples_done(&writer->samples);
	string_table_done(&writer->strings);
	string_table_done(&writer->sources);
	string_table_done(&writer->libraries);
	text_done(&writer->text);
}

int gecko_write(const struct artefact *artefact, FILE *out)
{
	const struct profile *profile = artefact->profile;
	struct writer writer = {.profile = profile};
	FILE *compressed;
	uint32_t nr_samples;
	int err = thread_samples_init(&writer.samples, profile);

	if (err)
		return err;
	writer.functions = profile_functions(profile, &writer.nr_functions);
	writer.frames = profile_frames(profile, &writer.nr_frames);
	writer.nodes = profile_nodes(profile, &writer.nr_nodes);
	writer.rows = profile_samples(profile, &nr_samples);
	err = gzip_open_fast(out, &compressed);
	if (!err) {
		int close_err;

		json_init(&writer.json, compressed, 0);
		err = document_write(&writer, artefact);
		close_err = gzip_close(compressed);
		if (!err)
			err = close_err;
	}
	if (!err && fflush(out))
		err = -errno;
	writer_done(&writer);
	return err;
}
