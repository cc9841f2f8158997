/* SPDX-License-Identifier: MIT */
#include "procmem/sched/cpu_clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "procmem/descriptor_limit.h"
#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

Test(cpu_clock, parses_the_number_at_the_start_of_a_text)
{
	static const struct {
		char text[32];
		int err;
		uint64_t number;
	} cases[] = {
		{"0 0 0\n", 0, 0},
		{"123456789 5 6\n", 0, 123456789},
		{"18446744073709551615 1 2\n", 0, UINT64_MAX},
		{"18446744073709551616 1 2\n", -EBADMSG, 0},
		{"99999999999999999999 1\n", -EBADMSG, 0},
		{"", -EBADMSG, 0},
		{" 1 2\n", -EBADMSG, 0},
		{"-1 2 3\n", -EBADMSG, 0},
		{"12", -EBADMSG, 0}, /* truncated: more digits may follow */
		{"12\n", -EBADMSG, 0},
		{"12x 3\n", -EBADMSG, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t number = 0;

		cr_expect(eq(int, cpu_clock_parse(cases[i].text, strlen(cases[i].text), &number),
			     cases[i].err),
			  "'%s'", cases[i].text);
		cr_expect(eq(u64, number, cases[i].number), "'%s'", cases[i].text);
	}
}

/* Spin until another CPU clock of this thread has advanced by ns. */
static void use_time(uint64_t ns)
{
	struct timespec now;
	uint64_t first_ns = 0, now_ns = 0;

	while (now_ns - first_ns < ns) {
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
		if (!first_ns)
			first_ns = now_ns;
	}
}

Test(cpu_clock, measures_the_cpu_time_of_a_process)
{
	const uint64_t used_ns = 30000000;
	const pid_t no_pid = 1 << 22; /* the kernel's PID_MAX_LIMIT */
	uint64_t first_ns, last_ns;

	cr_assert(zero(int, cpu_clock_read_process(getpid(), &first_ns)));
	use_time(used_ns);
	cr_assert(zero(int, cpu_clock_read_process(getpid(), &last_ns)));
	cr_expect(ge(u64, last_ns - first_ns, used_ns));
	cr_expect(eq(int, cpu_clock_read_process(no_pid, &last_ns), -ESRCH));
}

Test(cpu_clock, measures_the_cpu_time_of_a_thread)
{
	const uint64_t used_ns = 30000000;
	struct process process = own_process_open();
	struct cpu_clock clock;
	uint64_t first_ns, last_ns;

	cr_assert(zero(int, cpu_clock_open(&process, getpid(), &clock)));
	cr_assert(zero(int, cpu_clock_read(&clock, &first_ns)));
	use_time(used_ns);
	cr_assert(zero(int, cpu_clock_read(&clock, &last_ns)));
	/* With timer-tick resolution it may be one tick short, at most 10 ms. */
	cr_expect(ge(u64, last_ns - first_ns, used_ns - 10000000));
	cpu_clock_close(&clock);
	cr_expect(eq(int, (int)clock.kind, CPU_CLOCK_NONE));
	cpu_clock_close(&clock);
	cpu_clock_close(NULL);
	process_close(&process);
}

/* Read a clock until it has the same value several times in a row. */
static uint64_t read_at_rest(struct cpu_clock *clock)
{
	uint64_t ns = 0, last_ns = UINT64_MAX;

	for (int nr_equal = 0; nr_equal < 3; nr_equal = ns == last_ns ? nr_equal + 1 : 0) {
		last_ns = ns;
		cr_assert(zero(int, cpu_clock_read(clock, &ns)));
	}
	return ns;
}

/* However short a run is, a reading after it is larger. */
Test(cpu_clock, misses_no_run_of_a_thread_that_waited, .timeout = 60)
{
	enum { NR_RUNS = 1000 };
	struct process process = own_process_open();
	struct pipe_waiter waiter;
	struct cpu_clock clock;
	uint64_t rest_ns, ns;

	pipe_waiter_begin(&waiter);
	pipe_waiter_place(&waiter, &process);
	cr_assert(zero(int, cpu_clock_open(&process, waiter.tid, &clock)));
	if (clock.kind != CPU_CLOCK_TASK)
		cr_skip("perf_event_open is not allowed");
	cpu_clock_map(&clock);
	for (int i = 0; i < NR_RUNS; i++) {
		pipe_waiter_place(&waiter, &process);
		rest_ns = read_at_rest(&clock);
		cr_assert(eq(int, cpu_clock_stands(&clock), clock.page != NULL));
		pipe_waiter_send(&waiter);
		cr_assert(not(cpu_clock_stands(&clock)));
		cr_assert(zero(int, cpu_clock_read(&clock, &ns)));
		cr_assert(lt(u64, rest_ns, ns));
	}
	cpu_clock_close(&clock);
	pipe_waiter_end(&waiter);
	process_close(&process);
}

/* A thread of another process: it exists, but not in this process. */
Test(cpu_clock, refuses_threads_of_other_processes)
{
	struct process process = own_process_open();
	struct cpu_clock clock = {0};

	cr_expect(eq(int, cpu_clock_open(&process, 1, &clock), -ESRCH));
	cr_expect(eq(int, cpu_clock_open(&process, getppid(), &clock), -ESRCH));
	cr_expect(eq(int, (int)clock.kind, CPU_CLOCK_NONE));
	process_close(&process);
}

Test(cpu_clock, reports_exhausted_descriptors)
{
	struct process process = own_process_open();
	struct rlimit limit;
	struct cpu_clock clock = {0};
	int fd = open("/dev/null", O_RDONLY);

	cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &limit)));
	cr_assert(ge(int, fd, 0));
	limit.rlim_cur = (rlim_t)fd + 1;
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
	cr_expect(eq(int, cpu_clock_open(&process, getpid(), &clock), -EMFILE));
	limit.rlim_cur = (rlim_t)fd + 10;
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
	cr_expect(eq(int, cpu_clock_open(&process, getpid(), &clock), -EMFILE),
		  "reserved descriptors are not used");
	descriptor_limit_raise();
	cr_expect(zero(int, cpu_clock_open(&process, getpid(), &clock)));
	cpu_clock_close(&clock);
	(void)close(fd);
	process_close(&process);
}
