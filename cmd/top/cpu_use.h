/* SPDX-License-Identifier: MIT */
/* How much CPU time the processes of a live view use. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/live/live.h"

struct cpu_use_row {
	pid_t pid;
	uint64_t at_ns;	 /* when it was measured; 0: never */
	uint64_t cpu_ns; /* its CPU time then; 0: unknown */
};

/* All zero: nothing was measured. */
struct cpu_use {
	struct cpu_use_row *rows; /* owned; by index of the process */
	uint32_t nr, max;
	uint64_t at_ns; /* of the last update */
	double share;	/* CPU time by elapsed time; negative: unknown */
};

/*
 * Returns the CPU time of the processes that have recent samples, by elapsed time since the last
 * update that was CPU_USE_LEAST_NS ago; negative: unknown.
 */
double cpu_use_update(struct cpu_use *use, const struct live *live, uint64_t now_ns);
void cpu_use_done(struct cpu_use *use);

/* The clocks of processes may advance with the kernel's ticks only. */
#define CPU_USE_LEAST_NS 900000000u
