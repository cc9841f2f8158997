/* SPDX-License-Identifier: MIT */
/* Why a process may not be read: process_explain_eperm(). */
#include "procmem/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/* Of a longer uid_map the beginning is compared; containers have a line or three. */
#define ID_MAP_MAX_BYTES 1024

/*
 * What decides about reading another process's memory. Source: ptrace(2), "Ptrace
 * access mode checking".
 */
struct rights {
	uint64_t uids[3];	/* real, effective, saved */
	uint64_t cap_permitted; /* bit n: capability n */
	bool cap_sys_ptrace;	/* in the effective set */
	bool seccomp_filter;
};

static struct rights parse_rights(const char *status)
{
	struct rights rights = {.cap_permitted = 0};
	uint64_t cap_effective = 0;
	uint64_t seccomp = 0;

	for (unsigned int i = 0; i < 3; i++)
		(void)procfile_number(status, "Uid", i, 10, &rights.uids[i]);
	(void)procfile_number(status, "CapPrm", 0, 16, &rights.cap_permitted);
	(void)procfile_number(status, "CapEff", 0, 16, &cap_effective);
	(void)procfile_number(status, "Seccomp", 0, 10, &seccomp);
	rights.cap_sys_ptrace = cap_effective >> CAP_SYS_PTRACE & 1;
	rights.seccomp_filter = seccomp == SECCOMP_MODE_FILTER;
	return rights;
}

/* A file of our own side of /proc; "" if it cannot be read. */
static void read_setting(const char *path, char *buffer, size_t max_bytes)
{
	cleanup_close int fd = procfile_open(AT_FDCWD, path);

	if (fd < 0 || procfile_read(fd, buffer, max_bytes) < 0)
		buffer[0] = '\0';
}

/* The rights of one process, from its status file. */
static int read_rights(int dir_fd, const char *name, struct rights *ret_rights)
{
	cleanup_close int fd = procfile_open(dir_fd, name);
	cleanup_free char *status = NULL;
	size_t size;
	int err;

	if (fd < 0)
		return fd;
	err = procfile_read_whole(fd, PROCFILE_STATUS_MAX_BYTES, &status, &size);
	if (err)
		return err;
	*ret_rights = parse_rights(status);
	return 0;
}

static int yama_scope(void)
{
	char text[16];

	read_setting("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	return (int)strtol(text, NULL, 10); /* 0, too, where there is no Yama */
}

/* The errno of reading our own memory the way a target's is read; 0 if that works. */
static int probe_own_read(void)
{
	char from = 0;
	char to;
	struct iovec local = {.iov_base = &to, .iov_len = 1};
	struct iovec remote = {.iov_base = &from, .iov_len = 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

/*
 * Whether the target lives in another user namespace. Its ns/user link needs the
 * very right that is missing; its uid_map does not, and differs in nearly every
 * container that has a user namespace.
 */
static bool other_user_namespace(const struct process *process)
{
	char ours[ID_MAP_MAX_BYTES];
	char theirs[ID_MAP_MAX_BYTES];
	bool other;

	if (process_other_namespace(process, "user", &other) == 0)
		return other;
	read_setting("/proc/self/uid_map", ours, sizeof(ours));
	return process_read_file(process, "uid_map", theirs, sizeof(theirs)) > 0 &&
	       strcmp(ours, theirs) != 0;
}

/* The kernel gives the files of an undumpable process (not its folder) to root. proc(5) */
static bool undumpable(const struct process *process)
{
	struct stat st;

	return fstatat(process->proc_fd, "stat", &st, 0) == 0 && st.st_uid != process->uid;
}

static void explain_own_read(int error, const struct rights *ours, struct message *ret_message)
{
	if (error == ENOSYS)
		message_set(ret_message,
			    "the system call process_vm_readv is missing here: the kernel needs "
			    "CONFIG_CROSS_MEMORY_ATTACH, and a sandbox must not hide the call "
			    "(Docker: --security-opt seccomp=unconfined)");
	else
		message_set(ret_message,
			    "%s forbids the system call process_vm_readv, even on ourselves: start "
			    "our container with --cap-add=SYS_PTRACE, or with --security-opt "
			    "seccomp=unconfined",
			    ours->seccomp_filter ? "a seccomp filter" : "a security module");
}

/* The sentence for someone who has CAP_SYS_PTRACE already. */
static void explain_privileged(const struct process *process, const struct rights *ours,
			       struct message *ret_message)
{
	if (other_user_namespace(process))
		message_set(ret_message,
			    "process %d lives in another user namespace, where our CAP_SYS_PTRACE "
			    "does not count: run pysample as root on the host, outside any "
			    "container",
			    process->pid);
	else
		message_set(
			ret_message,
			"process %d may not be read although we have CAP_SYS_PTRACE: a security "
			"module (SELinux, AppArmor, Landlock)%s forbids it; see the kernel's "
			"audit log, or run pysample outside the container",
			process->pid, ours->seccomp_filter ? " or a seccomp filter" : "");
}

/* The sentence for someone who lacks CAP_SYS_PTRACE, in the order of the kernel's checks. */
static void explain_unprivileged(const struct process *process, const struct rights *ours,
				 const struct rights *theirs, struct message *ret_message)
{
	const char *remedy = ours->uids[1] == 0
				     ? "add the capability (Docker: --cap-add=SYS_PTRACE)"
				     : "run as root (sudo pysample …; in a container also "
				       "--cap-add=SYS_PTRACE)";
	unsigned long long our_uid = ours->uids[0];
	int scope = yama_scope();
	pid_t pid = process->pid;

	if (theirs->uids[0] != our_uid || theirs->uids[1] != our_uid || theirs->uids[2] != our_uid)
		message_set(ret_message,
			    "process %d belongs to another user (uid %llu, ours is %llu) and we "
			    "lack CAP_SYS_PTRACE: %s",
			    pid, (unsigned long long)theirs->uids[1], our_uid, remedy);
	else if (undumpable(process))
		message_set(ret_message,
			    "process %d has made itself undumpable (a set-user-ID program, or "
			    "prctl PR_SET_DUMPABLE) and we lack CAP_SYS_PTRACE: %s",
			    pid, remedy);
	else if (other_user_namespace(process) || (theirs->cap_permitted & ~ours->cap_permitted))
		message_set(ret_message,
			    "process %d lives in another user namespace or has more capabilities "
			    "than we have, and we lack CAP_SYS_PTRACE: %s",
			    pid, remedy);
	else if (scope == 1)
		message_set(ret_message,
			    "kernel.yama.ptrace_scope is 1, which lets us read our own children "
			    "only: %s, or set sysctl "
			    "kernel.yama.ptrace_scope=0",
			    remedy);
	else if (scope == 2)
		message_set(ret_message,
			    "kernel.yama.ptrace_scope is 2, which needs CAP_SYS_PTRACE: %s, or set "
			    "sysctl kernel.yama.ptrace_scope=0",
			    remedy);
	else
		message_set(ret_message,
			    "process %d may not be read and we lack CAP_SYS_PTRACE%s: %s", pid,
			    ours->seccomp_filter ? " (and run under a seccomp filter)" : "",
			    remedy);
}

void process_explain_eperm(const struct process *process, struct message *ret_message)
{
	struct rights ours = {.cap_permitted = 0};
	struct rights theirs;
	int error;

	(void)read_rights(AT_FDCWD, "/proc/self/status", &ours);
	error = probe_own_read();
	if (error)
		explain_own_read(error, &ours, ret_message);
	else if (yama_scope() == 3)
		message_set(
			ret_message,
			"kernel.yama.ptrace_scope is 3, which forbids reading any process until "
			"the next boot: set kernel.yama.ptrace_scope=0 in /etc/sysctl.d and "
			"reboot");
	else if (ours.cap_sys_ptrace)
		explain_privileged(process, &ours, ret_message);
	else if (read_rights(process->proc_fd, "status", &theirs))
		message_set(ret_message, "process %d has ended", process->pid);
	else
		explain_unprivileged(process, &ours, &theirs, ret_message);
}
