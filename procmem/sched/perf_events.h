/* SPDX-License-Identifier: MIT */
/*
 * Copies of the registers and stacks of the threads of a process. The kernel interrupts each thread
 * briefly whenever it has used a certain amount of CPU time, and copies both. It does not stop the
 * threads otherwise and writes nothing to the process. Either each copy wakes the caller, which
 * then fetches it; or a BPF program that runs in the same interrupts reports which copies exist,
 * and nobody is woken.
 *
 * Each thread needs its own event with its own ring buffer: events with cpu -1 can neither share a
 * buffer nor be inherited by threads created later. Source: perf_event_open(2);
 * kernel/events/core.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/message.h"
#include "procmem/process.h"
#include "procmem/sched/perf_record.h"

struct perf_events_options {
	uint64_t period_ns;	  /* CPU time of a thread between two of its copies */
	uint32_t max_stack_bytes; /* a multiple of 8, at most PERF_RECORD_MAX_STACK_BYTES */
	bool kernel_frames;	  /* also record the thread's kernel frames, if that is permitted */
	/*
	 * If has_program, each interrupt runs program_fd, a BPF program that chooses what is
	 * copied.
	 */
	bool has_program;
	int program_fd;
};

/*
 * Exact counters, except nr_lost: the kernel reports losses only with the next copy of that
 * thread.
 */
struct perf_events_stats {
	uint64_t nr_copies;
	uint64_t nr_lost;      /* copies that did not fit into a ring */
	uint64_t nr_mapped;    /* files with code mapped by threads since they were followed */
	uint64_t nr_anonymous; /* likewise, anonymous mappings for code */
	uint64_t nr_refused;   /* threads that could not be followed: descriptors, memory */
};

struct perf_thread;

struct perf_events {
	const struct process *process; /* borrowed */
	struct perf_events_options options;
	/*
	 * Kernel mode is not permitted: threads inside the kernel are neither interrupted nor
	 * copied.
	 */
	bool user_only;
	int epoll_fd;
	struct perf_thread *threads; /* private; owned */
	uint32_t nr_threads, max_threads;
	uint32_t current;    /* index of the thread whose ring is being read */
	size_t record_bytes; /* size of the record being read from that ring; 0: none */
	/* last result of perf_events_find(), valid while record_bytes is not 0 */
	struct perf_copy found;
	bool is_drained; /* perf_events_next() has returned all copies of the last search */
	uint8_t *record; /* PERF_RECORD_MAX_BYTES; owned */
	struct perf_events_stats stats;
};

/* Closed events. */
#define PERF_EVENTS_CLOSED ((struct perf_events){.epoll_fd = -1})

/*
 * Prepare to follow threads of a process, which is borrowed until perf_events_close(). Permission
 * is tested with one of its threads. Returns 0; -EPERM and a sentence (kernel.perf_event_paranoid,
 * a seccomp filter, another user's process); -ENOTSUP and a sentence (this kernel has none);
 * -ESRCH; -ENOMEM; or the errno of a system call. perf_events_close() accepts PERF_EVENTS_CLOSED.
 */
int perf_events_open(const struct process *process, const struct perf_events_options *options,
		     struct perf_events *ret_events, struct message *reterr);
void perf_events_close(struct perf_events *events);

/*
 * Follow a thread, an id in our PID namespace, until it ends. Its kernel resources (a descriptor,
 * 128 to 512 KiB) are released after perf_events_next() has returned its last copy. A thread with a
 * program is interrupted even if it has no ring, which counts as nr_refused.
 *
 * Returns 0, also if the thread is followed already; -ESRCH, -EPERM, -ENOMEM, or -EMFILE or -ENFILE
 * if no descriptor is left beyond the reserve of procmem/descriptor_limit.h. All errors but -ESRCH
 * count as nr_refused.
 */
int perf_events_add(struct perf_events *events, pid_t tid);

/*
 * Stop or continue to copy the threads that are followed. What was copied before can be read.
 * Returns 0 or the errno of a system call.
 */
int perf_events_enable(struct perf_events *events, bool is_on);

/*
 * Sleep until a thread is copied, until_ns (CLOCK_MONOTONIC) is reached, or a signal arrives. One
 * system call; allocates nothing.
 */
void perf_events_wait(struct perf_events *events, uint64_t until_ns);

/*
 * Search for copies without sleeping, unless perf_events_next() has not yet returned all of the
 * last search. For callers that had no time to wait. At most one system call.
 */
void perf_events_catch_up(struct perf_events *events);

/*
 * Get the next copy found by perf_events_wait() or perf_events_catch_up(), each thread's oldest
 * first. It is valid until the next call. Returns 0, or -ENOENT after the last one.
 */
int perf_events_next(struct perf_events *events, struct perf_copy *ret_copy);

/*
 * Returns the copy of thread tid at which its event had counted count_ns, as its program reported
 * at time_ns (CLOCK_MONOTONIC). The kernel may still be writing it; the call waits for at most 2
 * ms after time_ns. Older copies are discarded. The copy is valid until the next call. Returns NULL
 * if it was lost or the thread has no ring.
 */
const struct perf_copy *perf_events_find(struct perf_events *events, pid_t tid, uint64_t count_ns,
					 uint64_t time_ns);

/*
 * Returns how many copies of maximum size the smallest ring holds.
 */
uint32_t perf_events_room(const struct perf_events *events);

/*
 * Release the resources of threads that have ended and whose copies were fetched. For callers that
 * do not use perf_events_wait().
 */
void perf_events_drop_ended(struct perf_events *events);

/*
 * Read the current count of a thread's event. One system call. Returns 0, or -ESRCH if the thread
 * is not followed.
 */
int perf_events_count(const struct perf_events *events, pid_t tid, uint64_t *ret_count_ns);
