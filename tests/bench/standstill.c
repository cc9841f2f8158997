/* SPDX-License-Identifier: MIT */
#include "tests/bench/standstill.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "sampler/ticker.h"

/* What keeps one CPU. */
struct keeper {
	pthread_t thread;
	struct standstill *still;
	unsigned cpu;
};

struct standstill {
	_Atomic uint64_t next_ns;    /* when the next round begins; 0: never */
	_Atomic unsigned nr_ended;   /* rounds */
	_Atomic unsigned nr_arrived; /* keepers, in all rounds */
	_Atomic uint64_t late_ns;    /* of the last that arrived in this round */
	unsigned nr_keepers;	     /* beside the caller, who keeps a CPU as well */
	long nr_sleeps;		     /* of the caller when all had arrived */
	struct keeper keepers[CPU_SETSIZE];
};

static uint64_t sleep_until(uint64_t moment_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(moment_ns / NS_PER_S),
		.tv_nsec = (long)(moment_ns % NS_PER_S),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
		;
	return clock_now_ns() - moment_ns;
}

static long count_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}

static void *keep(void *argument)
{
	struct keeper *keeper = argument;
	struct standstill *still = keeper->still;
	uint64_t moment_ns;

	for (unsigned round = 1; (moment_ns = still->next_ns) != 0; round++) {
		const uint64_t late_ns = sleep_until(moment_ns);
		uint64_t latest_ns = still->late_ns;

		while (late_ns > latest_ns &&
		       !atomic_compare_exchange_weak(&still->late_ns, &latest_ns, late_ns))
			;
		still->nr_arrived++;
		while (still->nr_ended < round)
			__builtin_ia32_pause();
	}
	return NULL;
}

/* A thread of that policy on that CPU. 0 or an errno. */
static int start_keeper(struct keeper *keeper)
{
	const struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int err = pthread_attr_init(&attributes);

	if (err)
		return err;
	CPU_ZERO(&cpus);
	CPU_SET(keeper->cpu, &cpus);
	(void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	(void)pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	(void)pthread_attr_setschedparam(&attributes, &param);
	(void)pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	err = pthread_create(&keeper->thread, &attributes, keep, keeper);
	(void)pthread_attr_destroy(&attributes);
	return err;
}

/* Take that CPU ourselves. 0 or an errno. */
static int move_to(unsigned cpu)
{
	const struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus) != 0 ||
			       sched_setscheduler(0, SCHED_FIFO, &param) != 0
		       ? errno
		       : 0;
}

int standstill_create(pid_t pid, uint64_t first_ns, struct standstill **ret_still)
{
	struct standstill *still = calloc(1, sizeof(*still));
	cpu_set_t cpus;
	bool has_own = false;
	int err = 0;

	if (!still)
		return -ENOMEM;
	if (sched_getaffinity(pid, sizeof(cpus), &cpus) != 0)
		err = errno;
	still->next_ns = first_ns;
	for (unsigned cpu = 0; !err && cpu < CPU_SETSIZE; cpu++) {
		struct keeper *keeper = &still->keepers[still->nr_keepers];

		if (!CPU_ISSET(cpu, &cpus))
			continue;
		if (!has_own) {
			has_own = true;
			err = move_to(cpu);
			continue;
		}
		*keeper = (struct keeper){.still = still, .cpu = cpu};
		err = start_keeper(keeper);
		if (!err)
			still->nr_keepers++;
	}
	if (err) {
		standstill_end(still, 0);
		standstill_destroy(still);
		return -err;
	}
	*ret_still = still;
	return 0;
}

uint64_t standstill_wait(struct standstill *still)
{
	const uint64_t late_ns = sleep_until(still->next_ns);

	while (still->nr_arrived < still->nr_keepers * (still->nr_ended + 1))
		__builtin_ia32_pause();
	still->nr_sleeps = count_sleeps();
	return late_ns > still->late_ns ? late_ns : still->late_ns;
}

bool standstill_is_broken(const struct standstill *still)
{
	return count_sleeps() != still->nr_sleeps;
}

void standstill_end(struct standstill *still, uint64_t next_ns)
{
	still->late_ns = 0;
	still->next_ns = next_ns;
	still->nr_ended++;
}

void standstill_destroy(struct standstill *still)
{
	if (!still)
		return;
	for (unsigned i = 0; i < still->nr_keepers; i++)
		(void)pthread_join(still->keepers[i].thread, NULL);
	free(still);
}
