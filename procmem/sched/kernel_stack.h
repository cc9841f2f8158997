/* SPDX-License-Identifier: MIT */
/*
 * The kernel stack of a thread of another process while it waits in the kernel: the function names
 * in /proc/PID/task/TID/stack. For a running thread the file is empty or shows an earlier state.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "procmem/process.h"

/* The kernel reports at most this many frames (MAX_STACK_TRACE_DEPTH of fs/proc/base.c). */
#define KERNEL_STACK_MAX_FRAMES 64

/* A name has at most 512 bytes (KSYM_NAME_LEN), usually 20. Text beyond this limit is dropped. */
#define KERNEL_STACK_MAX_BYTES 8192

struct kernel_stack_frame {
	const char *name;   /* of a function; points into text */
	const char *module; /* "[ext4]"; "" if it is in none; points into text or is constant */
};

struct kernel_stack {
	char text[KERNEL_STACK_MAX_BYTES];			   /* holds the names */
	struct kernel_stack_frame frames[KERNEL_STACK_MAX_FRAMES]; /* innermost first */
	unsigned int nr_frames;
};

/*
 * Read the current kernel stack of thread tid, an id in our PID namespace. Returns 0, -EPERM if
 * CAP_SYS_ADMIN is missing, -ESRCH if the thread has ended, -ENOENT if the kernel was built
 * without it, or the errno of a system call.
 *
 * Source: proc_pid_stack(5); fs/proc/base.c, proc_pid_stack(); lib/vsprintf.c, "%pB".
 */
int kernel_stack_read(const struct process *process, pid_t tid, struct kernel_stack *ret_stack);

/*
 * Parse the text of the stack in place: lines "[<ADDRESS>] NAME+0xOFFSET/0xSIZE", optionally
 * followed by " [MODULE]". Malformed lines are skipped, and so is a last line that was cut.
 */
void kernel_stack_parse(struct kernel_stack *stack);
