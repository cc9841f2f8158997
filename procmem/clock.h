/* SPDX-License-Identifier: MIT */
/* Times of the kernel's clocks, in nanoseconds. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000u

/* Convert a time from the kernel, which is never negative. */
static inline uint64_t timespec_ns(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Convert nanoseconds to a time for the kernel. */
static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* Returns the time of a clock that every kernel has. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	(void)clock_gettime(clock, &now);
	return timespec_ns(now);
}

/* CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Sleep until a time of CLOCK_MONOTONIC. A signal ends the sleep early. */
static inline void clock_sleep_until(uint64_t time_ns)
{
	const struct timespec time = timespec_of(time_ns);

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}
