/* SPDX-License-Identifier: MIT */
/* gecko_threads(): the samples and markers of each thread. */
#include <stdio.h>

#include "output/formats/gecko_markers.h"
#include "output/formats/gecko_writer.h"

/* Phase of a marker with a start and an end. */
enum { PHASE_INTERVAL = 1 };

/* Return a sample of the current thread, by time. */
static const struct profile_sample *sample_at(const struct gecko_writer *writer, uint32_t row)
{
	return &writer->rows[writer->samples.order[writer->slice->first + row]];
}

static void sample_stack(struct gecko_writer *writer, uint32_t row)
{
	uint32_t node = thread_samples_node(writer->profile, sample_at(writer, row)->node);

	json_u64(&writer->json, node == PROFILE_NONE ? writer->nr_nodes : node);
}

/* Write milliseconds since the start of the first sample of all. */
static void since_start_write(struct gecko_writer *writer, uint64_t time_ns)
{
	json_fixed(&writer->json, time_ns - writer->samples.start_ns, GECKO_MS);
}

static void sample_time(struct gecko_writer *writer, uint32_t row)
{
	since_start_write(writer, sample_at(writer, row)->time_ns);
}

static void sample_weight(struct gecko_writer *writer, uint32_t row)
{
	json_fixed(&writer->json, sample_at(writer, row)->weight_ns, GECKO_MS);
}

static void sample_cpu(struct gecko_writer *writer, uint32_t row)
{
	const struct profile_sample *sample = sample_at(writer, row);

	if (sample->flags & SAMPLE_CPU_MEASURED)
		json_fixed(&writer->json, sample->cpu_ns, GECKO_US);
	else
		json_null(&writer->json);
}

static const struct gecko_column sample_columns[] = {
	{"stack", sample_stack},
	{"time", sample_time},
	{"weight", sample_weight},
	{0},
};
static const struct gecko_column cpu_column = {"threadCPUDelta", sample_cpu};

static void samples_write(struct gecko_writer *writer)
{
	uint32_t nr = writer->slice->end - writer->slice->first;
	bool has_cpu = profile_sums(writer->profile, PROFILE_SELF)->account.nr_cpu_measured;

	json_key(&writer->json, "samples");
	json_object_begin(&writer->json);
	gecko_string(writer, "weightType", "tracing-ms");
	if (has_cpu)
		gecko_column(writer, &cpu_column, nr);
	gecko_columns(writer, sample_columns, nr);
	json_object_end(&writer->json);
}

/* A column of the markers; the markers are computed again for each column. */
struct marker_column {
	const char *name;
	void (*value)(struct gecko_writer *writer, const struct gecko_marker *marker);
};

static void marker_name(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	gecko_string_number(writer, &writer->strings, gecko_marker_name(marker->kind));
}

static void marker_start(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	since_start_write(writer, marker->begin_ns);
}

static void marker_end(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	since_start_write(writer, marker->end_ns);
}

static void marker_phase(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	(void)marker;
	json_u64(&writer->json, PHASE_INTERVAL);
}

static void marker_category(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	static const enum origin origins[NR_GECKO_MARKERS] = {
		[GECKO_COLLECTS] = ORIGIN_COLLECTOR,  [GECKO_HAS_GIL] = ORIGIN_OTHER,
		[GECKO_WAITS_FOR_GIL] = ORIGIN_OTHER, [GECKO_IN_JIT] = ORIGIN_JIT,
		[GECKO_APPROXIMATE] = ORIGIN_OTHER,
	};

	json_u64(&writer->json, (uint64_t)origins[marker->kind]);
}

static void marker_data(struct gecko_writer *writer, const struct gecko_marker *marker)
{
	json_object_begin(&writer->json);
	gecko_string(writer, "type", gecko_marker_name(marker->kind));
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

static uint32_t marker_column_write(struct gecko_writer *writer, const struct marker_column *column)
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

static void markers_write(struct gecko_writer *writer)
{
	uint32_t nr = 0;

	json_key(&writer->json, "markers");
	json_object_begin(&writer->json);
	for (const struct marker_column *column = marker_columns; column->name; column++)
		nr = marker_column_write(writer, column);
	gecko_u64(writer, "length", nr);
	json_object_end(&writer->json);
}

/* Write a thread's name, ids and process. A thread without a row has a name only. */
static void identity_write(struct gecko_writer *writer)
{
	uint32_t thread = writer->slice->thread;
	const struct profile_process *process = thread_samples_process(writer->profile, thread);
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(writer->profile, &nr);
	char pid[24];

	text_clear(&writer->text);
	thread_samples_name(&writer->text, writer->profile, thread);
	gecko_string(writer, "name", text_string(&writer->text));
	gecko_bool(writer, "isMainThread", thread != PROFILE_NONE && threads[thread].is_main);
	gecko_string(writer, "processType", "default");
	if (process && process->command_line[0])
		gecko_string(writer, "processName", process->command_line);
	(void)snprintf(pid, sizeof(pid), "%jd", process ? (intmax_t)process->pid : 0);
	gecko_string(writer, "pid", pid);
	json_key(&writer->json, "tid");
	json_i64(&writer->json, thread == PROFILE_NONE ? 0 : threads[thread].tid);
}

static void thread_write(struct gecko_writer *writer)
{
	const struct profile_sample *first = sample_at(writer, 0);
	const struct profile_sample *last =
		sample_at(writer, writer->slice->end - writer->slice->first - 1);
	struct json *json = &writer->json;

	json_object_begin(json);
	identity_write(writer);
	gecko_u64(writer, "processStartupTime", 0);
	json_key(json, "processShutdownTime");
	json_null(json);
	json_key(json, "registerTime");
	since_start_write(writer, thread_samples_begin_ns(first));
	json_key(json, "unregisterTime");
	since_start_write(writer, last->time_ns);
	json_key(json, "pausedRanges");
	json_array_begin(json);
	json_array_end(json);
	gecko_bool(writer, "showMarkersInTimeline", true);
	samples_write(writer);
	markers_write(writer);
	json_object_end(json);
}

void gecko_threads(struct gecko_writer *writer)
{
	json_key(&writer->json, "threads");
	json_array_begin(&writer->json);
	for (uint32_t i = 0; i < writer->samples.nr_slices && !writer->json.error; i++) {
		writer->slice = &writer->samples.slices[i];
		thread_write(writer);
	}
	json_array_end(&writer->json);
}
