/* SPDX-License-Identifier: MIT */
#include "sampler/time_slices.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <unistd.h>

#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

/* A thread that reads a byte each time it runs uses far less than a millisecond. */
Test(time_slices, measures_threads_that_switch, .timeout = 60)
{
	enum { NR_RUNS = 2000, MS_NS = 1000000 };
	struct time_slices slices = {.nr_threads = 0};
	struct pipe_waiter waiter;
	struct process process;
	uint64_t slice_ns;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	process = own_process_open();
	pipe_waiter_begin(&waiter);
	if (!pipe_waiter_place(&waiter, &process).nr_runs)
		cr_skip("this kernel does not count runs");
	cr_expect(eq(u64, time_slices_end(&slices, &process, 0), TIME_SLICES_UNKNOWN));
	time_slices_begin(&slices, &process, waiter.tid);
	cr_expect(eq(u64, time_slices_end(&slices, &process, 0), TIME_SLICES_UNKNOWN), "no run");
	time_slices_begin(&slices, &process, waiter.tid);
	for (int i = 0; i < NR_RUNS; i++)
		pipe_waiter_continue(&waiter, &process);
	slice_ns = time_slices_end(&slices, &process, NR_RUNS);
	cr_expect(lt(u64, 0, slice_ns));
	cr_expect(lt(u64, slice_ns, MS_NS));
	cr_expect(zero(u32, slices.nr_threads));
	time_slices_begin(&slices, &process, waiter.tid);
	pipe_waiter_continue(&waiter, &process);
	cr_expect(eq(u64, time_slices_end(&slices, &process, NR_RUNS), TIME_SLICES_UNKNOWN));
	pipe_waiter_end(&waiter);
	process_close(&process);
}

Test(time_slices, leaves_out_what_cannot_be_measured, .timeout = 60)
{
	const pid_t no_thread = 1 << 22; /* the kernel's PID_MAX_LIMIT */
	struct time_slices slices = {.nr_threads = 0};
	struct process process = own_process_open();

	time_slices_begin(&slices, &process, no_thread);
	cr_expect(zero(u32, slices.nr_threads));
	if (run_count_read_once(&process, getpid())) {
		for (int i = 0; i < 2 * TIME_SLICES_MAX_THREADS; i++)
			time_slices_begin(&slices, &process, getpid());
		cr_expect(eq(u32, slices.nr_threads, TIME_SLICES_MAX_THREADS));
	}
	process_close(&process);
}
