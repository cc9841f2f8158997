/* SPDX-License-Identifier: MIT */
#include "procmem/process.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/procfile.h"

/* Enough for /proc/PID/stat up to field 22: numbers and a name of 64 bytes. */
#define STAT_MAX_BYTES 1024

/* Field 9 of stat, and its flag for a kernel thread: PF_KTHREAD, include/linux/sched.h. */
enum { STAT_FLAGS_FIELD = 9, STAT_KERNEL_THREAD = 0x00200000 };

/* Field 22 of stat: start time in clock ticks since boot. */
enum { STAT_START_FIELD = 22 };

/* Reading. */

/*
 * Open a file or folder of /proc/PID. Returns -ESRCH, too, if the file is missing because its
 * thread has ended.
 */
static int open_file(const struct process *process, const char *name)
{
	int fd = procfile_open(process->proc_fd, name);

	if (fd != -ENOENT)
		return fd;
	if (strncmp(name, "task/", strlen("task/")) == 0)
		return -ESRCH;
	return faccessat(process->proc_fd, "stat", F_OK, 0) ? -ESRCH : -ENOENT;
}

void process_thread_path(char ret_path[PROCESS_THREAD_PATH_MAX_BYTES], pid_t tid, const char *file)
{
	(void)snprintf(ret_path, PROCESS_THREAD_PATH_MAX_BYTES, "task/%d/%s", tid, file);
}

ssize_t process_read_file(const struct process *process, const char *name, char *buffer,
			  size_t max_bytes)
{
	assert(max_bytes > 0);

	cleanup_close int fd = open_file(process, name);

	return fd < 0 ? fd : procfile_read(fd, buffer, max_bytes);
}

int process_read_whole_file(const struct process *process, const char *name, size_t max_bytes,
			    char **ret_text, size_t *ret_size)
{
	cleanup_close int fd = open_file(process, name);

	return fd < 0 ? fd : procfile_read_whole(fd, max_bytes, ret_text, ret_size);
}

static int read_status(const struct process *process, const char *name, char **ret_status)
{
	size_t size;

	return process_read_whole_file(process, name, PROCFILE_STATUS_MAX_BYTES, ret_status, &size);
}

/*
 * Read a stat file into text. Returns the blank before field 3 (the state), or NULL. The target
 * chooses the name before it, which may contain ')' and digits. Source: proc_pid_stat(5).
 */
static const char *read_stat(const struct process *process, const char *name,
			     char text[STAT_MAX_BYTES])
{
	const char *name_end;

	if (process_read_file(process, name, text, STAT_MAX_BYTES) < 0)
		return NULL;
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end + 1 : NULL;
}

/* Whether a thread has not ended, according to its stat file. */
static bool thread_alive(const struct process *process, const char *name)
{
	char text[STAT_MAX_BYTES];
	const char *state = read_stat(process, name, text);

	return state && state[1] && !strchr("ZXx", state[1]);
}

/* Read a numeric field, from field 4 on, of the process's stat file. Returns false on failure. */
static bool stat_number(const struct process *process, int field_index,
			unsigned long long *ret_number)
{
	char text[STAT_MAX_BYTES];
	const char *field = read_stat(process, "stat", text);

	for (int i = 3; field && i < field_index; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		return false;
	*ret_number = strtoull(field, NULL, 10);
	return true;
}

bool process_is_kernel_thread(const struct process *process)
{
	unsigned long long flags;

	return stat_number(process, STAT_FLAGS_FIELD, &flags) && (flags & STAT_KERNEL_THREAD);
}

uint64_t process_age_ns(const struct process *process)
{
	unsigned long long start_ticks;
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	uint64_t now_ns, start_ns;

	if (ticks_per_s <= 0 || !stat_number(process, STAT_START_FIELD, &start_ticks))
		return UINT64_MAX;
	now_ns = clock_ns(CLOCK_BOOTTIME);
	if (__builtin_mul_overflow(start_ticks, NS_PER_S / (uint64_t)ticks_per_s, &start_ns))
		return UINT64_MAX;
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

/* Opening. */

/* Open /proc/PID, or explain why that fails. */
static int open_proc_dir(pid_t pid, struct message *reterr)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/proc/%d", pid);
	int fd = pid > 0 ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		return fd;
	int err = pid > 0 ? -errno : -ENOENT;

	if (err != -ENOENT && err != -EPERM && err != -EACCES) {
		message_set(reterr, "cannot open %s: %s", name, strerror(-err));
		return err;
	}
	/* Signal 0 is not sent; it only tests whether the process exists. */
	if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
		if (access("/proc/self", F_OK) != 0)
			message_set(reterr, "there is no /proc here: mount -t proc proc /proc");
		else
			message_set(reterr,
				    "process %d exists but %s is hidden from us: run as root (sudo "
				    "pysample …), or mount /proc without the option hidepid",
				    pid, name);
		return -EPERM;
	}
	message_set(reterr, "no process %d: pysample ls lists the Python processes", pid);
	return -ESRCH;
}

/* Read the user id from the status file, and refuse a thread id. */
static int check_status(const struct process *process, uid_t *ret_uid, struct message *reterr)
{
	cleanup_free char *status = NULL;
	uint64_t tgid;
	uint64_t uid;
	int err;

	err = read_status(process, "status", &status);
	if (err)
		return err;
	if (!procfile_number(status, "Tgid", 0, 10, &tgid) ||
	    !procfile_number(status, "Uid", 1, 10, &uid))
		return -EBADMSG;
	if (tgid != (uint64_t)process->pid) {
		message_set(reterr, "%d is a thread of process %llu: give that process id instead",
			    process->pid, (unsigned long long)tgid);
		return -ESRCH;
	}
	*ret_uid = (uid_t)uid;
	return 0;
}

/* Open the memory of the program that runs now. Returns -1 if it has none or may not be read. */
static int open_memory(const struct process *process)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	pid_t tid;
	int fd;

	if (process_live_thread(process, &tid))
		return -1;
	process_thread_path(name, tid, "mem");
	fd = procfile_open(process->proc_fd, name);
	return fd < 0 ? -1 : fd;
}

bool process_equals(const struct process *a, const struct process *b)
{
	struct stat one, two;

	/* While one is open, the folder of another process has another inode. */
	return fstat(a->proc_fd, &one) == 0 && fstat(b->proc_fd, &two) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

int process_reopen_memory(struct process *process)
{
	pid_t tid;

	cleanup_close_fn(&process->memory_fd);
	process->memory_fd = open_memory(process);
	return process->memory_fd < 0 ? process_live_thread(process, &tid) : 0;
}

int process_open(pid_t pid, struct process *ret_process, struct message *reterr)
{
	struct process process = PROCESS_CLOSED;
	struct message reason = {""};
	int err;

	process.pid = pid;
	process.proc_fd = open_proc_dir(pid, reterr);
	if (process.proc_fd < 0)
		return process.proc_fd;
	err = check_status(&process, &process.uid, &reason);
	if (!err) {
		process.memory_fd = open_memory(&process);
		*ret_process = process;
		return 0;
	}
	process_close(&process);
	if (reason.text[0] == '\0' && err == -ESRCH)
		message_set(&reason, "process %d has just ended", pid);
	else if (reason.text[0] == '\0')
		message_set(&reason, "cannot open process %d: %s", pid, strerror(-err));
	message_set(reterr, "%s", reason.text);
	return err;
}

void process_close(struct process *process)
{
	if (!process)
		return;
	cleanup_close_fn(&process->memory_fd);
	cleanup_close_fn(&process->proc_fd);
	*process = PROCESS_CLOSED;
}

/* Threads. */

static int open_threads(const struct process *process, DIR **ret_dir)
{
	cleanup_close int fd = open_file(process, "task");

	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);

	if (!dir) /* the only possible error for an open folder */
		return -ENOMEM;
	(void)take_fd(fd);
	*ret_dir = dir;
	return 0;
}

/* Returns the next thread id of the open folder /proc/PID/task, or 0 at the end. */
static pid_t next_thread(DIR *folder)
{
	for (struct dirent *entry; (entry = readdir(folder));) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			return tid;
	}
	return 0;
}

int process_live_thread(const struct process *process, pid_t *ret_tid)
{
	cleanup_closedir DIR *folder = NULL;

	if (thread_alive(process, "stat")) {
		*ret_tid = process->pid;
		return 0;
	}
	if (open_threads(process, &folder))
		return -ESRCH;
	for (pid_t tid; (tid = next_thread(folder));) {
		char name[PROCESS_THREAD_PATH_MAX_BYTES];

		process_thread_path(name, tid, "stat");
		if (thread_alive(process, name)) {
			*ret_tid = tid;
			return 0;
		}
	}
	return -ESRCH;
}

bool process_has_thread(const struct process *process, pid_t tid)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];

	process_thread_path(name, tid, "");
	return faccessat(process->proc_fd, name, F_OK, 0) == 0;
}

bool process_has_one_thread(const struct process *process)
{
	struct stat status;

	/* Every thread has a subfolder, and each subfolder's ".." adds a link. */
	return fstatat(process->proc_fd, "task", &status, 0) == 0 && status.st_nlink == 3;
}

bool process_memory_is_gone(const struct process *process)
{
	char byte;

	/*
	 * The descriptor stays bound to the memory of the program that ran at the open. Once
	 * nothing uses that memory, a read returns 0. Until then it returns the byte or, because
	 * nothing is mapped at 0, EIO (mem_rw() in fs/proc/base.c).
	 */
	return process->memory_fd >= 0 && pread(process->memory_fd, &byte, 1, 0) == 0;
}

/* Fill in one thread. Returns -ESRCH if it has ended in the meantime. */
static int read_thread(const struct process *process, pid_t tid, struct process_thread *ret_thread)
{
	cleanup_free char *status = NULL;
	struct process_thread thread = {.tid = tid};
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char comm[sizeof(thread.name) + 1]; /* the kernel appends a newline to the name */
	int err;

	process_thread_path(name, tid, "status");
	err = read_status(process, name, &status);
	if (err)
		return err;
	process_thread_path(name, tid, "comm");
	ssize_t length = process_read_file(process, name, comm, sizeof(comm));

	if (length < 0)
		return (int)length;
	if (length > 0 && comm[length - 1] == '\n')
		length--;
	if ((size_t)length >= sizeof(thread.name)) /* a kernel thread's long name */
		length = sizeof(thread.name) - 1;
	memcpy(thread.name, comm, (size_t)length);
	thread.ns_tid = procfile_innermost_id(status, tid);
	*ret_thread = thread;
	return 0;
}

int process_threads(const struct process *process, struct process_thread **ret_threads,
		    size_t *ret_nr_threads)
{
	cleanup_closedir DIR *folder = NULL;
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads = 0;
	size_t max_threads = 0;
	int err;

	err = open_threads(process, &folder);
	if (err)
		return err;
	for (pid_t tid; (tid = next_thread(folder));) {
		if (nr_threads == max_threads) {
			max_threads = max_threads ? max_threads * 2 : 16;
			struct process_thread *grown =
				reallocarray(threads, max_threads, sizeof(*threads));
			if (!grown)
				return -ENOMEM;
			threads = grown;
		}
		err = read_thread(process, tid, &threads[nr_threads]);
		if (err && err != -ESRCH)
			return err;
		nr_threads += !err;
	}
	if (nr_threads == 0)
		return -ESRCH;
	*ret_threads = take_ptr(threads);
	*ret_nr_threads = nr_threads;
	return 0;
}

/* Describing. */

static bool is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

void process_executable(const struct process *process, char ret_path[PATH_MAX])
{
	static const char mark[] = " (deleted)";
	const size_t mark_length = sizeof(mark) - 1;
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	pid_t tid;

	ret_path[0] = '\0';
	if (process_live_thread(process, &tid))
		return;
	process_thread_path(name, tid, "exe");
	ssize_t length = readlinkat(process->proc_fd, name, ret_path, PATH_MAX - 1);
	size_t end = length > 0 ? (size_t)length : 0;

	if (end > mark_length && memcmp(ret_path + end - mark_length, mark, mark_length) == 0)
		end -= mark_length;
	ret_path[end] = '\0';
}

void process_command_line(const struct process *process, char *buffer, size_t max_bytes)
{
	assert(max_bytes > 0);
	ssize_t length = process_read_file(process, "cmdline", buffer, max_bytes);

	while (length > 0 && buffer[length - 1] == '\0')
		length--;
	if (length <= 0) {
		char comm[STAT_MAX_BYTES];

		length = process_read_file(process, "comm", comm, sizeof(comm));
		if (length < 0)
			comm[0] = '\0';
		comm[strcspn(comm, "\n")] = '\0';
		length = snprintf(buffer, max_bytes, comm[0] ? "[%s]" : "%s", comm);
		if ((size_t)length >= max_bytes)
			length = (ssize_t)max_bytes - 1;
	}
	for (ssize_t i = 0; i < length; i++) {
		if (buffer[i] == '\0')
			buffer[i] = ' ';
		else if (is_control((unsigned char)buffer[i]))
			buffer[i] = '?';
	}
	buffer[length] = '\0';
}

bool process_has_our_root(const struct process *process)
{
	struct stat ours, theirs;

	return stat("/", &ours) == 0 && fstatat(process->proc_fd, "root", &theirs, 0) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

int process_other_namespace(const struct process *process, const char *kind, bool *ret_other)
{
	char name[32];
	char ours[64];
	char theirs[64];

	(void)snprintf(name, sizeof(name), "/proc/self/ns/%s", kind);
	ssize_t our_length = readlink(name, ours, sizeof(ours));
	ssize_t their_length =
		readlinkat(process->proc_fd, name + strlen("/proc/self/"), theirs, sizeof(theirs));

	if (our_length <= 0 || their_length <= 0)
		return -EPERM;
	*ret_other = our_length != their_length || memcmp(ours, theirs, (size_t)our_length) != 0;
	return 0;
}
