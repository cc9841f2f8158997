/* SPDX-License-Identifier: MIT */
#include "output/profile/label.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/text/utf8.h"

/* Append the escape of the code point, or of the stray byte if length is 0. */
static void append_escape(struct text *text, char byte, uint32_t code_point, size_t length)
{
	if (length > 1)
		text_printf(text, "\\u%04" PRIx32, code_point);
	else
		text_printf(text, "\\x%02x", (unsigned)(unsigned char)byte);
}

void label_append_escaped(struct text *text, const char *bytes, size_t length,
			  enum label_style style)
{
	size_t start = 0; /* of what is not appended yet */
	size_t step;

	for (size_t i = 0; i < length; i += step) {
		uint32_t code_point = 0;
		size_t code_length = utf8_decode(bytes + i, length - i, &code_point);
		bool separator = code_point == ';' && style == LABEL_COLLAPSED;

		step = code_length ? code_length : 1;
		if (code_length && !separator && !utf8_is_control(code_point))
			continue;
		text_append(text, bytes + start, i - start);
		start = i + step;
		if (separator)
			text_puts(text, ":");
		else
			append_escape(text, bytes[i], code_point, code_length);
	}
	text_append(text, bytes + start, length - start);
}

void label_append_string(struct text *text, const char *string)
{
	label_append_escaped(text, string, strlen(string), LABEL_DISPLAY);
}

void label_append_location(struct text *text, const char *path, const char *mark, int32_t line,
			   enum label_style style)
{
	if (!path[0])
		return;
	label_append_escaped(text, path, strlen(path), style);
	if (line)
		text_printf(text, ":%s%" PRId32, mark, line);
}

/* Append "qualname (path:line)", with mark before the line. */
static void append_function(struct text *text, const char *qualname, const char *path,
			    const char *mark, int32_t line, enum label_style style)
{
	label_append_escaped(text, qualname, strlen(qualname), style);
	if (!qualname[0])
		text_puts(text, "?");
	if (!path[0])
		return;
	text_puts(text, " (");
	label_append_location(text, path, mark, line, style);
	text_puts(text, ")");
}

void label_append_function(struct text *text, const char *qualname, const char *path, int32_t line,
			   enum label_style style)
{
	append_function(text, qualname, path, "", line, style);
}

const char *label_line_mark(const struct profile *profile, uint32_t frame)
{
	uint32_t nr;
	const bool line_is_uncertain = profile_frames(profile, &nr)[frame].line_is_uncertain;

	return line_is_uncertain && profile_options(profile)->by_line ? "~" : "";
}

void label_append_thread(struct text *text, const struct profile_thread *thread,
			 enum label_style style)
{
	size_t length = strnlen(thread->name, sizeof(thread->name));

	text_puts(text, "thread");
	if (length)
		text_puts(text, " ");
	label_append_escaped(text, thread->name, length, style);
	if (thread->tid || thread->interpreter_id)
		text_puts(text, " (");
	if (thread->tid)
		text_printf(text, "%jd", (intmax_t)thread->tid);
	if (thread->tid && thread->interpreter_id)
		text_puts(text, ", ");
	if (thread->interpreter_id)
		text_printf(text, "interpreter %" PRId64, thread->interpreter_id);
	if (thread->tid || thread->interpreter_id)
		text_puts(text, ")");
}

void label_append_process_name(struct text *text, const struct profile_process *process,
			       enum label_style style)
{
	size_t length;
	const char *name = process_name(process, &length);

	label_append_escaped(text, name, length, style);
	if (!length)
		text_puts(text, "process");
}

void label_append_process(struct text *text, const struct profile_process *process,
			  enum label_style style)
{
	label_append_process_name(text, process, style);
	if (process->pid)
		text_printf(text, " (%jd)", (intmax_t)process->pid);
}

/* Append the label of a root. */
static void append_root(struct text *text, const struct profile *profile,
			const struct profile_frame *row, enum label_style style)
{
	const bool is_thread = row->root == ROOT_THREAD;
	const struct profile_process *process;
	uint32_t nr;

	if (row->owner == PROFILE_NONE) {
		text_puts(text, is_thread ? LABEL_OTHER_THREADS : LABEL_OTHER_PROCESSES);
	} else if (is_thread) {
		label_append_thread(text, &profile_threads(profile, &nr)[row->owner], style);
	} else {
		process = &profile_processes(profile, &nr)[row->owner];
		if (profile_options(profile)->merges_names)
			label_append_process_name(text, process, style);
		else
			label_append_process(text, process, style);
	}
}

void label_append_frame(struct text *text, const struct profile *profile, uint32_t frame,
			enum label_style style)
{
	uint32_t nr;
	const struct profile_frame *row = &profile_frames(profile, &nr)[frame];

	if (row->root) {
		append_root(text, profile, row, style);
	} else {
		const struct profile_function *function =
			&profile_functions(profile, &nr)[row->function];

		append_function(text, function->qualname, function->path,
				style == LABEL_COLLAPSED ? "" : label_line_mark(profile, frame),
				row->line, style);
	}
	if (style == LABEL_COLLAPSED)
		label_end_leaf(text);
}

const char *label_kind(enum function_kind kind)
{
	static const char *const kinds[] = {
		[FUNCTION_PYTHON] = "python", [FUNCTION_COLLECTOR] = "collector",
		[FUNCTION_NATIVE] = "native", [FUNCTION_JIT] = "jit",
		[FUNCTION_KERNEL] = "kernel", [FUNCTION_TASK] = "task",
	};

	_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == NR_FUNCTION_KINDS, "a word each");
	assert(kind < NR_FUNCTION_KINDS);
	return kinds[kind];
}

/* Returns where the digits that end at end begin; end if there are none. */
static size_t digits_start(const char *bytes, size_t end)
{
	while (end > 0 && isdigit((unsigned char)bytes[end - 1]))
		end--;
	return end;
}

void label_end_leaf(struct text *text)
{
	const char *bytes = text_string(text);
	size_t end = text->length;
	size_t start = digits_start(bytes, end);

	/* "5", "5.5" and "5." are numbers to the viewers; ".5" is not. */
	if (start > 0 && bytes[start - 1] == '.') {
		end = start - 1;
		start = digits_start(bytes, end);
	}
	if (start < end && start > 0 && bytes[start - 1] == ' ')
		text_puts(text, " ()");
}
