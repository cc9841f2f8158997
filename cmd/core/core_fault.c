/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_fault.h"

#include <signal.h>

#include "symbols/unwind/unwind.h"

/* Limit on the frames of a handler; a deeper one is not followed. faulthandler has five. */
enum { MAX_FRAMES = 64 };

/*
 * Offsets from the stack pointer of the frame that a handler returns to. On x86-64 (struct
 * rt_sigframe of arch/x86/include/asm/sigframe.h; its return address is already popped): the
 * ucontext, with the processor's report of the thread's last fault that became a signal, and
 * siginfo_t. On aarch64 siginfo_t comes first (arch/arm64/kernel/signal.c).
 */
#if defined(__x86_64__)
enum { TRAP_AT = 200, FAULT_ADDR_AT = 216, SIGINFO_AT = 304, TRAP_PAGE_FAULT = 14 };
#elif defined(__aarch64__)
enum { SIGINFO_AT = 0 };
#endif

/*
 * Read what the kernel passed to the handler. The bytes are arbitrary unless the handler asked
 * for them (SA_SIGINFO).
 */
static bool read_siginfo(struct core *core, remote_addr sp_addr, int signal,
			 struct core_death *ret_death)
{
	uint8_t siginfo[CORE_SIGINFO_BYTES];

	if (remote_memory_read(core_memory(core), sp_addr + SIGINFO_AT, siginfo, sizeof(siginfo)))
		return false;
	*ret_death = core_death_of_siginfo(siginfo);
	return ret_death->signal == signal && ret_death->has_addr;
}

/* Read the processor's report, if it has an address. */
static bool read_trap(struct core *core, remote_addr sp_addr, int signal,
		      struct core_death *ret_death)
{
#if defined(__x86_64__)
	uint64_t trap, addr;

	if ((signal != SIGSEGV && signal != SIGBUS) ||
	    remote_memory_read_u64(core_memory(core), sp_addr + TRAP_AT, &trap) ||
	    remote_memory_read_u64(core_memory(core), sp_addr + FAULT_ADDR_AT, &addr) ||
	    trap != TRAP_PAGE_FAULT)
		return false;
	*ret_death = (struct core_death){.signal = signal, .has_addr = true, .addr = addr};
	return true;
#else
	(void)core, (void)sp_addr, (void)signal, (void)ret_death;
	return false;
#endif
}

static bool find_on_stack(struct core *core, struct unwind_modules *modules,
			  struct stack_window *window, struct core_fault *ret_fault)
{
	const struct core_thread *thread = &core->notes.threads[0];
	const struct registers registers = registers_of_user(thread->registers);
	const int signal = core->notes.death.signal;
	struct unwind_frame frames[MAX_FRAMES];
	struct unwound unwound = {.frames = frames, .max_frames = MAX_FRAMES};
	size_t i = 0;

	/* The frames up to a gap are enough. */
	(void)unwind_stack(modules, window, &registers, &unwound);
	while (i < unwound.nr_frames && !frames[i].is_signal_frame)
		i++;
	if (i + 1 >= unwound.nr_frames)
		return false;
	ret_fault->sp_addr = frames[i + 1].sp;
	return read_siginfo(core, frames[i].sp, signal, &ret_fault->death) ||
	       read_trap(core, frames[i].sp, signal, &ret_fault->death);
}

bool core_fault_find(struct core *core, struct image_source *images, struct core_fault *ret_fault)
{
	const struct core_death *death = &core->notes.death;
	struct stack_window window = {.buffer = NULL};
	struct module_map map = {0};
	struct module_files *files = NULL;
	struct unwind_modules *modules = NULL;
	bool is_found = false;

	if (!core_signal_is_fault(death->signal) || !death->has_sender || !core->notes.nr_threads)
		return false;
	if (stack_window_init(&window, core_memory(core)) == 0 &&
	    module_map_init(&map, &core->maps) == 0 && (files = module_files_create()) &&
	    unwind_modules_create(core_memory(core), &map, images, files, &modules) == 0)
		is_found = find_on_stack(core, modules, &window, ret_fault);
	unwind_modules_destroy(modules);
	module_files_destroy(files);
	module_map_done(&map);
	stack_window_done(&window);
	return is_found;
}
