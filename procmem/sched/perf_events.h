/* SPDX-License-Identifier: MIT */
/*
 * Threads of a process that the kernel interrupts for a moment each time they have used so much
 * CPU time, to copy their registers and their stack: neither stops them otherwise, nor is
 * anything written to the process. Each thread has an event and a ring buffer of its own. Either each
 * dump wakes the user, who asks for the next one; or a BPF program that runs in the same interrupts
 * tells the user which dumps there are, and nobody is woken.
 *
 * Events of threads need one each, with a buffer each: those of cpu -1 can neither share a
 * buffer nor be inherited by threads that are made later. Source: perf_event_open(2);
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
	uint64_t period_ns; /* CPU time of a thread between two dumps of it */
	uint32_t
		max_stack_bytes; /* of a dump: a multiple of 8, at most PERF_RECORD_MAX_STACK_BYTES */
	bool tells_kernel; /* where a thread is inside of the kernel, too, if that may be told */
	bool has_program; /* each interrupt runs program_fd, a BPF program that tells who is dumped */
	int program_fd;
};

/* Counters, exact but for nr_lost, which the kernel tells with the next dump of that thread. */
struct perf_events_stats {
	uint64_t nr_dumps;
	uint64_t nr_lost;    /* dumps for which a ring had no room */
	uint64_t nr_mapped;  /* files with code that threads have mapped since they are followed */
	uint64_t nr_made;    /* likewise, memory for code that is in no file */
	uint64_t nr_refused; /* threads that could not be followed: descriptors, memory */
};

struct perf_thread;

struct perf_events {
	const struct process *process; /* borrowed */
	struct perf_events_options options;
	bool user_only; /* what a thread does inside the kernel may not be told, so it is not */
	int epoll_fd;
	struct perf_thread *threads; /* private; owned */
	uint32_t nr_threads, max_threads;
	uint32_t current;	/* of threads: whose ring is looked through */
	size_t nr_taken_bytes;	/* of that ring, which the last dump is in; 0: none is */
	struct perf_dump found; /* perf_events_find()'s last, as long as it is taken */
	bool is_told;		/* perf_events_next() has told all that was found last */
	uint8_t *record;	/* PERF_RECORD_MAX_BYTES; owned */
	struct perf_events_stats stats;
};

/* Events that are not open. */
#define PERF_EVENTS_CLOSED ((struct perf_events){.epoll_fd = -1})

/*
 * Prepare to follow threads of a process, borrowed until perf_events_close(), which accepts
 * PERF_EVENTS_CLOSED. Whether it is allowed is found out with a thread of it. 0; -EPERM and a
 * sentence (kernel.perf_event_paranoid, a seccomp filter, another user's process), -ENOTSUP and
 * a sentence (this kernel has none), -ESRCH, -ENOMEM, or the errno of a system call.
 */
int perf_events_open(const struct process *process, const struct perf_events_options *options,
		     struct perf_events *ret_events, struct message *reterr);
void perf_events_close(struct perf_events *events);

/*
 * Follow a thread, an id in our PID namespace, from now on until it ends; what it takes of the kernel
 * (a descriptor, 128 to 512 KiB) is given back when perf_events_next() has told its last dump. 0, also if it is
 * followed already; -ESRCH, -EPERM, -ENOMEM, -EMFILE or -ENFILE (no descriptor is left, but for
 * the few of procmem/descriptor_limit.h); all but the first are counted as nr_refused. A thread that
 * has a program and no ring is interrupted all the same.
 */
int perf_events_add(struct perf_events *events, pid_t tid);

/*
 * Sleep until some thread has been dumped, or until the time of CLOCK_MONOTONIC; a signal ends
 * it, too. One system call; nothing is allocated.
 */
void perf_events_wait(struct perf_events *events, uint64_t until_ns);

/*
 * Find what there is without sleeping, unless perf_events_next() has not told all yet: for who had no
 * time to wait. One system call, or none.
 */
void perf_events_catch_up(struct perf_events *events);

/*
 * The next dump of a thread that perf_events_wait() or perf_events_catch_up() found: each thread's
 * from the oldest on. Valid until the next call. 0; -ENOENT: that was all.
 */
int perf_events_next(struct perf_events *events, struct perf_dump *ret_dump);

/*
 * The dump of that thread at which its event had counted so much, as its program has told at that
 * time of CLOCK_MONOTONIC; the kernel may be about to write it, and is waited for, two milliseconds
 * at most. Older ones are passed over. Valid until another one is asked for. NULL: it was lost, or the
 * thread has no ring.
 */
const struct perf_dump *perf_events_find(struct perf_events *events, pid_t tid, uint64_t count_ns,
					 uint64_t time_ns);

/* So many dumps of each thread there is room for, at least, until they are found. */
uint32_t perf_events_room(const struct perf_events *events);

/* Give back what threads take that have ended, whose dumps were found: for who does not wait. */
void perf_events_sweep(struct perf_events *events);

/* What the event of a thread has counted by now. One system call. 0; -ESRCH: it is not followed. */
int perf_events_count(const struct perf_events *events, pid_t tid, uint64_t *ret_count_ns);
