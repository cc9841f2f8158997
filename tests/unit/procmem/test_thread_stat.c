/* SPDX-License-Identifier: MIT */
#include "procmem/sched/thread_stat.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

/* The text between state and CPU: fields 4 to 38 of proc_pid_stat(5). */
#define TO_CPU                                                                                     \
	" 1 2 3 0 -1 4194560 90 0 1 0 5 6 7 8 20 0 1 0 99 8192 77 18446744073709551615 1 2 3 4 5 " \
	"6 7 8 9 10 11 12 17"
#define AFTER_CPU " 0 0 0 0 0 1 2 3 4 5 6 7 0\n"

Test(thread_stat, parses_stat_files)
{
	static const struct {
		const char *text;
		int err;
		struct thread_stat now;
	} cases[] = {
		{"7 (python3) S" TO_CPU " 5" AFTER_CPU, 0, {'S', 5}},
		{"7 (python3) R" TO_CPU " 0" AFTER_CPU, 0, {'R', 0}},
		{"7 (python3) Z" TO_CPU " 4294967294" AFTER_CPU, 0, {'Z', 4294967294}},
		/* Names that resemble the fields after them. */
		{"7 () R 1) S" TO_CPU " 5" AFTER_CPU, 0, {'S', 5}},
		{"7 (a) R 1 2 3) D" TO_CPU " 6" AFTER_CPU, 0, {'D', 6}},
		{"7 (a (b) c) T" TO_CPU " 7" AFTER_CPU, 0, {'T', 7}},
		{"7 ()) R\n) t" TO_CPU " 8" AFTER_CPU, 0, {'t', 8}},
		{"7 (   ) S" TO_CPU " 9" AFTER_CPU, 0, {'S', 9}},
		{"7 () S" TO_CPU " 10" AFTER_CPU, 0, {'S', 10}},
		/* Truncated or malformed. */
		{"7 (python3) S" TO_CPU " 5", 0, {'S', 5}},
		{"7 (python3) S" TO_CPU " ", -EBADMSG, {0}},
		{"7 (python3) S" TO_CPU, -EBADMSG, {0}},
		{"7 (python3) S 1 2 3", -EBADMSG, {0}},
		{"7 (python3) S ", -EBADMSG, {0}},
		{"7 (python3) S", -EBADMSG, {0}},
		{"7 (python3) ", -EBADMSG, {0}},
		{"7 (python3)", -EBADMSG, {0}},
		{"7 (python3", -EBADMSG, {0}},
		{"", -EBADMSG, {0}},
		{"7 (python3) S" TO_CPU " x" AFTER_CPU, -EBADMSG, {0}},
		{"7 (python3) S" TO_CPU " -1" AFTER_CPU, -EBADMSG, {0}},
		{"7 (python3) S" TO_CPU " 4294967295" AFTER_CPU, -EBADMSG, {0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct thread_stat now = {0};

		cr_expect(eq(int, thread_stat_parse(cases[i].text, &now), cases[i].err), "'%s'",
			  cases[i].text);
		cr_expect(eq(chr, now.state, cases[i].now.state), "'%s'", cases[i].text);
		cr_expect(eq(u32, now.cpu, cases[i].now.cpu), "'%s'", cases[i].text);
	}
}

Test(thread_stat, parses_schedstat_files)
{
	static const struct {
		const char *text;
		int err;
		uint64_t nr_runs;
	} cases[] = {
		{"5 6 7\n", 0, 7},
		{"0 0 0\n", 0, 0},
		{"1 2 18446744073709551615\n", 0, UINT64_MAX},
		{"5", -EBADMSG, 99},
		{"", -EBADMSG, 99},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t nr_runs = 99;

		cr_expect(eq(int, thread_schedstat_parse(cases[i].text, &nr_runs), cases[i].err),
			  "'%s'", cases[i].text);
		cr_expect(eq(u64, nr_runs, cases[i].nr_runs), "'%s'", cases[i].text);
	}
}
