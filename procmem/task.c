/* SPDX-License-Identifier: MIT */
#include "procmem/task.h"

#include <errno.h>
#include <string.h>

/* Room for a stat file up to the state. */
enum { STAT_MAX_BYTES = 256 };

/* The letter behind the thread's own name, which may hold anything. */
static int read_letter(const struct process *process, pid_t tid, char *ret_letter)
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];
	char stat[STAT_MAX_BYTES];
	const char *name_end;
	ssize_t length;

	process_task_name(name, tid, "stat");
	length = process_read_file(process, name, stat, sizeof(stat));
	if (length < 0)
		return (int)length;
	name_end = strrchr(stat, ')');
	if (!name_end || name_end[1] != ' ' || !name_end[2])
		return -EBADMSG;
	*ret_letter = name_end[2];
	return 0;
}

/* The kernel says "0" for what it does not tell, and for a thread that does not wait. */
static void read_wchan(const struct process *process, pid_t tid, char wchan[TASK_WCHAN_MAX_BYTES])
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];

	process_task_name(name, tid, "wchan");
	if (process_read_file(process, name, wchan, TASK_WCHAN_MAX_BYTES) < 0 ||
	    strcmp(wchan, "0") == 0)
		wchan[0] = '\0';
	wchan[strcspn(wchan, "\n")] = '\0';
}

int task_read_state(const struct process *process, pid_t tid, struct task_state *ret_state)
{
	struct task_state state = {0};
	int err = read_letter(process, tid, &state.letter);

	if (err)
		return err;
	read_wchan(process, tid, state.wchan);
	*ret_state = state;
	return 0;
}
