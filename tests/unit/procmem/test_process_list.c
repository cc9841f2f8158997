/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_list.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Fields 10 to 19. */
#define MIDDLE " 1 2 3 4 5 6 7 8 20 0 "

Test(process_list, parses_stat)
{
	static const struct {
		const char *stat;
		int err;
		struct listed_process process;
	} rows[] = {
		{"7 (cat) S 3 7 7 0 -1 4194304" MIDDLE "5 0 99", 0, {7, 3, 5}},
		{"7 (a) R 9) S 3 7 7 0 -1 4194304" MIDDLE "5 0 99", 0, {7, 3, 5}},
		{"7 (cat) S 0 7 7 0 -1 4194304" MIDDLE "1 0", 0, {7, 0, 1}},
		{"7 (kthreadd) S 2 0 0 0 -1 2129984" MIDDLE "1 0", -ENOENT, {0}},
		{"7 (cat) Z 3 7 7 0 -1 4194304" MIDDLE "1 0", -ENOENT, {0}},
		{"7 (cat) Z 3 7 7 0 -1 4194304" MIDDLE "2 0", 0, {7, 3, 2}},
		{"7 (cat) X 3 7 7 0 -1 4194304" MIDDLE "1 0", -ENOENT, {0}},
		{"7 (cat) S 3 7 7 0 -1", -EBADMSG, {0}},
		{"7 (cat) S -3 7 7 0 -1 4194304" MIDDLE "1 0", -EBADMSG, {0}},
		{"7 (cat) S 99999999999 7 7 0 -1 0" MIDDLE "1 0", -EBADMSG, {0}},
		{"7 (cat) S 3 7 7 0 -1 0" MIDDLE "99999999999 0", -EBADMSG, {0}},
		{"7 (cat) ", -EBADMSG, {0}},
		{"7 (cat)", -EBADMSG, {0}},
		{"7", -EBADMSG, {0}},
		{"", -EBADMSG, {0}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct listed_process process = {0};

		cr_expect(eq(int, process_list_parse(rows[i].stat, &process), rows[i].err), "%s",
			  rows[i].stat);
		cr_expect(eq(int, process.pid, rows[i].process.pid), "%s", rows[i].stat);
		cr_expect(eq(int, process.parent_pid, rows[i].process.parent_pid), "%s",
			  rows[i].stat);
		cr_expect(eq(u32, process.nr_threads, rows[i].process.nr_threads), "%s",
			  rows[i].stat);
	}
}

Test(process_list, has_us_and_our_parent)
{
	struct process_list list;
	const struct listed_process *us;

	cr_assert(zero(int, process_list_read(&list)));
	us = process_list_find(&list, getpid());
	cr_assert(ne(ptr, (void *)us, NULL));
	cr_expect(eq(int, us->parent_pid, getppid()));
	cr_expect(process_list_descends(&list, getpid(), getppid()));
	cr_expect(not(process_list_descends(&list, getppid(), getpid())));
	cr_expect(not(process_list_descends(&list, getpid(), getpid())));
	for (size_t i = 1; i < list.nr_processes; i++)
		cr_expect(lt(int, list.processes[i - 1].pid, list.processes[i].pid));
	process_list_done(&list);
	cr_expect(eq(ptr, (void *)process_list_find(&list, getpid()), NULL));
}

Test(process_list, is_listed_in_steps)
{
	struct process_listing listing;
	unsigned int nr_steps = 0;
	int err;

	cr_assert(zero(int, process_listing_open(&listing)));
	do {
		const size_t nr = listing.list.nr_processes;

		err = process_listing_step(&listing, 1);
		cr_assert(le(sz, listing.list.nr_processes, nr + 1));
		nr_steps++;
	} while (err == -EAGAIN);
	cr_expect(zero(int, err));
	cr_expect(lt(uint, (unsigned int)listing.list.nr_processes, nr_steps));
	cr_expect(ne(ptr, (void *)process_list_find(&listing.list, getpid()), NULL));
	process_listing_close(&listing);
	process_listing_close(&listing);
	cr_expect(zero(sz, listing.list.nr_processes));
}

Test(process_list, ends_in_a_circle_of_parents)
{
	struct listed_process processes[] = {{1, 3, 1}, {2, 1, 1}, {3, 2, 1}, {4, 3, 1}};
	const struct process_list list = {processes, 4};

	cr_expect(not(process_list_descends(&list, 1, 4)));
	cr_expect(process_list_descends(&list, 4, 1));
}

/* Check the ids of the descendants, as text. */
static void check_descendants(const struct process_list *list, pid_t ancestor, const char *pids)
{
	struct listed_process *found;
	char text[64] = "";
	size_t nr;

	cr_assert(zero(int, process_list_descendants(list, ancestor, &found, &nr)));
	for (size_t i = 0; i < nr; i++) {
		const size_t length = strlen(text);

		(void)snprintf(text + length, sizeof(text) - length, "%d ", found[i].pid);
	}
	cr_expect(eq(str, text, (char *)pids), "of %d", ancestor);
	free(found);
}

Test(process_list, lists_parents_before_children)
{
	struct listed_process processes[] = {{1, 0, 1}, {2, 5, 1}, {3, 2, 1}, {4, 1, 1},
					     {5, 1, 1}, {6, 9, 1}, {7, 5, 1}};
	struct listed_process circle[] = {{1, 3, 1}, {2, 1, 1}, {3, 2, 1}, {4, 3, 1}};
	const struct process_list list = {processes, 7};

	check_descendants(&list, 1, "4 5 2 7 3 ");
	check_descendants(&list, 5, "2 7 3 ");
	check_descendants(&list, 9, "6 ");
	check_descendants(&list, 4, "");
	check_descendants(&(struct process_list){circle, 4}, 1, "2 3 4 ");
	check_descendants(&(struct process_list){0}, 1, "");
}

Test(process_list, cpu_time_is_that_of_the_process)
{
	uint64_t before_ns, after_ns;
	struct timespec ours;
	const pid_t pid = fork();

	cr_assert(ge(int, pid, 0));
	if (pid == 0)
		for (;;)
			(void)pause();
	cr_assert(zero(int, process_cpu_time(getpid(), &before_ns)));
	cr_assert(zero(int, clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ours)));
	cr_assert(zero(int, process_cpu_time(getpid(), &after_ns)));
	const uint64_t ours_ns = (uint64_t)ours.tv_sec * 1000000000 + (uint64_t)ours.tv_nsec;

	cr_expect(le(u64, before_ns, ours_ns));
	cr_expect(le(u64, ours_ns, after_ns));
	cr_expect(zero(int, process_cpu_time(pid, &after_ns)));
	cr_expect(zero(int, kill(pid, SIGKILL)));
	cr_assert(eq(int, waitpid(pid, NULL, 0), pid));
	cr_expect(eq(int, process_cpu_time(pid, &after_ns), -ESRCH));
}
