/* SPDX-License-Identifier: MIT */
/* A thread of the test that waits, and continues when the test wants it to. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_wait.h"

/* The thread reads single bytes from a pipe until the pipe is closed. */
struct pipe_waiter {
	pthread_t thread;
	pid_t tid;
	int pipe_fds[2];
	const void *on_stack; /* a variable of the reading function */
	int nr_bytes;	      /* bytes read so far */
};

static inline void *pipe_waiter_run(void *argument)
{
	struct pipe_waiter *waiter = argument;
	char byte;

	waiter->on_stack = &byte;
	__atomic_store_n(&waiter->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (read(waiter->pipe_fds[0], &byte, 1) == 1)
		__atomic_add_fetch(&waiter->nr_bytes, 1, __ATOMIC_RELEASE);
	return NULL;
}

static inline void pipe_waiter_begin(struct pipe_waiter *waiter)
{
	*waiter = (struct pipe_waiter){.tid = 0};
	cr_assert(zero(int, pipe(waiter->pipe_fds)));
	cr_assert(zero(int, pthread_create(&waiter->thread, NULL, pipe_waiter_run, waiter)));
}

/* The thread's place once it waits. process is the test itself. */
static inline struct wait_place pipe_waiter_place(struct pipe_waiter *waiter,
						  const struct process *process)
{
	struct wait_place place;
	int err = -EAGAIN;

	while (!__atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE) ||
	       (err = wait_place_read(process, waiter->tid,
				      run_count_read_once(process, waiter->tid), &place)) ==
		       -EAGAIN)
		(void)usleep(1000);
	cr_assert(zero(int, err));
	return place;
}

/* Let the thread continue. When this returns it has read a byte, and may not wait yet. */
static inline void pipe_waiter_send(struct pipe_waiter *waiter)
{
	const int nr_bytes = __atomic_load_n(&waiter->nr_bytes, __ATOMIC_ACQUIRE);

	cr_assert(eq(int, (int)write(waiter->pipe_fds[1], "x", 1), 1));
	while (__atomic_load_n(&waiter->nr_bytes, __ATOMIC_ACQUIRE) == nr_bytes)
		(void)usleep(10);
}

/* Let the thread continue and wait for the next byte. Returns its place, which is the same. */
static inline struct wait_place pipe_waiter_continue(struct pipe_waiter *waiter,
						     const struct process *process)
{
	pipe_waiter_send(waiter);
	return pipe_waiter_place(waiter, process);
}

/* End and join the thread. */
static inline void pipe_waiter_end(struct pipe_waiter *waiter)
{
	(void)close(waiter->pipe_fds[1]);
	(void)pthread_join(waiter->thread, NULL);
	(void)close(waiter->pipe_fds[0]);
}
