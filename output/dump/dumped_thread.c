/* SPDX-License-Identifier: MIT */
#include "output/dump/dumped_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump_frames.h"
#include "output/profile/frame_json.h"
#include "output/profile/label.h"
#include "procmem/array.h"

/* Copy the exception of a sample. Returns 0 or -ENOMEM. */
static int copy_exception(struct dumped_thread *dumped, const struct sample_exception *exception)
{
	if (!exception)
		return 0;
	dumped->exception_type = strdup(exception->type_name);
	dumped->exception_message = strdup(exception->message);
	return dumped->exception_type && dumped->exception_message ? 0 : -ENOMEM;
}

/* Copy frames and details. Returns 0 or -ENOMEM. */
static int copy_frames(struct dumped_thread *dumped, const struct sample *sample)
{
	const uint32_t nr = sample->nr_frames;

	dumped->frames = array_copy(sample->frames, nr, sizeof(*dumped->frames));
	if (!dumped->frames)
		return -ENOMEM;
	dumped->nr_frames = nr;
	if (!sample->details)
		return 0;
	dumped->details = array_copy(sample->details, nr, sizeof(*dumped->details));
	return dumped->details ? dump_copy_variables(dumped->details, nr) : -ENOMEM;
}

int dumped_thread_init(struct dumped_thread *dumped, const struct sample *sample)
{
	int err;

	*dumped = (struct dumped_thread){
		.thread = *sample->thread,
		.flags = sample->flags,
		.error = sample->error,
	};
	err = copy_frames(dumped, sample);
	if (!err)
		err = copy_exception(dumped, sample->exception);
	if (err)
		dumped_thread_done(dumped);
	return err;
}

void dumped_thread_done(struct dumped_thread *dumped)
{
	free(dumped->exception_type);
	free(dumped->exception_message);
	free(dumped->frames);
	dump_free_variables(dumped->details, dumped->nr_frames);
	free(dumped->details);
	thread_waiting_done(&dumped->waiting);
	*dumped = (struct dumped_thread){.frames = NULL};
}

void dumped_process_append(struct text *text, pid_t pid, const char *name)
{
	if (!name)
		return;
	text_printf(text, " of process %d ", pid);
	label_append_string(text, name);
}

void dumped_thread_append_state(struct text *text, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *words;
	} states[] = {
		{SAMPLE_CRASHED, ", crashed"},
		{SAMPLE_HOLDS_GIL, ", holds the GIL"},
		{SAMPLE_WAITS_FOR_GIL, ", waits for the GIL"},
		{SAMPLE_GC, ", collects garbage"},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (flags & states[i].flag)
			text_puts(text, states[i].words);
}

static void append_exception(struct text *text, const struct dumped_thread *dumped)
{
	if (!dumped->exception_type)
		return;
	text_puts(text, "  handling ");
	label_append_string(text, dumped->exception_type);
	if (dumped->exception_message[0]) {
		text_puts(text, ": ");
		label_append_string(text, dumped->exception_message);
	}
	text_puts(text, "\n");
}

bool dumped_thread_has_stack(const struct dumped_thread *dumped)
{
	return dumped->nr_frames || dumped->error;
}

/* Returns the frames, borrowed, as they are laid out. */
static struct dump_frames frames_of(const struct dumped_thread *dumped,
				    const struct dumped_layout *layout)
{
	return (struct dump_frames){
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.with_variables = layout->with_variables,
		.folds_starts = layout->folds_starts,
		.sources = layout->sources,
	};
}

void dumped_thread_append_stack(struct text *text, const struct dumped_thread *dumped,
				const struct dumped_layout *layout)
{
	const struct dump_frames frames = frames_of(dumped, layout);

	if (dumped->flags & SAMPLE_BRIDGED)
		text_puts(text, "  (some links between frames are missing from the core: frames "
				"below them come from the data stack)\n");
	if (dumped->error)
		text_printf(text, "  (the stack is incomplete: %s)\n",
			    dump_error_text(dumped->error));
	else if (dumped->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (read while the thread ran: these frames may not belong "
				"together)\n");
	if (dumped->flags & SAMPLE_IN_JIT)
		text_puts(text, "  (in JIT code: the line of the innermost Python frame may "
				"be a few statements late)\n");
	dump_frames_append(text, &frames);
	append_exception(text, dumped);
}

static void write_exception(struct json *json, const struct dumped_thread *dumped)
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

/* Returns why a stack is incomplete; NULL if it is complete. */
static const char *error_text(const struct dumped_thread *dumped)
{
	if (dumped->error)
		return dump_error_text(dumped->error);
	if (dumped->flags & SAMPLE_GAPS)
		return "some of its frames are not in the core";
	return NULL;
}

static void write_identity(struct json *json, const struct sample_thread *thread)
{
	frame_json_thread(json, thread->tid, thread->name, thread->interpreter_id, thread->is_main);
	json_member_string(json, "os_name", thread->os_name);
}

void dumped_thread_write_members(struct json *json, const struct dumped_thread *dumped,
				 const struct dumped_layout *layout)
{
	const struct dump_frames frames = frames_of(dumped, layout);

	write_identity(json, &dumped->thread);
	json_member_bool(json, "holds_gil", (dumped->flags & SAMPLE_HOLDS_GIL) != 0);
	json_member_bool(json, "waits_for_gil", (dumped->flags & SAMPLE_WAITS_FOR_GIL) != 0);
	json_member_bool(json, "gc", (dumped->flags & SAMPLE_GC) != 0);
	json_member_bool(json, "jit", (dumped->flags & SAMPLE_IN_JIT) != 0);
	json_member_bool(json, "crashed", (dumped->flags & SAMPLE_CRASHED) != 0);
	json_key(json, "exception");
	write_exception(json, dumped);
	json_key(json, "waiting");
	thread_waiting_write(json, &dumped->waiting);
	json_member_bool(json, "c_stack_missing", (dumped->flags & SAMPLE_C_STACK_MISSING) != 0);
	json_member_bool(json, "proven", !(dumped->flags & SAMPLE_UNPROVEN));
	json_member_string(json, "error", error_text(dumped));
	json_key(json, "frames");
	dump_frames_write(json, &frames);
}

void dumped_thread_write(struct json *json, const struct dumped_thread *dumped,
			 const struct dumped_layout *layout)
{
	json_object_begin(json);
	dumped_thread_write_members(json, dumped, layout);
	json_object_end(json);
}
