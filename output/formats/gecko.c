/* SPDX-License-Identifier: MIT */
#include "output/formats/gecko.h"

#include <errno.h>
#include <stdbool.h>

#include "output/caveats.h"
#include "output/formats/gecko_markers.h"
#include "output/formats/gecko_writer.h"
#include "output/run/stats.h"
#include "output/text/gzip.h"

#define FORMAT_VERSION 60

#define NS_PER_US 1000u

#define MS_PER_S 1000

/* The Firefox Profiler accepts only these colours, and requires one category to be grey. */
static const char *const category_colours[] = {
	[ORIGIN_APPLICATION] = "yellow",
	[ORIGIN_SITE_PACKAGES] = "green",
	[ORIGIN_STANDARD_LIBRARY] = "lightblue",
	[ORIGIN_NATIVE] = "purple",
	[ORIGIN_JIT] = "magenta",
	[ORIGIN_COLLECTOR] = "orange",
	[ORIGIN_KERNEL] = "lightred",
	[ORIGIN_OTHER] = "grey",
	[GECKO_IDLE] = "transparent",
};

void gecko_column(struct gecko_writer *writer, const struct gecko_column *column, uint32_t nr_rows)
{
	json_key(&writer->json, column->name);
	json_array_begin(&writer->json);
	for (uint32_t i = 0; i < nr_rows && !writer->json.error; i++)
		column->value(writer, i);
	json_array_end(&writer->json);
}

void gecko_columns(struct gecko_writer *writer, const struct gecko_column *columns,
		   uint32_t nr_rows)
{
	for (; columns->name; columns++)
		gecko_column(writer, columns, nr_rows);
	json_key(&writer->json, "length");
	json_u64(&writer->json, nr_rows);
}

void gecko_string(struct gecko_writer *writer, const char *key, const char *value)
{
	json_key(&writer->json, key);
	json_string(&writer->json, value);
}

void gecko_u64(struct gecko_writer *writer, const char *key, uint64_t value)
{
	json_key(&writer->json, key);
	json_u64(&writer->json, value);
}

void gecko_bool(struct gecko_writer *writer, const char *key, bool value)
{
	json_key(&writer->json, key);
	json_bool(&writer->json, value);
}

void gecko_fixed(struct gecko_writer *writer, const char *key, uint64_t ns, unsigned decimals)
{
	json_key(&writer->json, key);
	json_fixed(&writer->json, ns, decimals);
}

void gecko_string_number(struct gecko_writer *writer, struct string_table *table,
			 const char *string)
{
	uint32_t number = 0;
	int err = string_table_get(table, string, &number);

	if (err && !writer->error)
		writer->error = err;
	json_u64(&writer->json, number);
}

static void categories_write(struct gecko_writer *writer)
{
	struct json *json = &writer->json;

	json_key(json, "categories");
	json_array_begin(json);
	for (int i = 0; i <= GECKO_IDLE; i++) {
		json_object_begin(json);
		gecko_string(writer, "name",
			     i == GECKO_IDLE ? "idle" : origin_name((enum origin)i));
		gecko_string(writer, "color", category_colours[i]);
		json_key(json, "subcategories");
		json_array_begin(json);
		json_string(json, "Other");
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void marker_schema_write(struct gecko_writer *writer)
{
	static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
	struct json *json = &writer->json;

	json_key(json, "markerSchema");
	json_array_begin(json);
	for (int i = 0; i < NR_GECKO_MARKERS; i++) {
		json_object_begin(json);
		gecko_string(writer, "name", gecko_marker_name((enum gecko_marker_kind)i));
		json_key(json, "display");
		json_array_begin(json);
		for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++)
			json_string(json, places[k]);
		json_array_end(json);
		json_key(json, "fields");
		json_array_begin(json);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void units_write(struct gecko_writer *writer)
{
	json_key(&writer->json, "sampleUnits");
	json_object_begin(&writer->json);
	gecko_string(writer, "time", "ms");
	gecko_string(writer, "eventDelay", "ms");
	gecko_string(writer, "threadCPUDelta", "\u00b5s");
	json_object_end(&writer->json);
}

/* Callback of run_tell(). */
static void pair_write(void *context, const char *name, const char *value)
{
	struct gecko_writer *writer = context;

	json_object_begin(&writer->json);
	gecko_string(writer, "label", name);
	gecko_string(writer, "format", "string");
	gecko_string(writer, "value", value);
	json_object_end(&writer->json);
}

/* Write a section for each run, which the page shows as "additional information". */
static void runs_write(struct gecko_writer *writer, const struct artefact *artefact)
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
		gecko_string(writer, "label", text_string(&writer->text));
		json_key(json, "entries");
		json_array_begin(json);
		if (caveats.length)
			pair_write(writer, "note", text_string(&caveats));
		run_tell(&artefact->runs[i], pair_write, writer);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	text_done(&caveats);
}

/* Return the time between ticks: as requested, else as achieved. */
static double interval_ms(const struct artefact *artefact)
{
	const struct run *run = artefact->runs;
	double hz = 0;

	if (artefact->nr_runs)
		hz = run->info.asked_hz > 0 ? run->info.asked_hz : stats_achieved_hz(&run->stats);
	return hz > 0 ? MS_PER_S / hz : 1;
}

static bool has_native(const struct gecko_writer *writer)
{
	for (uint32_t i = 0; i < writer->nr_functions; i++)
		if (writer->functions[i].kind >= FUNCTION_NATIVE)
			return true;
	return false;
}

static void meta_write(struct gecko_writer *writer, const struct artefact *artefact)
{
	const char *command = artefact->nr_runs ? artefact->runs[0].info.target.command_line : NULL;
	struct json *json = &writer->json;

	json_key(json, "meta");
	json_object_begin(json);
	gecko_u64(writer, "preprocessedProfileVersion", FORMAT_VERSION);
	gecko_u64(writer, "version", 24);
	gecko_string(writer, "importedFrom", "pysample " PYSAMPLE_VERSION);
	gecko_string(writer, "product", command && command[0] ? command : "Python");
	json_key(json, "interval");
	json_double(json, interval_ms(artefact));
	gecko_fixed(writer, "startTime", writer->samples.start_ns, GECKO_MS);
	gecko_u64(writer, "profilingStartTime", 0);
	/* The page shows the time before this, so the last sample must be earlier. */
	gecko_fixed(writer, "profilingEndTime",
		    writer->samples.end_ns - writer->samples.start_ns + NS_PER_US, GECKO_MS);
	gecko_u64(writer, "processType", 0);
	gecko_u64(writer, "stackwalk", 1);
	gecko_bool(writer, "debug", false);
	gecko_bool(writer, "symbolicated", true);
	gecko_bool(writer, "usesOnlyOneStackType", !has_native(writer));
	gecko_bool(writer, "sourceCodeIsNotOnSearchfox", true);
	categories_write(writer);
	marker_schema_write(writer);
	units_write(writer);
	runs_write(writer, artefact);
	json_object_end(json);
}

static void empty_write(struct gecko_writer *writer, const char *key)
{
	json_key(&writer->json, key);
	json_array_begin(&writer->json);
	json_array_end(&writer->json);
}

static int document_write(struct gecko_writer *writer, const struct artefact *artefact)
{
	int err;

	json_object_begin(&writer->json);
	meta_write(writer, artefact);
	empty_write(writer, "libs");
	empty_write(writer, "pages");
	gecko_shared(writer);
	gecko_threads(writer);
	json_object_end(&writer->json);
	err = json_finish(&writer->json);
	if (!err)
		err = writer->error;
	return err ? err : writer->text.error;
}

static void writer_done(struct gecko_writer *writer)
{
	thread_samples_done(&writer->samples);
	string_table_done(&writer->strings);
	string_table_done(&writer->sources);
	string_table_done(&writer->libraries);
	text_done(&writer->text);
}

/* Write through a compressing stream. */
static int compressed_write(struct gecko_writer *writer, const struct artefact *artefact, FILE *out)
{
	FILE *stream;
	int close_err;
	int err = gzip_open_fast(out, &stream);

	if (err)
		return err;
	json_init(&writer->json, stream, 0);
	err = document_write(writer, artefact);
	close_err = gzip_close(stream);
	if (err || close_err)
		return err ? err : close_err;
	return fflush(out) ? -errno : 0;
}

int gecko_write(const struct artefact *artefact, FILE *out)
{
	const struct profile *profile = artefact->profile;
	uint32_t nr_samples;
	struct gecko_writer writer = {.profile = profile};
	int err = thread_samples_init(&writer.samples, profile);

	if (err)
		return err;
	writer.functions = profile_functions(profile, &writer.nr_functions);
	writer.frames = profile_frames(profile, &writer.nr_frames);
	writer.nodes = profile_nodes(profile, &writer.nr_nodes);
	writer.rows = profile_samples(profile, &nr_samples);
	err = compressed_write(&writer, artefact, out);
	writer_done(&writer);
	return err;
}
