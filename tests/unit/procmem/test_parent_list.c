/* SPDX-License-Identifier: MIT */
#include "procmem/tree/parent_list.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Start a child whose name looks like the end of the name and the fields after it. */
static pid_t start_child(void)
{
	int named[2];
	char byte;

	cr_assert(zero(int, pipe(named)));
	const pid_t child = fork();

	if (!child) {
		(void)prctl(PR_SET_NAME, "a) R 1 1 (b");
		(void)!write(named[1], "", 1);
		for (;;)
			(void)pause();
	}
	cr_assert(eq(int, (int)read(named[0], &byte, 1), 1));
	return child;
}

Test(parent_list, reads_the_parent_whatever_the_name)
{
	const pid_t child = start_child();
	struct parent_of parent;

	cr_assert(zero(int, parent_read(child, &parent)));
	cr_expect(eq(int, parent.pid, child));
	cr_expect(eq(int, parent.parent_pid, getpid()));
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	cr_expect(eq(int, parent_read(child, &parent), -ESRCH));
}

Test(parent_list, lists_all_with_the_oldest_first)
{
	const pid_t child = start_child();
	struct parent_of *parents;
	size_t nr, nr_found = 0;

	cr_assert(zero(int, parent_list(&parents, &nr)));
	for (size_t i = 0; i < nr; i++) {
		cr_expect(i == 0 || parents[i - 1].start_ticks <= parents[i].start_ticks);
		nr_found += parents[i].pid == child && parents[i].parent_pid == getpid();
		nr_found += parents[i].pid == getpid() && parents[i].parent_pid == getppid();
	}
	cr_expect(eq(sz, nr_found, 2));
	free(parents);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}
