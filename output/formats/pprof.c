/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/encoding/gzip.h"
#include "output/formats/pprof_message.h"
#include "output/profile/thread_samples.h"
#include "output/run/stats.h"
#include "output/tables/string_table.h"
#include "output/text/text.h"
#include "procmem/array.h"
#include "procmem/clock.h"

typedef Perftools__Profiles__Profile Profile;

/* State of the writer. */
struct writer {
	struct pprof_message message;
	const struct profile *profile;
	struct string_table modules; /* of native functions; index = mapping id - 2 */
	struct text program;	     /* first word of the command line */
	uint64_t *path;		     /* owned; location ids of a stack, innermost first */
	uint32_t max_path;
	struct thread_samples samples;
	struct profile_weight *weights; /* owned; of a thread's stacks, by stack_index() */
	uint32_t *seen;			/* owned; indices with a weight */
	uint32_t nr_nodes;
	uint32_t nr_runs;
	uint32_t run;	      /* the one whose comments are being written */
	uint32_t nr_comments; /* so far; their strings follow all others */
	int64_t time_type;    /* strings: type and unit of the time */
	int64_t nanoseconds;
	int error; /* the first one that cannot be returned */
};

/* The first mapping is the program's: readers take it for the main binary. */
enum { PROGRAM_MAPPING = 1, FIRST_MODULE_MAPPING = 2 };

/* Returns the id of the placeholder for samples without frames: one more than all others. */
static uint64_t idle_id(uint32_t nr)
{
	return (uint64_t)nr + 1;
}

/* Whether samples have a time besides their count. */
static bool has_time(const struct writer *writer)
{
	return profile_mode_is_time(profile_mode(writer->profile));
}

static int types_write(struct writer *writer)
{
	Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType count = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType time = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType *types[] = {&count, &time};
	const enum profile_mode mode = profile_mode(writer->profile);
	int64_t empty;
	int err = pprof_message_string(&writer->message, "", &empty); /* string 0 must be empty */

	if (!err)
		err = pprof_message_string(&writer->message,
					   has_time(writer) ? "samples" : profile_mode_unit(mode),
					   &count.type);
	if (!err)
		err = pprof_message_string(&writer->message, "count", &count.unit);
	if (!err && has_time(writer))
		err = pprof_message_string(&writer->message, mode == PROFILE_CPU ? "cpu" : "wall",
					   &time.type);
	if (!err && has_time(writer))
		err = pprof_message_string(&writer->message, "nanoseconds", &time.unit);
	writer->time_type = time.type;
	writer->nanoseconds = time.unit;
	part.n_sample_type = has_time(writer) ? 2 : 1;
	part.sample_type = types;
	part.default_sample_type = has_time(writer) ? time.type : count.type;
	return err ? err : pprof_message_append(&writer->message, &part);
}

/* Returns the time between ticks: as requested, else as achieved. */
static int64_t period_ns(const struct run *run)
{
	double hz = run->info.requested_hz > 0 ? run->info.requested_hz
					       : stats_achieved_hz(&run->stats);

	return hz > 0 ? (int64_t)(NS_PER_S / hz + 0.5) : 0;
}

static uint64_t run_end_ns(const struct run *run)
{
	uint64_t ns = run->stats.end_ns > run->stats.start_ns
			      ? run->stats.end_ns - run->stats.start_ns
			      : 0;

	return run->info.start_unix_ns + ns;
}

/* Write the time range of all runs, and the sampling period of the first. */
static int times_write(struct writer *writer, const struct artefact *artefact)
{
	Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	uint64_t start_ns = UINT64_MAX;
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < artefact->nr_runs; i++) {
		const struct run *run = &artefact->runs[i];

		if (run->info.start_unix_ns && run->info.start_unix_ns < start_ns)
			start_ns = run->info.start_unix_ns;
		if (run_end_ns(run) > end_ns)
			end_ns = run_end_ns(run);
	}
	if (!artefact->nr_runs)
		return 0;
	if (start_ns == UINT64_MAX) /* no run has a known start */
		start_ns = end_ns = 0;
	type.type = writer->time_type;
	type.unit = writer->nanoseconds;
	part.time_nanos = (int64_t)start_ns;
	if (!has_time(writer))
		return pprof_message_append(&writer->message, &part);
	part.duration_nanos = (int64_t)(end_ns - start_ns);
	part.period_type = &type;
	part.period = period_ns(&artefact->runs[0]);
	return pprof_message_append(&writer->message, &part);
}

static int mapping_write(struct writer *writer, uint64_t id, const char *path)
{
	Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT;
	Perftools__Profiles__Mapping *mappings[] = {&mapping};
	int err = pprof_message_string(&writer->message, path, &mapping.filename);

	if (err)
		return err;
	mapping.id = id;
	/* Nothing is left to symbolize. */
	mapping.has_functions = true;
	mapping.has_filenames = true;
	mapping.has_line_numbers = true;
	part.n_mapping = 1;
	part.mapping = mappings;
	return pprof_message_append(&writer->message, &part);
}

static int program_write(struct writer *writer, const struct artefact *artefact)
{
	const char *command = artefact->nr_runs ? artefact->runs[0].info.target.command_line : NULL;

	if (command)
		text_append(&writer->program, command, strcspn(command, " "));
	if (!writer->program.length)
		text_puts(&writer->program, "python");
	if (writer->program.error)
		return writer->program.error;
	return mapping_write(writer, PROGRAM_MAPPING, text_string(&writer->program));
}

static bool has_module(const struct profile_function *function)
{
	switch (function->kind) {
	case FUNCTION_NATIVE:
	case FUNCTION_KERNEL:
		return function->path[0] != '\0';
	case FUNCTION_PYTHON:
	case FUNCTION_COLLECTOR:
	case FUNCTION_JIT:
	case FUNCTION_TASK:
	case NR_FUNCTION_KINDS:
		break;
	}
	return false;
}

/* Find the mapping of a function, and write it if it is new. */
static int mapping_find(struct writer *writer, const struct profile_function *function,
			uint64_t *ret_id)
{
	uint32_t nr = writer->modules.nr;
	uint32_t index;
	int err;

	*ret_id = PROGRAM_MAPPING;
	if (!has_module(function))
		return 0;
	err = string_table_get(&writer->modules, function->path, &index);
	*ret_id = FIRST_MODULE_MAPPING + (uint64_t)index;
	if (!err && index == nr)
		err = mapping_write(writer, *ret_id, function->path);
	return err;
}

/*
 * Write a function. Its system_name stays empty: if that equals the name, pprof demangles it as
 * C++ and strips everything in angle brackets, which is all of "<module>".
 *
 * Source: github.com/google/pprof, internal/symbolizer, Demangle()
 */
static int function_write(struct writer *writer, uint64_t id,
			  const struct profile_function *function)
{
	Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Function row = PERFTOOLS__PROFILES__FUNCTION__INIT;
	Perftools__Profiles__Function *rows[] = {&row};
	int err = pprof_message_string(&writer->message,
				       function->qualname[0] ? function->qualname : "?", &row.name);

	if (!err)
		err = pprof_message_string(&writer->message, function->path, &row.filename);
	if (err)
		return err;
	row.id = id;
	row.start_line = function->first_line;
	part.n_function = 1;
	part.function = rows;
	return pprof_message_append(&writer->message, &part);
}

static int location_write(struct writer *writer, uint64_t id, uint64_t function_id,
			  const struct profile_function *function, int32_t line_number)
{
	Perftools__Profiles__Location row = PERFTOOLS__PROFILES__LOCATION__INIT;
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
	Perftools__Profiles__Line *lines[] = {&line};
	int err = mapping_find(writer, function, &row.mapping_id);

	if (err)
		return err;
	line.function_id = function_id;
	line.line = line_number;
	row.id = id;
	row.n_line = 1;
	row.line = lines;
	return pprof_message_append_location(&writer->message, &row);
}

/* The id of a function is its index + 1, that of a location its frame's index + 1. */
static int functions_write(struct writer *writer)
{
	uint32_t nr_functions;
	uint32_t nr_frames;
	const struct profile_function *functions =
		profile_functions(writer->profile, &nr_functions);
	const struct profile_frame *frames = profile_frames(writer->profile, &nr_frames);
	int err = 0;

	for (uint32_t i = 0; !err && i < nr_functions; i++)
		err = function_write(writer, (uint64_t)i + 1, &functions[i]);
	for (uint32_t i = 0; !err && i < nr_frames; i++) {
		uint32_t function = frames[i].function;

		if (function != PROFILE_NONE) /* else a thread's root, which labels represent */
			err = location_write(writer, (uint64_t)i + 1, (uint64_t)function + 1,
					     &functions[function], frames[i].line);
	}
	return err;
}

/* Write the placeholder for samples without frames. */
static int idle_function_write(struct writer *writer)
{
	static char name[] = LABEL_NO_PYTHON_FRAMES;
	static char path[] = "";
	static const struct profile_function idle = {.qualname = name, .path = path};
	uint32_t nr_functions;
	uint32_t nr_frames;
	int err;

	(void)profile_functions(writer->profile, &nr_functions);
	(void)profile_frames(writer->profile, &nr_frames);
	err = function_write(writer, idle_id(nr_functions), &idle);
	return err ? err
		   : location_write(writer, idle_id(nr_frames), idle_id(nr_functions), &idle, 0);
}

/* Flags that separate samples of equal stacks, with a label each. */
static const struct {
	const char *label;
	uint32_t flag;
} kinds[] = {
	{"jit", SAMPLE_IN_JIT},
	{"approximate", SAMPLE_APPROXIMATE},
	{"idle", SAMPLE_IDLE},
};

enum { NR_KINDS = sizeof(kinds) / sizeof(*kinds), INDICES_OF_STACK = 1 << NR_KINDS };

/* Limit for a sample: four labels of its thread, and one for each flag. */
enum { MAX_LABELS = 4 + NR_KINDS };

/* The labels of a thread's samples. */
struct thread_labels {
	Perftools__Profiles__Label labels[MAX_LABELS];
	Perftools__Profiles__Label *pointers[MAX_LABELS];
	size_t nr;
};

static int text_add(struct writer *writer, struct thread_labels *labels, const char *key,
		    const char *value)
{
	Perftools__Profiles__Label *label = &labels->labels[labels->nr];
	int err = pprof_message_string(&writer->message, key, &label->key);

	if (!err)
		err = pprof_message_string(&writer->message, value, &label->str);
	labels->nr++;
	return err;
}

static int number_add(struct writer *writer, struct thread_labels *labels, const char *key,
		      int64_t number)
{
	Perftools__Profiles__Label *label = &labels->labels[labels->nr];
	int err;

	if (!number) /* unknown */
		return 0;
	err = pprof_message_string(&writer->message, key, &label->key);
	label->num = number;
	labels->nr++;
	return err;
}

/*
 * Make the labels of a thread. thread is an index into threads, or PROFILE_NONE for threads
 * without a row.
 */
static int labels_make(struct writer *writer, uint32_t thread, struct thread_labels *labels)
{
	const struct profile_process *process = thread_samples_process(writer->profile, thread);
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(writer->profile, &nr);
	const char *name = thread == PROFILE_NONE ? LABEL_OTHER_THREADS : threads[thread].name;
	int err = 0;

	labels->nr = 0;
	for (size_t i = 0; i < MAX_LABELS; i++) {
		perftools__profiles__label__init(&labels->labels[i]);
		labels->pointers[i] = &labels->labels[i];
	}
	if (name[0])
		err = text_add(writer, labels, "thread", name);
	if (!err && thread != PROFILE_NONE)
		err = number_add(writer, labels, "thread_id", threads[thread].tid);
	if (!err && process)
		err = number_add(writer, labels, "pid", process->pid);
	if (!err && process && process->name[0])
		err = text_add(writer, labels, "process", process->name);
	return err;
}

static int sample_write(struct writer *writer, uint32_t nr_locations, struct profile_weight weight,
			struct thread_labels *labels)
{
	Perftools__Profiles__Sample row = PERFTOOLS__PROFILES__SAMPLE__INIT;
	int64_t values[] = {(int64_t)weight.samples, (int64_t)weight.ns};

	row.n_location_id = nr_locations;
	row.location_id = writer->path;
	row.n_value = has_time(writer) ? 2 : 1;
	row.value = values;
	row.n_label = labels->nr;
	row.label = labels->pointers;
	return pprof_message_append_sample(&writer->message, &row);
}

static int path_append(struct writer *writer, uint32_t *nr, uint64_t id)
{
	uint64_t *path = array_reserve(writer->path, *nr + 1, &writer->max_path, sizeof(*path));

	if (!path)
		return -ENOMEM;
	writer->path = path;
	path[(*nr)++] = id;
	return 0;
}

/* Write one stack of a thread; node is PROFILE_NONE for samples without frames. */
static int stack_write(struct writer *writer, uint32_t node, struct profile_weight weight,
		       struct thread_labels *labels)
{
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(writer->profile, &nr);
	const struct profile_node *nodes = profile_nodes(writer->profile, &nr);
	uint32_t nr_frames;
	uint32_t depth = 0;
	int err = 0;

	/* Labels represent the thread's root. */
	for (; !err && node != PROFILE_NONE && frames[nodes[node].frame].function != PROFILE_NONE;
	     node = nodes[node].parent)
		err = path_append(writer, &depth, (uint64_t)nodes[node].frame + 1);
	(void)profile_frames(writer->profile, &nr_frames);
	if (!err && !depth)
		err = path_append(writer, &depth, idle_id(nr_frames));
	return err ? err : sample_write(writer, depth, weight, labels);
}

/*
 * Returns where a sample's weight is summed: by node, then flags. Samples without frames come
 * last.
 */
static uint32_t stack_index(const struct writer *writer, const struct profile_sample *sample)
{
	const uint32_t node = thread_samples_node(writer->profile, sample->node);

	uint32_t index = INDICES_OF_STACK * (node == PROFILE_NONE ? writer->nr_nodes : node);

	for (uint32_t i = 0; i < NR_KINDS; i++)
		index += (sample->flags & kinds[i].flag) ? 1u << i : 0;
	return index;
}

/* Sum a thread's samples by stack. Returns the number of stacks, which are in seen. */
static uint32_t weights_sum(struct writer *writer, const struct thread_slice *slice)
{
	uint32_t nr;
	const struct profile_sample *rows = profile_samples(writer->profile, &nr);
	uint32_t nr_seen = 0;

	for (uint32_t i = slice->first; i < slice->end; i++) {
		const struct profile_sample *sample = &rows[writer->samples.order[i]];
		uint32_t index = stack_index(writer, sample);

		if (!writer->weights[index].samples)
			writer->seen[nr_seen++] = index;
		writer->weights[index].samples++;
		writer->weights[index].ns += sample->weight_ns;
	}
	return nr_seen;
}

static int thread_write(struct writer *writer, const struct thread_slice *slice)
{
	uint32_t nr_seen = weights_sum(writer, slice);
	struct thread_labels labels;
	int err = labels_make(writer, slice->thread, &labels);
	const size_t nr_labels = labels.nr;

	for (uint32_t i = 0; !err && i < nr_seen; i++) {
		uint32_t index = writer->seen[i];
		uint32_t node = index / INDICES_OF_STACK;

		if (node == writer->nr_nodes)
			node = PROFILE_NONE;
		labels.nr = nr_labels;
		for (uint32_t kind = 0; !err && kind < NR_KINDS; kind++)
			if (index & 1u << kind)
				err = text_add(writer, &labels, kinds[kind].label, "true");
		if (!err)
			err = stack_write(writer, node, writer->weights[index], &labels);
		writer->weights[index] = (struct profile_weight){0};
	}
	return err;
}

static int samples_write(struct writer *writer)
{
	int err = thread_samples_init(&writer->samples, writer->profile);
	size_t nr_indices;

	if (err)
		return err;
	(void)profile_nodes(writer->profile, &writer->nr_nodes);
	nr_indices = INDICES_OF_STACK * ((size_t)writer->nr_nodes + 1);
	writer->weights = calloc(nr_indices, sizeof(*writer->weights));
	writer->seen = calloc(nr_indices, sizeof(*writer->seen));
	if (!writer->weights || !writer->seen)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < writer->samples.nr_slices; i++)
		err = thread_write(writer, &writer->samples.slices[i]);
	return err;
}

/*
 * Write an item of run_for_each_pair() as "name: value", or with several runs "run 2 name: value".
 */
static void comment_write(void *context, const char *name, const char *value)
{
	struct writer *writer = context;
	Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	struct text text = {0};
	int64_t index = (int64_t)writer->message.strings.nr + writer->nr_comments;

	if (writer->error)
		return;
	if (writer->nr_runs > 1)
		text_printf(&text, "run %u ", writer->run + 1);
	text_printf(&text, "%s: %s", name, value);
	writer->error = text.error
				? text.error
				: pprof_message_append_string(&writer->message, text_string(&text));
	text_done(&text);
	part.n_comment = 1;
	part.comment = &index;
	if (!writer->error)
		writer->error = pprof_message_append(&writer->message, &part);
	writer->nr_comments++;
}

/* The strings of comments are not kept, so no string can be looked up after this. */
static int comments_write(struct writer *writer, const struct artefact *artefact)
{
	struct text caveats = {0};

	writer->nr_runs = artefact->nr_runs;
	for (writer->run = 0; writer->run < writer->nr_runs; writer->run++)
		run_for_each_pair(&artefact->runs[writer->run], comment_write, writer);
	writer->nr_runs = 0; /* the following belongs to all runs */
	caveats_append(&caveats, artefact);
	if (caveats.length)
		comment_write(writer, "note", text_string(&caveats));
	text_done(&caveats);
	return writer->error;
}

static int message_write(struct writer *writer, const struct artefact *artefact)
{
	int err = types_write(writer);

	if (!err)
		err = times_write(writer, artefact);
	if (!err)
		err = program_write(writer, artefact);
	if (!err)
		err = functions_write(writer);
	if (!err)
		err = idle_function_write(writer);
	if (!err)
		err = samples_write(writer);
	return err ? err : comments_write(writer, artefact);
}

static void writer_done(struct writer *writer)
{
	pprof_message_done(&writer->message);
	thread_samples_done(&writer->samples);
	free(writer->weights);
	free(writer->seen);
	string_table_done(&writer->modules);
	text_done(&writer->program);
	free(writer->path);
}

int pprof_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer = {.profile = artefact->profile};
	int close_err;
	int err = gzip_open(out, &writer.message.out);

	if (err)
		return err;
	err = message_write(&writer, artefact);
	close_err = gzip_close(writer.message.out);
	writer_done(&writer);
	if (err || close_err)
		return err ? err : close_err;
	return fflush(out) ? -errno : 0;
}
