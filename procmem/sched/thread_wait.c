/* SPDX-License-Identifier: MIT */
#include "procmem/sched/thread_wait.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/descriptor_limit.h"
#include "procmem/hash.h"
#include "procmem/procfile.h"
#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_stat.h"

/* Nine numbers of at most 18 characters, or "running". */
enum { SYSCALL_MAX_BYTES = 256 };

int thread_wait_read(const struct process *process, pid_t tid, struct thread_wait *ret_wait)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[THREAD_STAT_MAX_BYTES];
	struct thread_stat stat;
	struct thread_wait wait = {0};
	ssize_t length;
	int err;

	process_thread_path(name, tid, "stat");
	length = process_read_file(process, name, text, sizeof(text));
	err = length < 0 ? (int)length : thread_stat_parse(text, &stat);
	if (err)
		return err;
	wait.state = stat.state;
	/* The kernel writes "0" if it does not report wchan or the thread does not wait. */
	process_thread_path(name, tid, "wchan");
	if (process_read_file(process, name, wait.wchan, sizeof(wait.wchan)) < 0 ||
	    strcmp(wait.wchan, "0") == 0)
		wait.wchan[0] = '\0';
	wait.wchan[strcspn(wait.wchan, "\n")] = '\0';
	*ret_wait = wait;
	return 0;
}

bool thread_wait_is_for_page(const struct thread_wait *wait)
{
	/* The names from Linux 4.15 to 6.18, or how they begin. */
	static const char *const names[] = {
		"folio_wait_bit",	"__folio_lock",	       "wait_on_page_bit", "__lock_page",
		"migration_entry_wait", "softleaf_entry_wait", "handle_userfault",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(wait->wchan, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

bool thread_wait_is_frozen(const struct thread_wait *wait)
{
	return strcmp(wait->wchan, "do_freezer_trap") == 0 ||
	       strcmp(wait->wchan, "__refrigerator") == 0;
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

int wait_place_parse(const char *text, struct wait_place *ret_place)
{
	struct wait_place place;
	const char *last = strrchr(text, ' ');
	const char *before = last;
	int err;

	if (strcmp(text, "running\n") == 0)
		return -EAGAIN;
	while (before && before > text && before[-1] != ' ')
		before--;
	if (!last || before == text)
		return -EBADMSG;
	place.call_hash = hash_add_bytes(HASH_BEGIN, text, (size_t)(before - text));
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

int wait_place_open(const struct process *process, pid_t tid)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	int fd;

	process_thread_path(name, tid, "syscall");
	fd = procfile_open(process->proc_fd, name);
	if (fd < 0 || !descriptor_limit_is_half(fd))
		return fd == -ENOENT && !process_has_thread(process, tid) ? -ESRCH : fd;
	(void)close(fd);
	return -EMFILE;
}

/* Parse what was read; a negative length is the error. */
static int place_from_text(const char *text, ssize_t length, uint64_t nr_runs,
			   struct wait_place *ret_place)
{
	struct wait_place place = {.nr_runs = nr_runs};
	int err = length < 0 ? (int)length : wait_place_parse(text, &place);

	if (!err)
		*ret_place = place;
	return err;
}

int wait_place_read_fd(int fd, uint64_t nr_runs, struct wait_place *ret_place)
{
	char text[SYSCALL_MAX_BYTES];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	return place_from_text(text, length < 0 ? -errno : length, nr_runs, ret_place);
}

int wait_place_read(const struct process *process, pid_t tid, uint64_t nr_runs,
		    struct wait_place *ret_place)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[SYSCALL_MAX_BYTES];

	process_thread_path(name, tid, "syscall");
	return place_from_text(text, process_read_file(process, name, text, sizeof(text)), nr_runs,
			       ret_place);
}

int wait_place_check(const struct process *process, pid_t tid, const struct wait_place *place)
{
	struct wait_place now;
	int err;

	if (place->nr_runs)
		return run_count_read_once(process, tid) == place->nr_runs ? 0 : -EAGAIN;
	err = wait_place_read(process, tid, 0, &now);
	return err || wait_place_is_same(&now, place) ? err : -EAGAIN;
}

int thread_call_parse(const char *text, struct thread_call *ret_call)
{
	struct thread_call call = {0};
	const char *word = text;
	char *end;
	int err = 0;

	if (strcmp(text, "running\n") == 0)
		return -EAGAIN;
	errno = 0;
	call.number = strtoll(text, &end, 10);
	if (end == text || errno || *end != ' ')
		return -EBADMSG;
	/* A thread that is in no call has only its stack pointer and instruction here. */
	for (size_t i = 0; call.number >= 0 && !err && i < 6; i++) {
		word = strchr(word, ' ');
		err = word ? parse_word(++word, &call.arguments[i]) : -EBADMSG;
	}
	if (!err)
		*ret_call = call;
	return err;
}

int thread_call_read(const struct process *process, pid_t tid, struct thread_call *ret_call)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[SYSCALL_MAX_BYTES];
	ssize_t length;

	process_thread_path(name, tid, "syscall");
	length = process_read_file(process, name, text, sizeof(text));
	return length < 0 ? (int)length : thread_call_parse(text, ret_call);
}
