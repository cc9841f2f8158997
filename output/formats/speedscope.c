/* SPDX-License-Identifier: MIT */
#include "output/formats/speedscope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/profile/label.h"
#include "output/profile/thread_samples.h"
#include "output/run/run_json.h"
#include "output/text/json.h"
#include "output/text/utf8.h"
#include "procmem/array.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

#define NS_PER_US 1000u

/* Limit on the command line in the list of threads, each of which repeats it. */
#define COMMAND_MAX_BYTES 64

/* State of the writer. */
struct writer {
	struct json json;
	const struct profile *profile;
	struct thread_samples samples;
	uint64_t unit_ns; /* of the weights */
	struct text text;
	uint32_t *path; /* owned; frames of a stack, innermost first */
	uint32_t max_path;
};

/* A period of one thread with one stack. */
struct stretch {
	uint32_t node; /* PROFILE_NONE: no frames, or no sample */
	uint64_t ns;
};

/* The stretches of a thread in sequence. */
struct stretches {
	const struct writer *writer;
	const struct profile_sample *rows;
	uint32_t next, end;   /* indices into the sorted samples */
	uint64_t axis_ns;     /* sum of the stretches so far */
	struct stretch ahead; /* a stretch that has begun and may continue */
	bool has_ahead;
};

static void stretches_init(struct stretches *stretches, const struct writer *writer,
			   const struct thread_slice *slice)
{
	uint32_t nr;

	*stretches = (struct stretches){
		.writer = writer,
		.rows = profile_samples(writer->profile, &nr),
		.next = slice->first,
		.end = slice->end,
	};
}

/*
 * Returns the time between the axis and the start of a sample. Samples of merged recordings may
 * overlap; the axis is then ahead of them until the next gap.
 */
static uint64_t gap_before(const struct stretches *stretches, const struct profile_sample *sample)
{
	uint64_t begin_ns = thread_samples_begin_ns(sample) - stretches->writer->samples.start_ns;

	if (profile_mode(stretches->writer->profile) == PROFILE_CPU ||
	    begin_ns <= stretches->axis_ns)
		return 0;
	return begin_ns - stretches->axis_ns;
}

/* Find the next sample, or the gap before it. Returns false at the end. */
static bool piece_next(struct stretches *stretches, struct stretch *ret_piece)
{
	const struct writer *writer = stretches->writer;
	const struct profile_sample *sample;
	uint64_t gap_ns;

	if (stretches->next == stretches->end)
		return false;
	sample = &stretches->rows[writer->samples.order[stretches->next]];
	gap_ns = gap_before(stretches, sample);
	if (gap_ns) {
		*ret_piece = (struct stretch){PROFILE_NONE, gap_ns};
	} else {
		*ret_piece = (struct stretch){thread_samples_node(writer->profile, sample->node),
					      sample->weight_ns};
		stretches->next++;
	}
	stretches->axis_ns += ret_piece->ns;
	return true;
}

/* Find the next stretch, merged from equal pieces. Returns false at the end. */
static bool stretches_next(struct stretches *stretches, struct stretch *ret_stretch)
{
	struct stretch piece = {0};

	if (!stretches->has_ahead && !piece_next(stretches, &stretches->ahead))
		return false;
	*ret_stretch = stretches->ahead;
	for (;;) {
		stretches->has_ahead = piece_next(stretches, &piece);
		if (!stretches->has_ahead || piece.node != ret_stretch->node)
			break;
		ret_stretch->ns += piece.ns;
	}
	stretches->ahead = piece;
	return true;
}

static int stack_write(struct writer *writer, uint32_t node)
{
	struct json *json = &writer->json;
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(writer->profile, &nr);
	const struct profile_frame *frames = profile_frames(writer->profile, &nr);
	uint32_t depth = 0;

	/* A thread's root is the profile itself, not one of its frames. */
	while (node != PROFILE_NONE && frames[nodes[node].frame].function != PROFILE_NONE) {
		uint32_t *path =
			array_reserve(writer->path, depth + 1, &writer->max_path, sizeof(*path));

		if (!path)
			return -ENOMEM;
		writer->path = path;
		path[depth++] = nodes[node].frame;
		node = nodes[node].parent;
	}
	json_array_begin(json);
	while (depth > 0)
		json_u64(json, writer->path[--depth]);
	json_array_end(json);
	return json->error;
}

static int stacks_write(struct writer *writer, const struct thread_slice *slice)
{
	struct stretches stretches;
	struct stretch stretch;
	int err = 0;

	json_key(&writer->json, "samples");
	json_array_begin(&writer->json);
	stretches_init(&stretches, writer, slice);
	while (!err && stretches_next(&stretches, &stretch))
		err = stack_write(writer, stretch.node);
	json_array_end(&writer->json);
	return err;
}

static void weights_write(struct writer *writer, const struct thread_slice *slice)
{
	struct json *json = &writer->json;
	struct stretches stretches;
	struct stretch stretch;

	json_key(json, "weights");
	json_array_begin(json);
	stretches_init(&stretches, writer, slice);
	while (stretches_next(&stretches, &stretch))
		json_u64(json, stretch.ns / writer->unit_ns);
	json_array_end(json);
	json_key(json, "startValue");
	json_u64(json, 0);
	json_key(json, "endValue");
	json_u64(json, stretches.axis_ns / writer->unit_ns);
}

/* Returns how many bytes of a command line are shown, ending in a whole character. */
static size_t command_length(const char *command_line)
{
	size_t length = strlen(command_line);
	size_t shown = 0;
	size_t step;

	if (length <= COMMAND_MAX_BYTES)
		return length;
	for (; shown < COMMAND_MAX_BYTES; shown += step) {
		uint32_t code_point;

		step = utf8_decode(command_line + shown, length - shown, &code_point);
		step = step ? step : 1;
	}
	return shown;
}

/* Append a name: "MainThread (43), process 42: python app.py". */
static void name_append(struct text *text, const struct profile *profile, uint32_t thread)
{
	const struct profile_process *process = thread_samples_process(profile, thread);
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(profile, &nr);
	const char *what; /* the arguments if they may be shown, else the name */
	size_t length;

	thread_samples_name(text, profile, thread);
	if (thread != PROFILE_NONE && threads[thread].tid && threads[thread].name[0])
		text_printf(text, " (%jd)", (intmax_t)threads[thread].tid);
	if (!process)
		return;
	text_puts(text, ", process");
	if (process->pid)
		text_printf(text, " %jd", (intmax_t)process->pid);
	what = process->command_line[0] ? process->command_line : process->name;
	length = command_length(what);
	text_puts(text, length ? ": " : "");
	label_append_escaped(text, what, length, LABEL_DISPLAY);
	text_puts(text, what[length] ? "\u2026" : "");
}

static int thread_write(struct writer *writer, const struct thread_slice *slice)
{
	struct json *json = &writer->json;
	int err;

	text_clear(&writer->text);
	name_append(&writer->text, writer->profile, slice->thread);
	json_object_begin(json);
	json_key(json, "type");
	json_string(json, "sampled");
	json_key(json, "name");
	json_string(json, text_string(&writer->text));
	json_key(json, "unit");
	json_string(json, writer->unit_ns == 1 ? "nanoseconds" : "microseconds");
	err = stacks_write(writer, slice);
	if (err)
		return err;
	weights_write(writer, slice);
	json_object_end(json);
	return writer->text.error;
}

static int threads_write(struct writer *writer)
{
	int err = 0;

	json_key(&writer->json, "profiles");
	json_array_begin(&writer->json);
	for (uint32_t i = 0; !err && i < writer->samples.nr_slices; i++)
		err = thread_write(writer, &writer->samples.slices[i]);
	json_array_end(&writer->json);
	return err;
}

/* Write a frame. A thread's root has an empty entry, which no stack refers to. */
static void frame_write(struct writer *writer, uint32_t index)
{
	struct json *json = &writer->json;
	uint32_t nr;
	const struct profile_frame *frame = &profile_frames(writer->profile, &nr)[index];
	const struct profile_function *function = profile_functions(writer->profile, &nr);

	json_object_begin(json);
	json_key(json, "name");
	if (frame->function == PROFILE_NONE) {
		json_string(json, "");
		json_object_end(json);
		return;
	}
	function += frame->function;
	json_string(json, function->qualname[0] ? function->qualname : "?");
	if (function->path[0]) {
		json_key(json, "file");
		json_string(json, function->path);
	}
	if (frame->line) {
		json_key(json, "line");
		json_i64(json, frame->line);
	}
	json_object_end(json);
}

static void frames_write(struct writer *writer)
{
	struct json *json = &writer->json;
	uint32_t nr;

	(void)profile_frames(writer->profile, &nr);
	json_key(json, "shared");
	json_object_begin(json);
	json_key(json, "frames");
	json_array_begin(json);
	for (uint32_t i = 0; i < nr; i++)
		frame_write(writer, i);
	json_array_end(json);
	json_object_end(json);
}

/* Write the command line and the caveats as the title, for lack of another place. */
static void title_write(struct writer *writer, const struct artefact *artefact)
{
	const char *command = artefact->nr_runs ? artefact->runs[0].info.target.command_line : NULL;
	struct text *text = &writer->text;
	size_t length;

	text_clear(text);
	if (command)
		text_puts(text, command);
	text_puts(text, command ? " [" : "[");
	length = text->length;
	caveats_append(text, artefact);
	if (text->length > length) {
		text_puts(text, "]");
		json_member_string(&writer->json, "name", text_string(text));
	} else if (command) {
		json_member_string(&writer->json, "name", command);
	}
}

/* Write the format's own metadata, and a member "pysample", which readers ignore. */
static void about_write(struct writer *writer, const struct artefact *artefact)
{
	struct json *json = &writer->json;

	json_key(json, "$schema");
	json_string(json, SCHEMA);
	json_key(json, "exporter");
	json_string(json, "pysample@" PYSAMPLE_VERSION);
	title_write(writer, artefact);
	json_key(json, "activeProfileIndex");
	json_u64(json, writer->samples.busiest);
	json_key(json, "pysample");
	json_object_begin(json);
	json_key(json, "runs");
	json_array_begin(json);
	for (uint32_t i = 0; i < artefact->nr_runs; i++)
		run_append_json(json, &artefact->runs[i]);
	json_array_end(json);
	json_object_end(json);
}

/*
 * Returns microseconds if all times are multiples of that, as in recordings, to halve the digits;
 * else nanoseconds.
 */
static uint64_t find_unit(const struct profile *profile)
{
	uint32_t nr;
	const struct profile_sample *rows = profile_samples(profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		if (rows[i].weight_ns % NS_PER_US || rows[i].wall_ns % NS_PER_US ||
		    rows[i].time_ns % NS_PER_US)
			return 1;
	return NS_PER_US;
}

static int document_write(struct writer *writer, const struct artefact *artefact)
{
	int err;

	json_object_begin(&writer->json);
	about_write(writer, artefact);
	frames_write(writer);
	err = threads_write(writer);
	if (err)
		return err;
	json_object_end(&writer->json);
	return json_finish(&writer->json);
}

int speedscope_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer = {
		.profile = artefact->profile,
		.unit_ns = find_unit(artefact->profile),
	};
	int err = thread_samples_init(&writer.samples, artefact->profile);

	if (err)
		return err;
	json_init(&writer.json, out, 0);
	err = document_write(&writer, artefact);
	thread_samples_done(&writer.samples);
	text_done(&writer.text);
	free(writer.path);
	return err;
}
