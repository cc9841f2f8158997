/* SPDX-License-Identifier: MIT */
#include "tests/bench/tools/standstill.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"

/* The caller preempts the keeper of its CPU, and both preempt everything else. */
enum { KEEPER_PRIORITY = 1, CALLER_PRIORITY = 2 };

/* A process that does not stop within this time has a thread in an uninterruptible sleep. */
#define STOP_PATIENCE_NS 5000000000u
#define STOP_POLL_NS	 100000u

/* The caller reads until it ends the standstill, or loses it by going to sleep. */
enum phase { PHASE_WAITS, PHASE_READS, PHASE_LOST };

/* A thread that keeps one CPU. */
struct keeper {
	pthread_t thread;
	struct standstill *still;
};

struct standstill {
	const struct process *process;
	_Atomic uint64_t next_ns;    /* when the next round begins; 0: never */
	_Atomic unsigned nr_ended;   /* rounds that have ended */
	_Atomic unsigned nr_arrived; /* arrivals of all keepers but the first, over all rounds */
	_Atomic int phase;	     /* enum phase */
	unsigned nr_keepers;
	struct keeper keepers[CPU_SETSIZE]; /* the first one is on the caller's CPU */
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static void sleep_until(uint64_t moment_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(moment_ns / NS_PER_S),
		.tv_nsec = (long)(moment_ns % NS_PER_S),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
		;
}

/*
 * Send SIGSTOP to each thread. If it were sent to the process, any thread could take it, and the
 * others would run on until that one has a CPU. SIGCONT discards the signals that are left.
 */
static void stop_threads(const struct process *process)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;

	if (process_threads(process, &threads, &nr_threads))
		return;
	for (size_t i = 0; i < nr_threads; i++)
		(void)syscall(SYS_tgkill, process->pid, threads[i].tid, SIGSTOP);
}

/* If the caller went to sleep while it was reading, stop the process and let the CPUs go. */
static void lose(struct standstill *still)
{
	int phase = PHASE_READS;

	if (!atomic_compare_exchange_strong(&still->phase, &phase, PHASE_LOST))
		return;
	stop_threads(still->process);
	still->nr_ended++;
}

static void *keep(void *argument)
{
	struct keeper *keeper = argument;
	struct standstill *still = keeper->still;
	const bool is_first = keeper == still->keepers;

	for (unsigned round = 1;; round++) {
		while (still->phase == PHASE_LOST) /* the process needs the CPU to stop */
			sleep_until(clock_now_ns() + STOP_POLL_NS);
		if (!still->next_ns)
			break;
		sleep_until(still->next_ns);
		if (!is_first)
			still->nr_arrived++;
		while (still->nr_ended < round) {
			/* It has the lower priority, so it runs only if the caller does not. */
			if (is_first)
				lose(still);
			pause_cpu();
		}
	}
	return NULL;
}

static const struct sched_param keeper_param = {.sched_priority = KEEPER_PRIORITY};
static const struct sched_param caller_param = {.sched_priority = CALLER_PRIORITY};

/* Start the keeper of a CPU. Returns 0 or a positive errno. */
static int start_keeper(struct standstill *still, unsigned cpu)
{
	struct keeper *keeper = &still->keepers[still->nr_keepers];
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int err = pthread_attr_init(&attributes);

	if (err)
		return err;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	keeper->still = still;
	(void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	(void)pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	(void)pthread_attr_setschedparam(&attributes, &keeper_param);
	(void)pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	err = pthread_create(&keeper->thread, &attributes, keep, keeper);
	(void)pthread_attr_destroy(&attributes);
	if (!err)
		still->nr_keepers++;
	return err;
}

/* Put the calling thread on a CPU, where it preempts the keeper. Returns 0 or a positive errno. */
static int take_cpu(unsigned cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus) != 0 ||
			       sched_setscheduler(0, SCHED_FIFO, &caller_param) != 0
		       ? errno
		       : 0;
}

int standstill_create(const struct process *process, uint64_t first_ns,
		      struct standstill **ret_still)
{
	struct standstill *still = calloc(1, sizeof(*still));
	cpu_set_t cpus;
	int err = 0;

	if (!still)
		return -ENOMEM;
	still->process = process;
	still->next_ns = first_ns;
	if (sched_getaffinity(process->pid, sizeof(cpus), &cpus) != 0)
		err = errno;
	for (unsigned cpu = 0; !err && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		if (!still->nr_keepers)
			err = take_cpu(cpu);
		if (!err)
			err = start_keeper(still, cpu);
	}
	if (err) {
		standstill_end(still, 0);
		standstill_destroy(still);
		return -err;
	}
	*ret_still = still;
	return 0;
}

void standstill_wait(struct standstill *still)
{
	sleep_until(still->next_ns);
	while (still->nr_arrived < (still->nr_keepers - 1) * (still->nr_ended + 1))
		pause_cpu();
	still->phase = PHASE_READS;
}

/* The state letter of proc_pid_stat(5), which follows the name; '\0' if the thread is gone. */
static char thread_state(const struct process *process, pid_t tid)
{
	char path[64], text[512];
	const char *end;

	(void)snprintf(path, sizeof(path), "task/%d/stat", tid);
	if (process_read_file(process, path, text, sizeof(text)) < 0)
		return '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '\0';
}

/* Find out whether no thread of the process can run. Returns 0 or a negative errno. */
static int all_stopped(const struct process *process, bool *ret_stopped)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(process, &threads, &nr_threads);

	if (err)
		return err;
	*ret_stopped = nr_threads > 0;
	for (size_t i = 0; i < nr_threads && *ret_stopped; i++) {
		const char state = thread_state(process, threads[i].tid);

		*ret_stopped = state == 'T' || state == 'Z' || state == 'X';
	}
	return 0;
}

bool standstill_is_lost(const struct standstill *still)
{
	return still->phase == PHASE_LOST;
}

int standstill_regain(struct standstill *still)
{
	const uint64_t deadline_ns = clock_now_ns() + STOP_PATIENCE_NS;
	bool stopped = false;
	int err = all_stopped(still->process, &stopped);

	while (!err && !stopped) {
		if (clock_now_ns() > deadline_ns)
			return -ETIMEDOUT;
		sleep_until(clock_now_ns() + STOP_POLL_NS);
		err = all_stopped(still->process, &stopped);
	}
	return err;
}

void standstill_end(struct standstill *still, uint64_t next_ns)
{
	int phase = PHASE_READS;

	still->next_ns = next_ns;
	(void)atomic_compare_exchange_strong(&still->phase, &phase, PHASE_WAITS);
	if (phase != PHASE_LOST) {
		still->nr_ended++;
		return;
	}
	/* lose() has ended the round. Keepers that still sleep must not miss the next one. */
	if (next_ns)
		still->next_ns += 3 * STOP_POLL_NS;
	(void)syscall(SYS_pidfd_send_signal, still->process->proc_fd, SIGCONT, NULL, 0);
	still->phase = PHASE_WAITS;
}

void standstill_destroy(struct standstill *still)
{
	if (!still)
		return;
	for (unsigned i = 0; i < still->nr_keepers; i++)
		(void)pthread_join(still->keepers[i].thread, NULL);
	free(still);
}
