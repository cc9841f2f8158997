/* SPDX-License-Identifier: MIT */
#include "output/formats/jsonl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "output/profile/frame_json.h"
#include "output/profile/stack_path.h"
#include "output/run/run_json.h"
#include "output/text/json.h"

struct writer {
	struct json json;
	const struct artefact *artefact;
	/* Owned; PROFILE_NONE: not written yet. The last entry is for samples without a node. */
	uint32_t *stack_of_node;
	uint32_t nr_nodes;
	uint32_t nr_stacks;
	struct stack_path path;
};

static void object_begin(struct json *json, const char *type)
{
	json_object_begin(json);
	json_key(json, "type");
	json_string(json, type);
}

static void object_end(struct json *json)
{
	json_object_end(json);
	json_next(json);
}

/* Write a bool, or null if it is unknown. */
static void put_bool(struct json *json, const char *key, bool is_known, bool value)
{
	json_key(json, key);
	if (is_known)
		json_bool(json, value);
	else
		json_null(json);
}

/* Write an index, or null for PROFILE_NONE. */
static void put_index(struct json *json, const char *key, uint32_t index)
{
	json_key(json, key);
	if (index == PROFILE_NONE)
		json_null(json);
	else
		json_u64(json, index);
}

static void runs_write(struct writer *writer)
{
	struct json *json = &writer->json;

	for (uint32_t i = 0; i < writer->artefact->nr_runs; i++) {
		object_begin(json, "run");
		json_member_u64(json, "id", i);
		json_key(json, "run");
		run_append_json(json, &writer->artefact->runs[i]);
		object_end(json);
	}
}

static void processes_write(struct writer *writer)
{
	struct json *json = &writer->json;
	uint32_t nr;
	const struct profile_process *processes = profile_processes(writer->artefact->profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		object_begin(json, "process");
		json_member_u64(json, "id", i);
		json_key(json, "pid");
		json_i64(json, processes[i].pid);
		json_member_string(json, "command_line", processes[i].command_line);
		json_member_string(json, "name", processes[i].name);
		json_member_known(json, "parent_pid", (uint64_t)processes[i].parent_pid);
		json_member_known(json, "start_ns", processes[i].start_ns);
		json_member_known(json, "end_ns", processes[i].end_ns);
		object_end(json);
	}
}

static void threads_write(struct writer *writer)
{
	struct json *json = &writer->json;
	uint32_t nr;
	const struct profile_thread *threads = profile_threads(writer->artefact->profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		object_begin(json, "thread");
		json_member_u64(json, "id", i);
		put_index(json, "process", threads[i].process);
		frame_json_thread(json, threads[i].tid, threads[i].name, threads[i].interpreter_id,
				  threads[i].is_main);
		object_end(json);
	}
}

/* Write a frame, unless it is a thread's root: samples refer to their thread. */
static void put_frame(struct json *json, const struct profile *profile, uint32_t index)
{
	uint32_t nr;
	const struct profile_frame *frame = &profile_frames(profile, &nr)[index];
	const struct profile_function *function;

	if (frame->function == PROFILE_NONE)
		return;
	function = &profile_functions(profile, &nr)[frame->function];
	json_object_begin(json);
	frame_json_function(json, function->qualname, function->kind, function->path,
			    function->first_line);
	frame_json_line(json, frame->line);
	json_object_end(json);
}

/* Write the stack of a node, unless it was written before. */
static int stack_write(struct writer *writer, uint32_t node, uint32_t *ret_stack)
{
	const struct profile *profile = writer->artefact->profile;
	uint32_t *stack = &writer->stack_of_node[node == PROFILE_NONE ? writer->nr_nodes : node];
	struct json *json = &writer->json;
	int err;

	if (*stack == PROFILE_NONE) {
		err = stack_path_read(&writer->path, profile, node);
		if (err)
			return err;
		*stack = writer->nr_stacks++;
		object_begin(json, "stack");
		json_member_u64(json, "id", *stack);
		json_key(json, "frames");
		json_array_begin(json);
		for (size_t i = writer->path.start; i < writer->path.max; i++)
			put_frame(json, profile, writer->path.frames[i]);
		json_array_end(json);
		object_end(json);
	}
	*ret_stack = *stack;
	return 0;
}

static void put_flags(struct json *json, uint32_t flags)
{
	put_bool(json, "on_cpu", flags & SAMPLE_CPU_MEASURED, flags & SAMPLE_ON_CPU);
	put_bool(json, "gil", true, flags & SAMPLE_HOLDS_GIL);
	put_bool(json, "waits_for_gil", true, flags & SAMPLE_WAITS_FOR_GIL);
	put_bool(json, "gc", true, flags & SAMPLE_GC);
	put_bool(json, "exception", true, flags & SAMPLE_EXCEPTION);
	put_bool(json, "jit", true, flags & SAMPLE_IN_JIT);
	put_bool(json, "idle", true, flags & SAMPLE_IDLE);
	put_bool(json, "approximate", true, flags & SAMPLE_APPROXIMATE);
}

static int sample_write(struct writer *writer, const struct profile_sample *sample)
{
	struct json *json = &writer->json;
	uint32_t stack;
	int err = stack_write(writer, sample->node, &stack);

	if (err)
		return err;
	object_begin(json, "sample");
	json_member_u64(json, "time_ns", sample->time_ns);
	put_index(json, "thread", sample->thread);
	json_member_u64(json, "stack", stack);
	json_member_u64(json, "wall_ns", sample->wall_ns);
	json_key(json, "cpu_ns");
	if (sample->flags & SAMPLE_CPU_MEASURED)
		json_u64(json, sample->cpu_ns);
	else
		json_null(json);
	put_flags(json, sample->flags);
	object_end(json);
	return json->error;
}

static int samples_write(struct writer *writer)
{
	uint32_t nr;
	const struct profile_sample *samples = profile_samples(writer->artefact->profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		int err = sample_write(writer, &samples[i]);

		if (err)
			return err;
	}
	return 0;
}

static int writer_init(struct writer *writer, const struct artefact *artefact, FILE *out)
{
	*writer = (struct writer){.artefact = artefact};
	json_init(&writer->json, out, 0);
	(void)profile_nodes(artefact->profile, &writer->nr_nodes);
	writer->stack_of_node = calloc((size_t)writer->nr_nodes + 1, sizeof(uint32_t));
	if (!writer->stack_of_node)
		return -ENOMEM;
	for (uint32_t i = 0; i <= writer->nr_nodes; i++)
		writer->stack_of_node[i] = PROFILE_NONE;
	return 0;
}

int jsonl_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer;
	int err = writer_init(&writer, artefact, out);

	if (!err) {
		runs_write(&writer);
		processes_write(&writer);
		threads_write(&writer);
		err = samples_write(&writer);
	}
	if (!err)
		err = writer.json.error;
	if (!err && fflush(out))
		err = -errno;
	free(writer.stack_of_node);
	stack_path_done(&writer.path);
	return err;
}
