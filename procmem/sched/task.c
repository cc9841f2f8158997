/* SPDX-License-Identifier: MIT */
#include "procmem/sched/task.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Nine numbers of at most 18 characters, or "running". */
enum { SYSCALL_MAX_BYTES = 256 };

/* Enough for a stat file up to the state. */
enum { STAT_MAX_BYTES = 256 };

/* Three numbers of at most 20 digits. */
enum { SCHEDSTAT_MAX_BYTES = 80 };

/* Read the state letter, which follows the thread's name; the name may contain anything. */
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

int task_read_state(const struct process *process, pid_t tid, struct task_state *ret_state)
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];
	struct task_state state = {0};
	int err = read_letter(process, tid, &state.letter);

	if (err)
		return err;
	/* The kernel writes "0" if it does not report wchan or the thread does not wait. */
	process_task_name(name, tid, "wchan");
	if (process_read_file(process, name, state.wchan, sizeof(state.wchan)) < 0 ||
	    strcmp(state.wchan, "0") == 0)
		state.wchan[0] = '\0';
	state.wchan[strcspn(state.wchan, "\n")] = '\0';
	*ret_state = state;
	return 0;
}

/* Parse a hexadecimal number. Returns 0 or -EBADMSG. */
static int parse_word(const char *word, uint64_t *ret_number)
{
	char *end;

	if (strncmp(word, "0x", 2) != 0 || !isxdigit((unsigned char)word[2]))
		return -EBADMSG;
	errno = 0;
	*ret_number = strtoull(word + 2, &end, 16);
	return errno || (*end != ' ' && *end != '\n') ? -EBADMSG : 0;
}

int task_place_parse(const char *text, struct task_place *ret_place)
{
	struct task_place place = {.call_hash = 0xcbf29ce484222325};
	const char *last = strrchr(text, ' ');
	const char *before = last;
	int err;

	if (strcmp(text, "running\n") == 0)
		return -EAGAIN;
	while (before && before > text && before[-1] != ' ')
		before--;
	if (!last || before == text)
		return -EBADMSG;
	/* FNV-1a. */
	for (const char *c = text; c < before; c++)
		place.call_hash = (place.call_hash ^ (unsigned char)*c) * 0x100000001b3;
	err = parse_word(before, &place.sp_addr);
	if (!err)
		err = parse_word(last + 1, &place.pc_addr);
	if (err)
		return err;
	/* A main thread that has ended before others is still listed, but has no stack. */
	if (!place.sp_addr && !place.pc_addr)
		return -ESRCH;
	ret_place->sp_addr = place.sp_addr;
	ret_place->pc_addr = place.pc_addr;
	ret_place->call_hash = place.call_hash;
	return 0;
}

/*
 * The run count is the last number. The kernel raises it before the thread continues, so anything
 * that the thread writes comes after.
 */
uint64_t task_read_runs(const struct process *process, pid_t tid)
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];
	char text[SCHEDSTAT_MAX_BYTES];
	const char *last;

	process_task_name(name, tid, "schedstat");
	if (process_read_file(process, name, text, sizeof(text)) < 0)
		return 0;
	last = strrchr(text, ' ');
	return last ? strtoull(last, NULL, 10) : 0;
}

int task_read_place(const struct process *process, pid_t tid, uint64_t nr_runs,
		    struct task_place *ret_place)
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];
	char text[SYSCALL_MAX_BYTES];
	struct task_place place = {.nr_runs = nr_runs};
	ssize_t length;
	int err;

	process_task_name(name, tid, "syscall");
	length = process_read_file(process, name, text, sizeof(text));
	err = length < 0 ? (int)length : task_place_parse(text, &place);
	if (!err)
		*ret_place = place;
	return err;
}

int task_check_place(const struct process *process, pid_t tid, const struct task_place *place)
{
	struct task_place now;
	int err;

	if (place->nr_runs)
		return task_read_runs(process, tid) == place->nr_runs ? 0 : -EAGAIN;
	err = task_read_place(process, tid, 0, &now);
	return err || task_place_is_same(&now, place) ? err : -EAGAIN;
}
