/* SPDX-License-Identifier: MIT */
/* The test's own process, opened as a target. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <unistd.h>

#include "procmem/process.h"

/* Close it with process_close(). */
static inline struct process own_process_open(void)
{
	struct process process;

	cr_assert(zero(int, process_open(getpid(), &process, NULL)));
	return process;
}
