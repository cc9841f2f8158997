/* SPDX-License-Identifier: MIT */
#include "sampler/native/kernel_frames.h"

#include <errno.h>
#include <string.h>

#include "sampler/sampler_state.h"

int kernel_frames_open(struct kernel_frames *kernel, const struct process *process,
		       struct sampler *sampler, struct message *ret_why)
{
	int err;

	*kernel = (struct kernel_frames){.process = process, .sampler = sampler};
	err = kernel_names_read(&kernel->names);
	if (err == -ENOMEM)
		return err;
	if (err == -EPERM)
		message_set(
			ret_why,
			"/proc/kallsyms hides addresses: they require " KERNEL_NAMES_REQUIREMENTS);
	else if (err)
		message_set(ret_why, "/proc/kallsyms cannot be read: %s", strerror(-err));
	/*
	 * Try the main thread, to find out whether the kernel shows the stacks of waiting
	 * threads.
	 */
	err = kernel_stack_read(process, process->pid, &kernel->stack);
	kernel->has_waiting = !err || err == -ESRCH;
	if (ret_why->text[0] || kernel->has_waiting)
		return 0;
	if (err == -EPERM)
		message_set(ret_why, "for waiting threads: /proc/PID/task/TID/stack requires "
				     "CAP_SYS_ADMIN");
	else
		message_set(ret_why,
			    "for waiting threads: /proc/PID/task/TID/stack cannot be "
			    "read: %s",
			    strerror(-err));
	return 0;
}

void kernel_frames_close(struct kernel_frames *kernel)
{
	kernel_names_destroy(kernel->names);
	*kernel = (struct kernel_frames){.process = NULL};
}

/* Append a function. Returns 0 or -ENOMEM. */
static int append(struct kernel_frames *kernel, const char *name, const char *module)
{
	const struct function *function = sampler_function(kernel->sampler, FUNCTION_KERNEL, name,
							   module[0] ? module : KERNEL_FRAMES_PATH);

	if (!function)
		return -ENOMEM;
	kernel->functions[kernel->nr_functions++] = function;
	return 0;
}

int kernel_frames_set_running(struct kernel_frames *kernel, const uint64_t *addrs,
			      uint32_t nr_addrs)
{
	int err = 0;

	kernel->nr_functions = 0;
	for (uint32_t i = 0; !err && kernel->names && i < nr_addrs; i++) {
		const char *name = KERNEL_FRAMES_UNNAMED, *module = "";

		/* A return address follows a call, which may be the function's last instruction. */
		(void)kernel_names_find(kernel->names, addrs[i] - (i != 0), &name, &module);
		err = append(kernel, name, module);
	}
	return err;
}

int kernel_frames_set_waiting(struct kernel_frames *kernel, pid_t tid)
{
	int err = 0;

	kernel->nr_functions = 0;
	if (!kernel->has_waiting || kernel_stack_read(kernel->process, tid, &kernel->stack))
		return 0;
	for (unsigned int i = 0; !err && i < kernel->stack.nr_frames; i++)
		err = append(kernel, kernel->stack.frames[i].name, kernel->stack.frames[i].module);
	return err;
}
