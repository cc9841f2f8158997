/* SPDX-License-Identifier: MIT */
/* Whether the source files that runs name are those that were executed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/run/run.h"

/*
 * Whether the paths of all runs mean files of this machine. If so, *ret_until_ns is when the first
 * run ended (CLOCK_REALTIME; 0: unknown): a file that changed after that is not the one that ran.
 */
bool run_sources_are_here(const struct run *runs, uint32_t nr_runs, uint64_t *ret_until_ns);
