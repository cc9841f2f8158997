/* SPDX-License-Identifier: MIT */
/*
 * One running process, held by a descriptor of /proc/PID and one of its memory. These never show
 * another process or another program, so that a reused process id and an exec can be detected.
 * Opening a process does not test whether its memory may be read; reading it does
 * (procmem/live.h).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/message.h"

struct process {
	pid_t pid;
	int proc_fd; /* the folder /proc/PID; never shows another process's files */
	/* its mem file, bound to the program that ran at the open; -1: not allowed */
	int memory_fd;
	uid_t uid; /* effective user id at the open */
};

/* A process that is not open. */
#define PROCESS_CLOSED ((struct process){.proc_fd = -1, .memory_fd = -1})

/*
 * Open the process pid (in our own PID namespace). Returns 0; or, with a sentence, -ESRCH if there
 * is no such process or pid is a thread id, -EPERM if /proc hides it, -EBADMSG, or the errno of a
 * system call. process_close() accepts NULL and PROCESS_CLOSED, and sets *process to
 * PROCESS_CLOSED.
 */
int process_open(pid_t pid, struct process *ret_process, struct message *reterr);
void process_close(struct process *process);

/* Whether two open processes are the same one, even if one of them has ended. */
bool process_equals(const struct process *a, const struct process *b);

/*
 * Reopen process->memory_fd for the program that runs now, after an exec. Returns 0, or -ESRCH if
 * the process has ended. It never opens another process that has the same id.
 */
int process_reopen_memory(struct process *process);

/*
 * Returns the time since the process was started, in nanoseconds, with a resolution of 10 ms; its
 * last exec may be more recent. UINT64_MAX if unknown.
 */
uint64_t process_age_ns(const struct process *process);

/*
 * Whether the memory that the process had when it was opened is gone: the process has ended or has
 * called exec, even for the same program. Also false if that is unknown: memory_fd is -1, or
 * another process shares the memory (a child of vfork(2) before its own exec). One system call.
 */
bool process_memory_is_gone(const struct process *process);

/*
 * Whether the process is a kernel thread, which has no memory of its own, no mappings and no
 * program. Also false if that is unknown, e.g. because the process is gone.
 */
bool process_is_kernel_thread(const struct process *process);

/*
 * Whether tid is a thread of the process. A main thread that has ended keeps its id, and counts,
 * until the process is waited for. One system call.
 */
bool process_has_thread(const struct process *process, pid_t tid);

/* Whether the process has exactly one thread. Also false if that is unknown. One system call. */
bool process_has_one_thread(const struct process *process);

/* Enough for "task/", a thread id, and the name of a file. */
#define PROCESS_THREAD_PATH_MAX_BYTES 64

/*
 * Format the path, relative to /proc/PID, of a file of thread tid: "task/7/comm". An empty file
 * gives the folder itself, "task/7/".
 */
void process_thread_path(char ret_path[PROCESS_THREAD_PATH_MAX_BYTES], pid_t tid, const char *file);

/*
 * Read a small file of /proc/PID (name is relative to it, e.g. "task/7/comm") into buffer: at most
 * max_bytes - 1 bytes and a terminating NUL. Returns the length, -ESRCH if the process or thread
 * is gone, -ENOENT if this kernel has no such file, -EPERM, or another errno.
 */
ssize_t process_read_file(const struct process *process, const char *name, char *buffer,
			  size_t max_bytes);

/*
 * Read the command line, cut to max_bytes - 1 bytes, with NULs replaced by spaces and control
 * characters by '?'. Kernel threads and zombies have none; for them it is the name in brackets.
 * Always terminated; never fails (the empty string at worst).
 */
void process_command_line(const struct process *process, char *buffer, size_t max_bytes);

/*
 * Read the path of the process's executable as it appears in its mappings; "" if unknown. The exe
 * link of a main thread that has ended cannot be read, so another thread's is read then.
 */
void process_executable(const struct process *process, char ret_path[PATH_MAX]);

/*
 * Read a whole file of /proc/PID. *ret_text is allocated (free() it) and terminated; *ret_size is
 * its length without the NUL. Returns 0, -ESRCH, -EPERM, -ENOENT, -E2BIG if it is longer than
 * max_bytes, -ENOMEM, or another errno.
 */
int process_read_whole_file(const struct process *process, const char *name, size_t max_bytes,
			    char **ret_text, size_t *ret_size);

/*
 * Find a thread that has not ended: the main thread, or another one if that is a zombie. The
 * kernel shows the memory, mappings and links of a process only through such a thread. Returns 0,
 * or -ESRCH if there is none or the process is gone.
 */
int process_live_thread(const struct process *process, pid_t *ret_tid);

/* One thread of the process as the kernel sees it. */
struct process_thread {
	pid_t tid; /* in our PID namespace, as in /proc/PID/task */
	/* in the process's innermost namespace (NSpid), as the process itself sees it */
	pid_t ns_tid;
	char name[16]; /* the comm, terminated; not escaped */
};

/*
 * List the threads in the order of /proc/PID/task. *ret_threads is allocated (free() it). Returns
 * 0, -ESRCH, -ENOMEM, or the errno of a system call.
 */
int process_threads(const struct process *process, struct process_thread **ret_threads,
		    size_t *ret_nr_threads);

/*
 * Whether the process is in another namespace of this kind ("pid", "mnt", "user", "net"…) than we
 * are. Returns 0 and sets *ret_other, or -EPERM if that is unknown.
 */
int process_other_namespace(const struct process *process, const char *kind, bool *ret_other);

/* Whether the process is known to have our root folder. In a chroot, a path names another file. */
bool process_has_our_root(const struct process *process);
