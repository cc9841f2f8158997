/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump_source.h"
#include "output/profile/frame_json.h"
#include "output/profile/label.h"

/* Give a detail its own copy of its variables. */
static int copy_variables(struct frame_detail *detail)
{
	const struct variable *from = detail->variables;
	const uint32_t nr = detail->nr_variables;

	detail->nr_variables = 0;
	detail->variables = calloc(nr + 1ull, sizeof(*detail->variables));
	if (!detail->variables)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct variable *variable = &detail->variables[detail->nr_variables++];

		*variable = (struct variable){
			.name = strdup(from[i].name),
			.value = strdup(from[i].value),
			.kind = from[i].kind,
		};
		if (!variable->name || !variable->value)
			return -ENOMEM;
	}
	return 0;
}

int dump_copy_variables(struct frame_detail *details, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!err) {
			err = copy_variables(&details[i]);
			continue;
		}
		/* These still belong to the source of the copy. */
		details[i].variables = NULL;
		details[i].nr_variables = 0;
	}
	return err;
}

void dump_free_variables(struct frame_detail *details, uint32_t nr)
{
	for (uint32_t i = 0; details && i < nr; i++) {
		for (uint32_t k = 0; k < details[i].nr_variables; k++) {
			free(details[i].variables[k].name);
			free(details[i].variables[k].value);
		}
		free(details[i].variables);
	}
}

/*
 * Append a line for each variable, indented below its frame, or one that says they are
 * unreadable.
 */
static void dump_append_variables(struct text *text, const struct frame_detail *detail)
{
	if (detail->lacks_variables)
		text_puts(text, "    (its variables could not be read)\n");
	for (uint32_t i = 0; i < detail->nr_variables; i++)
		text_printf(text, "    %s = %s\n", detail->variables[i].name,
			    detail->variables[i].value);
}

static const char *kind_name(enum variable_kind kind)
{
	switch (kind) {
	case VARIABLE_ARGUMENT:
		return "argument";
	case VARIABLE_FREE:
		return "free";
	case VARIABLE_LOCAL:
		break;
	}
	return "local";
}

/* Write "locals": an array of name, kind, value, or null if they could not be read. */
static void dump_write_variables(struct json *json, const struct frame_detail *detail)
{
	json_key(json, "locals");
	if (detail->lacks_variables) {
		json_null(json);
		return;
	}
	json_array_begin(json);
	for (uint32_t i = 0; i < detail->nr_variables; i++) {
		const struct variable *variable = &detail->variables[i];

		json_object_begin(json);
		json_member_string(json, "name", variable->name);
		json_member_string(json, "kind", kind_name(variable->kind));
		json_member_string(json, "value", variable->value);
		json_object_end(json);
	}
	json_array_end(json);
}

static const struct frame_detail unknown = {.column = -1, .end_line = -1, .end_column = -1};

/* Returns a frame's detail. */
static const struct frame_detail *detail_of(const struct dump_frames *frames, uint32_t i)
{
	return frames->details ? &frames->details[i] : &unknown;
}

/*
 * Append a frame. Native and kernel frames have a module but no line; frames without a file name
 * none.
 */
static void append_frame(struct text *text, const struct dump_frames *frames, uint32_t i)
{
	const struct frame *frame = &frames->frames[i];
	const struct function *function = frame->function;
	const bool is_native =
		function->kind == FUNCTION_NATIVE || function->kind == FUNCTION_KERNEL;

	text_puts(text, is_native ? "  C" : " ");
	if (function->path[0]) {
		text_puts(text, is_native ? " file \"" : " File \"");
		label_append_string(text, function->path);
		text_puts(text, "\",");
	}
	if (!is_native && (function->path[0] || frame->line > 0))
		text_printf(text, " line %d,", frame->line);
	text_puts(text, " in ");
	label_append_string(text, function->qualname);
	text_puts(text, "\n");
	if (frames->sources)
		dump_source_append(text, frames->sources, frame, detail_of(frames, i));
	dump_append_variables(text, detail_of(frames, i));
}

/* Whether two frames are printed alike. */
static bool frames_same(const struct dump_frames *frames, uint32_t i, uint32_t k)
{
	const struct frame *a = &frames->frames[i];
	const struct frame *b = &frames->frames[k];

	return a->function == b->function && a->line == b->line &&
	       !detail_of(frames, i)->nr_variables && !detail_of(frames, k)->nr_variables;
}

/*
 * Detect a recursion. Returns how often the *ret_period frames from i on directly repeat; 0 if
 * that is too rare to be worth a line.
 */
static uint32_t count_repeats(const struct dump_frames *frames, uint32_t i, uint32_t *ret_period)
{
	/*
	 * With C frames a Python call has about ten frames; this allows three that call each
	 * other.
	 */
	enum { MAX_PERIOD = 32, MIN_REPEATS = 3 };

	for (uint32_t period = 1; period <= MAX_PERIOD && period < frames->nr - i; period++) {
		uint32_t k = i + period;

		while (k < frames->nr && frames_same(frames, k, k - period))
			k++;
		if ((k - i) / period > MIN_REPEATS) {
			*ret_period = period;
			return (k - i) / period - 1;
		}
	}
	return 0;
}

static bool is_one_of(const char *name, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Whether a frame only starts a process of multiprocessing, or a thread of threading. */
static bool is_start(const struct frame *frame)
{
	static const char *const process_names[] = {
		"start", "_Popen", "__init__", "_launch",    "_bootstrap",
		"run",	 "_main",  "main",     "spawn_main", "_serve_one",
	};
	static const char *const thread_names[] = {"_bootstrap", "_bootstrap_inner", "run"};
	static const char *const process_files[] = {
		"/process.py",		"/context.py",	  "/popen_fork.py", "/popen_spawn_posix.py",
		"/popen_forkserver.py", "/forkserver.py", "/spawn.py",
	};
	const char *path = frame->function->path;
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(frame->function->qualname, '.');
	const char *name = dot ? dot + 1 : frame->function->qualname;

	if (!slash)
		return false;
	if (strcmp(slash, "/threading.py") == 0)
		return is_one_of(name, thread_names, sizeof(thread_names) / sizeof(*thread_names));
	return strstr(path, "/multiprocessing/") &&
	       is_one_of(slash, process_files, sizeof(process_files) / sizeof(*process_files)) &&
	       is_one_of(name, process_names, sizeof(process_names) / sizeof(*process_names));
}

/* Returns how many frames from i on only start something, the innermost frame left out. */
static uint32_t count_starts(const struct dump_frames *frames, uint32_t i)
{
	uint32_t nr = 0;

	while (frames->folds_starts && i + nr + 1 < frames->nr && is_start(&frames->frames[i + nr]))
		nr++;
	return nr;
}

void dump_frames_append(struct text *text, const struct dump_frames *frames)
{
	for (uint32_t i = 0; i < frames->nr; i++) {
		uint32_t period = 1;
		const uint32_t nr_starts = count_starts(frames, i);
		uint32_t nr_repeats;

		if (nr_starts > 1) {
			text_printf(text, "  [%u frames that start a process or thread]\n",
				    nr_starts);
			i += nr_starts - 1;
			continue;
		}
		nr_repeats = count_repeats(frames, i, &period);
		for (uint32_t k = 1; k < period; k++)
			append_frame(text, frames, i++);
		append_frame(text, frames, i);
		if (!nr_repeats)
			continue;
		if (period == 1)
			text_printf(text, "  [previous frame repeated %u more times]\n",
				    nr_repeats);
		else
			text_printf(text, "  [previous %u frames repeated %u more times]\n", period,
				    nr_repeats);
		i += period * nr_repeats;
	}
}

/* Write a number, or null if it is negative (unknown). */
static void write_known(struct json *json, const char *key, int32_t value)
{
	json_key(json, key);
	if (value < 0)
		json_null(json);
	else
		json_i64(json, value);
}

/* Write an address as hexadecimal digits, because many JSON readers handle only 53 bits. */
static void write_address(struct json *json, uint64_t addr)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%#llx", (unsigned long long)addr);
	json_member_string(json, "address", addr ? digits : NULL);
}

static void write_frame(struct json *json, const struct dump_frames *frames, uint32_t i)
{
	const struct frame *frame = &frames->frames[i];
	const struct function *function = frame->function;
	const struct frame_detail *detail = detail_of(frames, i);

	json_object_begin(json);
	frame_json_function(json, function->qualname, function->kind, function->path,
			    function->first_line);
	frame_json_line(json, frame->line);
	write_known(json, "column", detail->column);
	write_known(json, "end_line", detail->end_line);
	write_known(json, "end_column", detail->end_column);
	write_address(json, detail->addr);
	if (frames->sources)
		frame_json_source(json, frames->sources, function->path, frame->line);
	if (frames->with_variables)
		dump_write_variables(json, detail);
	json_object_end(json);
}

void dump_frames_write(struct json *json, const struct dump_frames *frames)
{
	json_array_begin(json);
	for (uint32_t i = 0; i < frames->nr; i++)
		write_frame(json, frames, i);
	json_array_end(json);
}

const char *dump_error_text(int error)
{
	switch (error) {
	case -EFAULT:
		return "its memory could not be read";
	case -E2BIG:
		return "it has too many frames, or they form a cycle";
	default: /* -EAGAIN, -EBADMSG */
		return "its frames are inconsistent";
	}
}
