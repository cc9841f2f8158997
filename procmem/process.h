/* SPDX-License-Identifier: MIT */
/*
 * One running process, held by descriptors of /proc/PID and of its memory, which
 * never show another process or another program: that is how a process id that
 * was used again and an exec are told. Refuses nothing: whether its memory may be
 * read is found by reading it (procmem/live.h).
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
	int proc_fd;   /* the folder /proc/PID; never shows another process's files */
	int memory_fd; /* the file mem of it: of the program of that moment; -1: not allowed */
	uid_t uid;     /* effective user id when it was opened */
};

/* A process that is not open. */
#define PROCESS_CLOSED ((struct process){.proc_fd = -1, .memory_fd = -1})

/*
 * Open the process pid (as seen in our own PID namespace). 0; -ESRCH with a
 * sentence (no such process, or a thread id), or the errno of a system call.
 * process_close() accepts NULL and PROCESS_CLOSED, and leaves the latter.
 */
int process_open(pid_t pid, struct process *ret_process, struct message *reterr);
void process_close(struct process *process);

/*
 * Have process->memory_fd be that of the program that runs now, after an exec. 0;
 * -ESRCH: the process has ended, and never that another one has its id.
 */
int process_renew_memory(struct process *process);

/*
 * How long ago the process was started, in nanoseconds; its exec may be younger. The
 * kernel tells it by hundredths of a second. UINT64_MAX if it cannot be told.
 */
uint64_t process_age_ns(const struct process *process);

/*
 * Whether the memory that the process had when it was opened is gone: the process
 * has ended, or has called exec, for the same program or another one. False also
 * where it cannot be told: memory_fd is -1, or yet another process shares the
 * memory (a child of vfork(2) before its own exec). One system call.
 */
bool process_memory_gone(const struct process *process);

/*
 * Whether it is a thread of the kernel: it has no memory of its own, no mappings and
 * no program. False also where it cannot be told, as of a process that is gone.
 */
bool process_is_kernel_thread(const struct process *process);

/*
 * Whether tid is a thread of the process, one that has ended and keeps its id
 * included: the main one, until somebody waits for the process. One system call.
 */
bool process_has_thread(const struct process *process, pid_t tid);

/* Whether it has but one thread. False also where that cannot be told. One system call. */
bool process_has_one_thread(const struct process *process);

/* Room for "task/", a thread id, and the name of a file. */
#define PROCESS_TASK_NAME_MAX_BYTES 64

/*
 * The name, relative to /proc/PID, of a file of the thread tid: "task/7/comm". Of the
 * folder itself, "task/7/", if file is "".
 */
void process_task_name(char ret_name[PROCESS_TASK_NAME_MAX_BYTES], pid_t tid, const char *file);

/*
 * Read a small file of /proc/PID (name relative to it, e.g. "task/7/comm") into
 * buffer: at most max_bytes - 1 bytes and a terminating NUL. Returns the
 * length, or negative errno (-ESRCH when the process or thread is gone, -ENOENT when
 * this kernel has no such file, -EPERM).
 */
ssize_t process_read_file(const struct process *process, const char *name, char *buffer,
			  size_t max_bytes);

/*
 * The command line with its NULs as spaces and control characters as '?', cut
 * to max_bytes - 1; the name in brackets where there is none (kernel threads,
 * zombies). Always terminated; never fails (the empty string at worst).
 */
void process_command_line(const struct process *process, char *buffer, size_t max_bytes);

/*
 * The path of the program that the process runs, as its mappings have it; "" if that cannot
 * be told. The link of a main thread that has ended leads nowhere: another one's is read.
 */
void process_executable(const struct process *process, char ret_path[PATH_MAX]);

/*
 * Read a file of /proc/PID whole: at most max_bytes, else -E2BIG. *ret_text is
 * allocated (free() it) and terminated; *ret_size is its length without the NUL.
 * 0; -ESRCH, -EPERM, -ENOENT, -E2BIG, -ENOMEM, or another errno.
 */
int process_read_whole_file(const struct process *process, const char *name, size_t max_bytes,
			    char **ret_text, size_t *ret_size);

/*
 * A thread that has not ended: the main one, or another once that is a zombie.
 * The kernel shows the memory, the mappings and the links of a process through
 * such a thread only. 0 or -ESRCH (none, or the process is gone).
 */
int process_live_thread(const struct process *process, pid_t *ret_tid);

/* One thread of the process as the kernel knows it. */
struct process_thread {
	pid_t tid;     /* in our PID namespace, as in /proc/PID/task */
	pid_t ns_tid;  /* in the process's own innermost namespace (NSpid), what it sees itself */
	char name[16]; /* the comm, terminated; not escaped */
};

/*
 * List the threads, in the order of /proc/PID/task. *ret_threads is allocated
 * (free() it). 0; -ESRCH, -ENOMEM, or the errno of a system call.
 */
int process_threads(const struct process *process, struct process_thread **ret_threads,
		    size_t *ret_nr_threads);

/*
 * Whether the process lives in another namespace of that kind ("pid", "mnt",
 * "user", "net"…) than we do. 0 and *ret_other, or -EPERM: it cannot be told.
 */
int process_other_namespace(const struct process *process, const char *kind, bool *ret_other);

/* Whether the process is known to have our root folder: in a chroot a path means another file. */
bool process_has_our_root(const struct process *process);

/*
 * Why the memory of the process cannot be read, as one sentence with the remedy,
 * after a read or an open of it gave -EPERM: another user's or group's process, Yama's
 * ptrace_scope, a missing CAP_SYS_PTRACE, a user namespace, a process that made
 * itself undumpable or has more capabilities, a seccomp filter or a security module.
 * Reads settings only. Source: ptrace(2), "Ptrace access mode checking".
 */
void process_explain_eperm(const struct process *process, struct message *ret_message);
