/* SPDX-License-Identifier: MIT */
/*
 * sleeploop HZ SECONDS: sleeps until absolute deadlines and does nothing else. Its CPU time is the
 * cost of a timer at that rate on this machine, which no sampler that sleeps can undercut. Prints
 * how often it woke and its CPU time in ns. It shares no code with the sampler, so that the figure
 * does not include what the sampler does to be on time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t time_ns)
{
	const struct timespec time = {
		.tv_sec = (time_t)(time_ns / NS_PER_S),
		.tv_nsec = (long)(time_ns % NS_PER_S),
	};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

int main(int argc, char **argv)
{
	double rate_hz = argc == 3 ? strtod(argv[1], NULL) : 0;
	double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	uint64_t interval_ns, deadline_ns, end_ns, begin_cpu_ns;
	unsigned long nr_wakes = 0;

	if (!(rate_hz >= 1 && rate_hz <= 1e6 && seconds > 0 && seconds < 1e6)) {
		(void)fputs("usage: sleeploop HZ SECONDS\n", stderr);
		return 2;
	}
	/* The default slack of 50 µs would delay every wake. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	interval_ns = (uint64_t)(NS_PER_S / rate_hz);
	begin_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	deadline_ns = now_ns(CLOCK_MONOTONIC);
	end_ns = deadline_ns + (uint64_t)(seconds * NS_PER_S);
	while (deadline_ns < end_ns) {
		uint64_t woken_ns;

		sleep_until(deadline_ns);
		woken_ns = now_ns(CLOCK_MONOTONIC);
		nr_wakes++;
		/* Skip deadlines that have passed. */
		deadline_ns += interval_ns;
		if (woken_ns >= deadline_ns)
			deadline_ns +=
				(woken_ns - deadline_ns) / interval_ns * interval_ns + interval_ns;
	}
	return printf("%lu %llu\n", nr_wakes,
		      (unsigned long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns)) < 0;
}
