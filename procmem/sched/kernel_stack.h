/* SPDX-License-Identifier: MIT */
/*
 * What a thread of another process does inside of the kernel, while it waits there: the
 * functions, by the names that the kernel writes into /proc/PID/task/TID/stack. Of one that runs it
 * tells what the thread did at some time before, or nothing.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "procmem/process.h"

/* The kernel tells so many at most (MAX_STACK_TRACE_DEPTH of fs/proc/base.c). */
#define KERNEL_STACK_MAX_FRAMES 64

/* A name has 512 bytes at most (KSYM_NAME_LEN), mostly 20; what is behind so many is left out. */
#define KERNEL_STACK_MAX_BYTES 8192

struct kernel_stack_frame {
	const char *name;   /* of a function; in the text */
	const char *module; /* "[ext4]"; "": it is in none. In the text, or constant */
};

struct kernel_stack {
	char text[KERNEL_STACK_MAX_BYTES];			   /* has the names */
	struct kernel_stack_frame frames[KERNEL_STACK_MAX_FRAMES]; /* innermost first */
	unsigned int nr_frames;
};

/*
 * Read that of thread tid, an id in our PID namespace, as it is now. 0; -EPERM: that takes
 * CAP_SYS_ADMIN; -ESRCH (it has ended); -ENOENT (the kernel was built without); or the errno of
 * a system call.
 *
 * Source: proc_pid_stack(5); fs/proc/base.c, proc_pid_stack(); lib/vsprintf.c, "%pB".
 */
int kernel_stack_read(const struct process *process, pid_t tid, struct kernel_stack *ret_stack);

/*
 * Take the text of the stack apart, which changes it: lines "[<ADDRESS>] NAME+0xOFFSET/0xSIZE", and
 * " [MODULE]" behind it. Lines of another form are left out, as is a last one that is cut.
 */
void kernel_stack_parse(struct kernel_stack *stack);
