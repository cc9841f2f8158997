/* SPDX-License-Identifier: MIT */
#include "procmem/sched/thread_stat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a stat file from the state, field 3, to the CPU, field 39. */
enum { FIELDS_TO_CPU = 36 };

int thread_stat_parse(const char *text, struct thread_stat *ret_stat)
{
	/* The name may contain anything, blanks and parentheses included. */
	const char *field = strrchr(text, ')');
	char *end;
	struct thread_stat stat;
	unsigned long cpu;

	if (!field || field[1] != ' ' || !field[2])
		return -EBADMSG;
	field += 2;
	stat.state = *field;
	for (int i = 0; field && i < FIELDS_TO_CPU; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field)
		return -EBADMSG;
	cpu = strtoul(field, &end, 10);
	if (end == field || cpu >= UINT32_MAX)
		return -EBADMSG;
	stat.cpu = (uint32_t)cpu;
	*ret_stat = stat;
	return 0;
}

int thread_schedstat_parse(const char *text, uint64_t *ret_nr_runs)
{
	const char *last = strrchr(text, ' ');

	if (!last)
		return -EBADMSG;
	*ret_nr_runs = strtoull(last + 1, NULL, 10);
	return 0;
}
