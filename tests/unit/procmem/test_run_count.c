/* SPDX-License-Identifier: MIT */
#include "procmem/sched/run_count.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

/* Open a thread of this process. A kernel that does not count runs is no failure. */
static struct run_count open_thread(const struct process *process, pid_t tid)
{
	struct run_count runs = RUN_COUNT_CLOSED;
	int err = run_count_open(process, tid, &runs);

	if (err == -ENOTSUP)
		cr_skip("the kernel does not count how often threads run");
	cr_assert(zero(int, err));
	return runs;
}

Test(run_count, reports_our_own_cpu)
{
	struct process process = own_process_open();
	struct run_count runs = open_thread(&process, getpid());
	struct thread_stat now;
	cpu_set_t usual, one;
	uint64_t nr_runs;

	cr_assert(zero(int, sched_getaffinity(0, sizeof(usual), &usual)));
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &usual))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		cr_assert(zero(int, sched_setaffinity(0, sizeof(one), &one)));
		cr_assert(zero(int, run_count_read_stat(&runs, &now)));
		cr_expect(eq(chr, now.state, 'R'));
		cr_expect(eq(u32, now.cpu, cpu));
	}
	cr_assert(zero(int, run_count_read(&runs, &nr_runs)));
	cr_expect(lt(u64, 0, nr_runs));
	run_count_close(&runs);
	cr_expect(eq(int, runs.schedstat_fd, -1));
	cr_expect(eq(int, runs.stat_fd, -1));
	run_count_close(&runs);
	process_close(&process);
}

/* The count is constant while the thread waits, and rises after it has run. */
Test(run_count, count_is_constant_while_a_thread_waits, .timeout = 60)
{
	struct process process = own_process_open();
	struct pipe_waiter waiter;
	struct run_count runs;
	struct thread_stat now;
	uint64_t first, again, later;

	pipe_waiter_begin(&waiter);
	(void)pipe_waiter_place(&waiter, &process);
	runs = open_thread(&process, waiter.tid);
	cr_assert(zero(int, run_count_read(&runs, &first)));
	cr_assert(zero(int, run_count_read_stat(&runs, &now)));
	cr_expect(eq(chr, now.state, 'S'));
	cr_expect(lt(u32, now.cpu, CPU_SETSIZE));
	cr_assert(zero(int, run_count_read(&runs, &again)));
	cr_expect(eq(u64, again, first));
	(void)pipe_waiter_continue(&waiter, &process);
	cr_assert(zero(int, run_count_read(&runs, &later)));
	cr_expect(lt(u64, first, later));
	pipe_waiter_end(&waiter);
	run_count_close(&runs);
	process_close(&process);
}

Test(run_count, ended_thread_is_reported, .timeout = 60)
{
	struct process process = own_process_open();
	struct run_count none = {-7, -7};
	struct pipe_waiter waiter;
	struct run_count runs;
	struct thread_stat now;
	uint64_t nr_runs;

	pipe_waiter_begin(&waiter);
	(void)pipe_waiter_place(&waiter, &process);
	runs = open_thread(&process, waiter.tid);
	pipe_waiter_end(&waiter);
	own_process_await_end(&process, waiter.tid);
	cr_expect(eq(int, run_count_read(&runs, &nr_runs), -ESRCH));
	cr_expect(eq(int, run_count_read_stat(&runs, &now), -ESRCH));
	run_count_close(&runs);
	cr_expect(eq(int, run_count_open(&process, waiter.tid, &none), -ESRCH));
	cr_expect(eq(int, run_count_open(&process, 1, &none), -ESRCH), "another process's thread");
	cr_expect(eq(int, none.stat_fd, -7));
	process_close(&process);
}

/* If there is room for only one of the two files, that one is closed again. */
Test(run_count, reports_exhausted_descriptors)
{
	struct process process = own_process_open();
	struct run_count runs = open_thread(&process, getpid());
	int fds[32];
	struct rlimit limit;

	run_count_close(&runs);
	/* Use all descriptors below the limit, then free them one by one. */
	for (size_t i = 0; i < 32; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	cr_assert(le(int, 0, fds[31]));
	cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &limit)));
	limit.rlim_cur = (rlim_t)fds[31] + 1;
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
	for (size_t i = 32; i > 0; i--) {
		struct run_count more = RUN_COUNT_CLOSED;

		/* A few descriptors are kept free for others. */
		if (i > 24) {
			cr_expect(eq(int, run_count_open(&process, getpid(), &more), -EMFILE));
			cr_expect(eq(int, more.stat_fd, -1));
		}
		(void)close(fds[i - 1]);
	}
	cr_expect(zero(int, run_count_open(&process, getpid(), &runs)),
		  "descriptors are available again");
	run_count_close(&runs);
	process_close(&process);
}
