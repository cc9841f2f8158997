/* SPDX-License-Identifier: MIT */
#include "procmem/sched/kernel_stack.h"

#include <stdbool.h>
#include <string.h>

/* Names go into outputs, so they must be printable ASCII without blanks. */
static bool is_word(const char *word)
{
	for (const char *c = word; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return word[0] != '\0';
}

/* Parse one line, terminated by NUL, and append its frame if it is well-formed. */
static void parse_line(char *line, struct kernel_stack *stack)
{
	struct kernel_stack_frame *frame = &stack->frames[stack->nr_frames];
	char *name = strstr(line, "] ");
	char *offset, *module;

	if (line[0] != '[' || line[1] != '<' || !name)
		return;
	name += strlen("] ");
	offset = strstr(name, "+0x");
	if (!offset)
		return;
	module = strchr(offset, ' ');
	*offset = '\0';
	*frame = (struct kernel_stack_frame){.name = name, .module = module ? module + 1 : ""};
	if (is_word(name) && (!module || (frame->module[0] == '[' && is_word(frame->module))))
		stack->nr_frames++;
}

void kernel_stack_parse(struct kernel_stack *stack)
{
	char *line = stack->text;
	char *end;

	stack->nr_frames = 0;
	while (stack->nr_frames < KERNEL_STACK_MAX_FRAMES && (end = strchr(line, '\n'))) {
		*end = '\0';
		parse_line(line, stack);
		line = end + 1;
	}
}

int kernel_stack_read(const struct process *process, pid_t tid, struct kernel_stack *ret_stack)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	ssize_t length;

	process_thread_path(name, tid, "stack");
	length = process_read_file(process, name, ret_stack->text, sizeof(ret_stack->text));
	if (length < 0)
		return (int)length;
	kernel_stack_parse(ret_stack);
	return 0;
}
