/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "output/dump/dump_state.h"
#include "output/profile/label.h"
#include "output/text/signal_name.h"
#include "output/text/text.h"

static void append_name(struct text *text, const char *name)
{
	label_append_escaped(text, name, strlen(name), LABEL_DISPLAY);
}

/* What a thread does, and what became of it. */
static void append_state(struct text *text, uint32_t flags)
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

static void append_exception(struct text *text, const struct dumped *dumped)
{
	if (!dumped->exception_type)
		return;
	text_puts(text, "  handling ");
	append_name(text, dumped->exception_type);
	if (dumped->exception_message[0]) {
		text_puts(text, ": ");
		append_name(text, dumped->exception_message);
	}
	text_puts(text, "\n");
}

static void append_thread(struct text *text, const struct dump *dump, const struct dumped *dumped)
{
	const struct sample_thread *thread = &dumped->thread;
	const struct dump_frames frames = {
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.sources = dump->sources,
	};

	text_printf(text, "\nThread %d", thread->tid);
	if (thread->name[0]) {
		text_puts(text, " \"");
		append_name(text, thread->name);
		text_puts(text, "\"");
	}
	if (thread->interpreter_id)
		text_printf(text, " in interpreter %lld", (long long)thread->interpreter_id);
	if (thread->is_main)
		text_puts(text, ", main");
	append_state(text, dumped->flags);
	text_puts(text, dumped->nr_frames || dumped->error ? " (most recent call last):\n"
							   : ": runs no Python code\n");
	if (dumped->flags & SAMPLE_BRIDGED)
		text_puts(text, "  (links between its frames are not in the core: where one is "
				"missing, its data stack tells the frames below)\n");
	if (dumped->error)
		text_printf(text, "  (its stack could not be followed to the bottom: %s)\n",
			    dump_error_text(dumped->error));
	else if (dumped->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (it ran while it was read: these frames may not belong "
				"together)\n");
	if (dumped->flags & SAMPLE_IN_JIT)
		text_puts(text,
			  "  (it runs in JIT code: the line of its innermost Python frame may "
			  "be some statements late)\n");
	dump_frames_append(text, &frames);
	append_exception(text, dumped);
}

/*
 * The thread whose end was that of the process, or of a snapshot the main one; NULL if there is
 * none, or it is none of Python's.
 */
static const struct dumped *fatal_thread(const struct dump *dump)
{
	const struct dumped *crashed = dump_find(dump, SAMPLE_CRASHED);

	if (crashed || dump->post_mortem->signal)
		return crashed;
	for (size_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].thread.is_main)
			return &dump->threads[i];
	return dump->nr_threads ? &dump->threads[0] : NULL;
}

void dump_append_fatal(const struct dump *dump, struct text *text)
{
	const struct dumped *fatal = fatal_thread(dump);
	struct dump_frames frames = {0};
	char name[SIGNAL_NAME_MAX_BYTES];

	if (dump->post_mortem->signal) {
		signal_name(dump->post_mortem->signal, name);
		text_printf(text, "Killed by %s\n", name);
	} else {
		text_puts(text, "A snapshot: the process did not die\n");
	}
	if (fatal)
		frames = (struct dump_frames){.frames = fatal->frames, .nr = fatal->nr_frames};
	dump_frames_append(text, &frames);
	if (!fatal)
		text_puts(text, "  (a thread that Python does not know: see --native=all)\n");
	else if (!frames.nr)
		text_puts(text, "  (no Python frames)\n");
}

/* What a thread does, by its state. Source: proc_pid_stat(5). */
static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'D':
		return "waits for a device";
	case 'T':
		return "is stopped";
	case 't':
		return "is stopped by a tracer";
	case 'Z':
	case 'X':
		return "has ended";
	default:
		return "waits";
	}
}

static void append_native(struct text *text, const struct native_thread *thread)
{
	text_printf(text, "  Thread %d \"", thread->tid);
	append_name(text, thread->name);
	text_printf(text, "\": %s", state_text(thread->state));
	if (thread->wchan[0]) {
		text_puts(text, " in ");
		append_name(text, thread->wchan);
	}
	text_puts(text, "\n");
}

static void append_natives(struct text *text, const struct dump *dump)
{
	const size_t nr_unknown = dump_count_unknown(dump);

	if (!dump->nr_natives) {
		text_puts(text, "\nNo native threads beside these.\n");
		return;
	}
	if (nr_unknown) {
		text_printf(text,
			    "\nNative threads cannot be told from these: the id%s of %zu %s not "
			    "known.\n",
			    text_plural(nr_unknown), nr_unknown, nr_unknown == 1 ? "is" : "are");
		return;
	}
	text_puts(text, "\nNative threads, which Python does not know:\n");
	for (size_t i = 0; i < dump->nr_natives; i++)
		append_native(text, &dump->natives[i]);
}

static void append_head(struct text *text, const struct dump *dump, const struct run_info *info)
{
	const struct dumped *finalizes = dump_find(dump, SAMPLE_FINALIZES);

	if (dump->post_mortem) {
		post_mortem_append_head(text, dump->post_mortem, info);
	} else {
		text_printf(text, "Process %d: ", info->pid);
		append_name(text, info->command_line);
		text_printf(text, "\nCPython %s\n", info->python);
	}
	if (finalizes)
		text_printf(text, "The interpreter is finalizing: thread %d ends it\n",
			    finalizes->thread.tid);
}

/* 0 or -ENOMEM. */
static int append_tasks(struct text *text, const struct dump *dump)
{
	int err = dump_tasks_append(text, &dump->tasks, dump->sources);

	if (!err && dump->tasks_told == TASKS_SOME_TOLD)
		text_puts(text, "\nThere may be more tasks: not all of them could be read.\n");
	return err;
}

int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct text text = {0};
	int err;

	append_head(&text, dump, info);
	for (size_t i = 0; i < dump->nr_threads; i++)
		append_thread(&text, dump, &dump->threads[i]);
	err = append_tasks(&text, dump);
	if (dump->wants_native)
		append_natives(&text, dump);
	if (dump->post_mortem)
		post_mortem_append_end(&text, dump->post_mortem);
	if (!err)
		err = text_write(&text, out);
	text_done(&text);
	return err;
}
