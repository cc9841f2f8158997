/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_state.h"
#include "output/text/json.h"

static void write_exception(struct json *json, const struct dumped *dumped)
{
	if (!dumped->exception_type) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_member_string(json, "type", dumped->exception_type);
	json_member_string(json, "message", dumped->exception_message);
	json_object_end(json);
}

/* Why the stack is not all that there was; NULL: it is. */
static const char *error_text(const struct dumped *dumped)
{
	if (dumped->error)
		return dump_error_text(dumped->error);
	if (dumped->flags & SAMPLE_GAPS)
		return "some of its frames are not in the core";
	return NULL;
}

static void write_thread(struct json *json, const struct dump *dump, const struct dumped *dumped)
{
	const struct dump_frames frames = {
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.with_variables = dump->wants_variables,
		.sources = dump->sources,
	};

	json_object_begin(json);
	json_key(json, "tid");
	json_i64(json, dumped->thread.tid);
	json_key(json, "name");
	json_string(json, dumped->thread.name);
	json_key(json, "os_name");
	json_string(json, dumped->thread.os_name);
	json_key(json, "interpreter");
	json_i64(json, dumped->thread.interpreter_id);
	json_member_bool(json, "main", dumped->thread.is_main);
	json_member_bool(json, "holds_gil", (dumped->flags & SAMPLE_HOLDS_GIL) != 0);
	json_member_bool(json, "waits_for_gil", (dumped->flags & SAMPLE_WAITS_FOR_GIL) != 0);
	json_member_bool(json, "gc", (dumped->flags & SAMPLE_GC) != 0);
	json_member_bool(json, "jit", (dumped->flags & SAMPLE_IN_JIT) != 0);
	json_member_bool(json, "crashed", (dumped->flags & SAMPLE_CRASHED) != 0);
	json_key(json, "exception");
	write_exception(json, dumped);
	json_member_bool(json, "c_stack_missing", (dumped->flags & SAMPLE_C_STACK_MISSING) != 0);
	json_member_bool(json, "proven", !(dumped->flags & SAMPLE_UNPROVEN));
	json_member_string(json, "error", error_text(dumped));
	json_key(json, "frames");
	dump_frames_write(json, &frames);
	json_object_end(json);
}

static void write_native(struct json *json, const struct native_thread *thread)
{
	const char state[] = {thread->state, '\0'};

	json_object_begin(json);
	json_key(json, "tid");
	json_i64(json, thread->tid);
	json_key(json, "name");
	json_string(json, thread->name);
	json_key(json, "state");
	json_string(json, state);
	json_key(json, "wchan");
	json_string(json, thread->wchan[0] ? thread->wchan : NULL);
	json_object_end(json);
}

static void write_natives(struct json *json, const struct dump *dump)
{
	json_key(json, "native_threads");
	if (!dump->wants_native || (dump->nr_natives && dump_count_unknown(dump))) {
		json_string(json, NULL);
		return;
	}
	json_array_begin(json);
	for (size_t i = 0; i < dump->nr_natives; i++)
		write_native(json, &dump->natives[i]);
	json_array_end(json);
}

static void write_tasks(struct json *json, const struct dump *dump)
{
	json_key(json, "tasks");
	if (dump->tasks_told == TASKS_NOT_TOLD)
		json_null(json);
	else
		dump_tasks_write(json, &dump->tasks, dump->sources);
	json_key(json, "tasks_complete");
	if (dump->tasks_told == TASKS_NOT_TOLD)
		json_null(json);
	else
		json_bool(json, dump->tasks_told == TASKS_ALL_TOLD);
}

int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out)
{
	const struct dumped *finalizes = dump_find(dump, SAMPLE_FINALIZES);
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	json_key(&json, "pid");
	json_i64(&json, info->pid);
	json_key(&json, "python");
	json_string(&json, info->python);
	json_key(&json, "command");
	json_string(&json, info->command_line);
	if (dump->post_mortem)
		post_mortem_write_json(&json, dump->post_mortem);
	json_key(&json, "finalizing");
	if (finalizes)
		json_i64(&json, finalizes->thread.tid);
	else
		json_null(&json);
	json_key(&json, "threads");
	json_array_begin(&json);
	for (size_t i = 0; i < dump->nr_threads; i++)
		write_thread(&json, dump, &dump->threads[i]);
	json_array_end(&json);
	write_tasks(&json, dump);
	write_natives(&json, dump);
	json_object_end(&json);
	return json_finish(&json);
}
