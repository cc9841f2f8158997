/* SPDX-License-Identifier: MIT */
#include "procmem/sched/kernel_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/own_process.h"

/* The parsed frames, each as "NAME MODULE;". */
static const char *parsed(const char *text)
{
	static struct kernel_stack stack;
	static char joined[4096];
	size_t length = 0;

	cr_assert(lt(sz, strlen(text), sizeof(stack.text)));
	memcpy(stack.text, text, strlen(text) + 1);
	kernel_stack_parse(&stack);
	joined[0] = '\0';
	for (unsigned int i = 0; i < stack.nr_frames; i++)
		length += (size_t)snprintf(joined + length, sizeof(joined) - length, "%s %s;",
					   stack.frames[i].name, stack.frames[i].module);
	return joined;
}

/* Lines as Linux writes them, and malformed ones. */
Test(kernel_stack, parses_kernel_lines)
{
	static const struct {
		const char *text, *frames;
	} cases[] = {
		{"", ""},
		{"[<0>] futex_do_wait+0x37/0x60\n[<0>] do_futex+0x122/0x1a0\n",
		 "futex_do_wait ;do_futex ;"},
		{"[<0>] ext4_read+0x5/0x60 [ext4]\n", "ext4_read [ext4];"},
		{"[<ffffffff8109d04a>] do_select.constprop.0+0x1/0x2\n", "do_select.constprop.0 ;"},
		/* Without symbols; truncated; in another format. */
		{"[<0>] 0xffffffff8109d04a\n[<0>] f+0x1/0x2\n", "f ;"},
		{"[<0>] f+0x1/0x2\n[<0>] g+0x1/0", "f ;"},
		{"f+0x1/0x2\n", ""},
		{"[<0>] +0x1/0x2\n", ""},
		{"[<0>] f g+0x1/0x2\n", ""},
		{"[<0>] f+0x1/0x2 ext4\n", ""},
		{"[<0>] f+0x1/0x2 \n", ""},
		{"[<0>] f\x1b[1m+0x1/0x2\n", ""},
		{"[<0>] f+0x1/0x2 [ext4 0123]\n", ""},
		{"\n\n[<0>] f+0x1/0x2\n\n", "f ;"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(str, (char *)parsed(cases[i].text), (char *)cases[i].frames),
			  "case %zu", i);
}

Test(kernel_stack, number_of_frames_is_limited)
{
	static const char line[] = "[<0>] f+0x1/0x2\n";
	char text[100 * sizeof(line)];

	text[0] = '\0';
	for (unsigned int i = 0; i < 100; i++)
		strcat(text, line);
	cr_expect(eq(sz, strlen(parsed(text)), KERNEL_STACK_MAX_FRAMES * strlen("f ;")));
}

/* Our own stack contains the function that reads it. */
Test(kernel_stack, reads_our_own_stack)
{
	static struct kernel_stack stack;
	struct process process;
	struct message message;
	bool found = false;
	int err;

	cr_assert(zero(int, process_open(getpid(), &process, &message)));
	err = kernel_stack_read(&process, getpid(), &stack);
	if (err != -EPERM && err != -ENOENT) {
		cr_expect(zero(int, err));
		for (unsigned int i = 0; i < stack.nr_frames; i++)
			found |= strcmp(stack.frames[i].name, "proc_pid_stack") == 0;
		cr_expect(found);
	}
	process_close(&process);
}
