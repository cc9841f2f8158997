/* SPDX-License-Identifier: MIT */
/*
 * sleeploop HZ SECONDS: sleeps until absolute deadlines and does nothing else.
 * Its CPU time is what a timer of that rate costs on a machine, below which no
 * sampler can get. Writes how often it woke.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/ticker.h"

int main(int argc, char **argv)
{
	double rate_hz = argc == 3 ? strtod(argv[1], NULL) : 0;
	double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	uint64_t end_ns;
	unsigned long nr_wakes = 0;
	struct ticker ticker;

	if (!(rate_hz >= 1 && rate_hz <= 1e6 && seconds > 0 && seconds < 1e6)) {
		(void)fputs("usage: sleeploop HZ SECONDS\n", stderr);
		return 2;
	}
	ticker_start(&ticker, rate_hz);
	end_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);
	for (;;) {
		_Bool due;
		uint64_t now_ns = ticker_wait(&ticker, UINT64_MAX, &due);

		if (now_ns >= end_ns)
			break;
		nr_wakes += due;
	}
	return printf("%lu\n", nr_wakes) < 0;
}
