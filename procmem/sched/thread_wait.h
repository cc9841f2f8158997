/* SPDX-License-Identifier: MIT */
/*
 * Where a thread waits: the kernel function, and the system call by which it entered the kernel.
 * Source: proc_pid_stat(5), proc_pid_wchan(5), proc_pid_syscall(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

/* Limit on the name of a kernel function; a longer name is cut. */
#define THREAD_WAIT_WCHAN_MAX_BYTES 64

struct thread_wait {
	char state; /* R, S, D, T, t, Z, … */
	/* kernel function in which it waits; "": not waiting or unknown */
	char wchan[THREAD_WAIT_WCHAN_MAX_BYTES];
};

/*
 * Read the state and wchan of thread tid, an id in our PID namespace. Returns 0, -ESRCH if it has
 * ended, -EBADMSG, or the errno of a system call. An unreadable wchan is not an error.
 */
int thread_wait_read(const struct process *process, pid_t tid, struct thread_wait *ret_wait);

/*
 * Whether a thread waits for a page of its memory, or is frozen with its control group, as by
 * `docker pause`: by wchan, so false if that is unknown. Source: mm/filemap.c, mm/migrate.c,
 * fs/userfaultfd.c; kernel/freezer.c, kernel/signal.c.
 */
bool thread_wait_is_for_page(const struct thread_wait *wait);
bool thread_wait_is_frozen(const struct thread_wait *wait);

/* A system call that a thread is in. */
struct thread_call {
	int64_t number; /* -1: none */
	uint64_t arguments[6];
};

/*
 * Read the system call in which thread tid waits. Returns 0, -EAGAIN if it runs or is runnable,
 * -ESRCH if it has ended, -EPERM, -ENOENT if this kernel does not report it, or -EBADMSG.
 * thread_call_parse() parses the text of the file, with the same errors.
 */
int thread_call_read(const struct process *process, pid_t tid, struct thread_call *ret_call);
int thread_call_parse(const char *text, struct thread_call *ret_call);

/* Where a waiting thread entered the kernel. */
struct wait_place {
	uint64_t sp_addr; /* user-mode stack pointer, unmodified */
	/* user-mode instruction: after the system call, or the one that faulted */
	uint64_t pc_addr;
	uint64_t call_hash; /* hash of the system call's number and arguments, as text */
	uint64_t nr_runs;   /* run count read before; 0: unknown */
};

/*
 * Whether a thread that was at both places waited all the time in between. If nr_runs is unknown,
 * it may have run and entered the same wait again.
 */
static inline bool wait_place_is_same(const struct wait_place *a, const struct wait_place *b)
{
	return a->sp_addr == b->sp_addr && a->pc_addr == b->pc_addr &&
	       a->call_hash == b->call_hash && a->nr_runs == b->nr_runs;
}

/*
 * Read where thread tid waits. nr_runs is the result of an earlier run_count_read_once(). Returns
 * 0, -EAGAIN if the thread runs or is runnable, -ESRCH if it has ended, -EPERM, -ENOENT if this
 * kernel does not report it, or -EBADMSG. wait_place_parse() parses the text of the file, with the
 * same errors, and sets all members but nr_runs.
 */
int wait_place_read(const struct process *process, pid_t tid, uint64_t nr_runs,
		    struct wait_place *ret_place);
int wait_place_parse(const char *text, struct wait_place *ret_place);

/*
 * The same from a file that stays open, at a fifth of the cost. wait_place_open() returns a
 * descriptor, which the caller closes; -ESRCH, -EPERM, -ENOENT; or -EMFILE or -ENFILE if half of
 * the descriptors are in use.
 */
int wait_place_open(const struct process *process, pid_t tid);
int wait_place_read_fd(int fd, uint64_t nr_runs, struct wait_place *ret_place);

/*
 * Check that thread tid has waited at place since that was read, which proves that memory read in
 * between belongs to one instant. Returns 0, -EAGAIN if it has not, or an error of
 * wait_place_read().
 */
int wait_place_check(const struct process *process, pid_t tid, const struct wait_place *place);
