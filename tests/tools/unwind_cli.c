/* SPDX-License-Identifier: MIT */
/*
 * unwind_cli PID [ROUNDS]: stop a process and unwind its threads' stacks with
 * symbols/unwind/unwind.h and with libdw, for tests/live/native/test_unwind.py and scripts/bench.
 * Prints "thread TID ERROR" for each thread and a line for each frame with its pc and sp:
 * "ours PC SP", then "libdw PC SP". With ROUNDS it prints instead "compiling NS 1", the extra time
 * that our first pass takes over the second because unwind information is read and compiled; then
 * it unwinds each stack ROUNDS times and prints "ours NS FRAMES" and "libdw NS FRAMES", the CPU
 * time and the number of frames. Not part of the product, which never stops a process.
 */
#include <dirent.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/process.h"
#include "symbols/elf/live_images.h"
#include "symbols/unwind/unwind.h"

#define MAX_FRAMES 65536

/* One stack as unwound by one of the two. */
struct stack {
	struct unwind_frame frames[MAX_FRAMES];
	size_t nr_frames;
	int err;
};

struct unwinder {
	struct unwind_modules *modules;
	struct stack_window window;
	Dwfl *dwfl;
	uint64_t ours_ns;
	uint64_t libdw_ns;
	uint64_t nr_ours;
	uint64_t nr_libdw;
};

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Stopping the threads. */

static void stop_thread(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
	    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		die("ptrace");
}

static struct registers registers_of(pid_t tid)
{
	struct user_regs_struct user;
	struct iovec all = {.iov_base = &user, .iov_len = sizeof(user)};
	uint64_t words[REGISTERS_USER_WORDS];

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &all))
		die("PTRACE_GETREGSET");
	memcpy(words, &user, sizeof(words));
	return registers_of_user(words);
}

/* Unwinding. */

static uint64_t cpu_time_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time))
		die("clock_gettime");
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void unwind_ours(struct unwinder *unwinder, const struct registers *registers,
			struct stack *stack)
{
	struct unwound unwound = {.frames = stack->frames, .max_frames = MAX_FRAMES};
	const uint64_t start_ns = cpu_time_ns();

	stack->err = unwind_stack(unwinder->modules, &unwinder->window, registers, &unwound);
	stack->nr_frames = unwound.nr_frames;
	unwinder->ours_ns += cpu_time_ns() - start_ns;
	unwinder->nr_ours += stack->nr_frames;
}

static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct stack *stack = arg;
	struct unwind_frame *frame = &stack->frames[stack->nr_frames];

	if (stack->nr_frames == MAX_FRAMES)
		return DWARF_CB_ABORT;
	*frame = (struct unwind_frame){.pc = 0};
	if (!dwfl_frame_pc(state, &frame->pc, NULL) ||
	    dwfl_frame_reg(state, REGISTER_SP, &frame->sp))
		return DWARF_CB_ABORT;
	stack->nr_frames++;
	return DWARF_CB_OK;
}

static void unwind_libdw(struct unwinder *unwinder, pid_t tid, struct stack *stack)
{
	const uint64_t start_ns = cpu_time_ns();

	stack->nr_frames = 0;
	stack->err = dwfl_getthread_frames(unwinder->dwfl, tid, take_frame, stack);
	unwinder->libdw_ns += cpu_time_ns() - start_ns;
	unwinder->nr_libdw += stack->nr_frames;
}

static void print_stack(const char *name, const struct stack *stack)
{
	for (size_t i = 0; i < stack->nr_frames; i++)
		printf("%s %" PRIx64 " %" PRIx64 "\n", name, stack->frames[i].pc,
		       stack->frames[i].sp);
}

static void unwind_thread(struct unwinder *unwinder, pid_t tid, unsigned long nr_rounds)
{
	const struct registers registers = registers_of(tid);
	static struct stack ours;
	static struct stack libdw;

	unwind_ours(unwinder, &registers, &ours);
	unwind_libdw(unwinder, tid, &libdw);
	if (!nr_rounds) {
		printf("thread %d %d\n", tid, ours.err);
		print_stack("ours", &ours);
		print_stack("libdw", &libdw);
		return;
	}
	unwinder->ours_ns = unwinder->libdw_ns = 0; /* everything is read and compiled now */
	unwinder->nr_ours = unwinder->nr_libdw = 0;
	for (unsigned long i = 0; i < nr_rounds; i++)
		unwind_ours(unwinder, &registers, &ours);
	for (unsigned long i = 0; i < nr_rounds; i++)
		unwind_libdw(unwinder, tid, &libdw);
	printf("ours %" PRIu64 " %" PRIu64 "\nlibdw %" PRIu64 " %" PRIu64 "\n", unwinder->ours_ns,
	       unwinder->nr_ours, unwinder->libdw_ns, unwinder->nr_libdw);
}

static void unwind_all_of_ours(struct unwinder *unwinder, const struct process_thread *threads,
			       size_t nr_threads)
{
	static struct stack stack;

	unwinder->ours_ns = 0;
	for (size_t i = 0; i < nr_threads; i++) {
		const struct registers registers = registers_of(threads[i].tid);

		unwind_ours(unwinder, &registers, &stack);
	}
}

static void print_compiling(struct unwinder *unwinder, const struct process_thread *threads,
			    size_t nr_threads)
{
	uint64_t first_ns;

	unwind_all_of_ours(unwinder, threads, nr_threads);
	first_ns = unwinder->ours_ns;
	unwind_all_of_ours(unwinder, threads, nr_threads);
	printf("compiling %" PRIu64 " 1\n",
	       first_ns > unwinder->ours_ns ? first_ns - unwinder->ours_ns : 0);
}

static Dwfl *open_libdw(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = dwfl_standard_find_debuginfo};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, pid, true)) {
		(void)fprintf(stderr, "libdw: %s\n", dwfl_errmsg(-1));
		exit(EXIT_FAILURE);
	}
	return dwfl;
}

static void unwind_process(struct process *process, const struct process_thread *threads,
			   size_t nr_threads, unsigned long nr_rounds)
{
	struct unwinder unwinder = {.dwfl = open_libdw(process->pid)};
	struct live_images images;
	struct live_memory live;
	struct maps maps;
	struct module_map map;
	struct module_files *files = module_files_create();

	live_memory_init(&live, process);
	live_images_init(&images, process);
	if (!files || maps_read(process, &maps) || module_map_init(&map, &maps) ||
	    unwind_modules_create(&live.memory, &map, &images.source, files, &unwinder.modules) ||
	    stack_window_init(&unwinder.window, &live.memory))
		die("memory");
	if (nr_rounds)
		print_compiling(&unwinder, threads, nr_threads);
	for (size_t i = 0; i < nr_threads; i++)
		unwind_thread(&unwinder, threads[i].tid, nr_rounds);
	stack_window_done(&unwinder.window);
	unwind_modules_destroy(unwinder.modules);
	module_files_destroy(files);
	module_map_done(&map);
	maps_done(&maps);
	dwfl_end(unwinder.dwfl);
}

int main(int argc, char **argv)
{
	struct process process = PROCESS_CLOSED;
	struct process_thread *threads = NULL;
	size_t nr_threads = 0;
	struct message message;

	if (argc < 2 || process_open(atoi(argv[1]), &process, &message) ||
	    process_threads(&process, &threads, &nr_threads)) {
		(void)fprintf(stderr, "usage: unwind_cli PID [ROUNDS]\n");
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < nr_threads; i++)
		stop_thread(threads[i].tid);
	unwind_process(&process, threads, nr_threads, argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
	for (size_t i = 0; i < nr_threads; i++)
		(void)ptrace(PTRACE_DETACH, threads[i].tid, 0, 0);
	free(threads);
	process_close(&process);
	return EXIT_SUCCESS;
}
