/* SPDX-License-Identifier: MIT */
#include "procmem/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/live.h"
#include "procmem/procfile.h"

/* Only this much of a uid_map is compared; containers have one to three lines. */
#define ID_MAP_MAX_BYTES 1024

/*
 * What decides whether another process's memory may be read. Source: ptrace(2), "Ptrace access
 * mode checking".
 */
struct rights {
	uint64_t uids[3]; /* real, effective, saved */
	uint64_t gids[3];
	uint64_t cap_permitted; /* bit n: capability n */
	bool cap_sys_ptrace;	/* in the effective set */
	bool seccomp_filter;
};

static struct rights parse_rights(const char *status)
{
	struct rights rights = {.cap_permitted = 0};
	uint64_t cap_effective = 0;
	uint64_t seccomp = 0;

	for (unsigned int i = 0; i < 3; i++) {
		(void)procfile_number(status, "Uid", i, 10, &rights.uids[i]);
		(void)procfile_number(status, "Gid", i, 10, &rights.gids[i]);
	}
	(void)procfile_number(status, "CapPrm", 0, 16, &rights.cap_permitted);
	(void)procfile_number(status, "CapEff", 0, 16, &cap_effective);
	(void)procfile_number(status, "Seccomp", 0, 10, &seccomp);
	rights.cap_sys_ptrace = cap_effective >> CAP_SYS_PTRACE & 1;
	rights.seccomp_filter = seccomp == SECCOMP_MODE_FILTER;
	return rights;
}

/* Read a file of our own /proc; "" on failure. */
static void read_setting(const char *path, char *buffer, size_t max_bytes)
{
	cleanup_close int fd = procfile_open(AT_FDCWD, path);

	if (fd < 0 || procfile_read(fd, buffer, max_bytes) < 0)
		buffer[0] = '\0';
}

/* Read the rights of one process from its status file. */
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
	return (int)strtol(text, NULL, 10); /* also 0 without Yama */
}

/*
 * Whether the target is in another user namespace. Reading its ns/user link needs the very
 * permission that is missing. Reading its uid_map does not, and the uid_map differs in nearly
 * every container that has a user namespace.
 */
static bool is_in_other_user_namespace(const struct process *process)
{
	char ours[ID_MAP_MAX_BYTES];
	char theirs[ID_MAP_MAX_BYTES];
	bool other;

	if (process_other_namespace(process, "user", &other) == 0)
		return other;
	read_setting("/proc/self/uid_map", ours, sizeof(ours));
	return process_read_file(process, "uid_map", theirs, sizeof(theirs)) >= 0 &&
	       strcmp(ours, theirs) != 0;
}

/*
 * The kernel makes root the owner of an undumpable process's files, but not of its folder:
 * proc(5).
 */
static bool is_undumpable(const struct process *process)
{
	struct stat st;

	return fstatat(process->proc_fd, "stat", &st, 0) == 0 && st.st_uid != process->uid;
}

/* Whether all three ids are ours: the kernel compares each of them with our real id. */
static bool are_all_ours(const uint64_t ids[3], uint64_t our_id)
{
	return ids[0] == our_id && ids[1] == our_id && ids[2] == our_id;
}

/* The system call fails for every target, and the mem file could not be opened. */
static void explain_own_read(int err, const struct process *process, struct message *ret_message)
{
	message_set(ret_message,
		    "process_vm_readv is %s, and the fallback /proc/%d/mem "
		    "cannot be opened: start pysample's container with --cap-add=SYS_PTRACE "
		    "or --security-opt seccomp=unconfined",
		    err == -ENOSYS ? "not available (hidden by a sandbox, or the kernel lacks "
				     "CONFIG_CROSS_MEMORY_ATTACH)"
				   : "forbidden by a seccomp filter",
		    process->pid);
}

/* Explain to a user who already has CAP_SYS_PTRACE. */
static void explain_privileged(const struct process *process, const struct rights *ours,
			       struct message *ret_message)
{
	int err = live_memory_probe();

	if (is_in_other_user_namespace(process))
		message_set(ret_message,
			    "process %d is in another user namespace, where our CAP_SYS_PTRACE "
			    "has no effect: run pysample as root on the host, outside any "
			    "container",
			    process->pid);
	else if (err)
		explain_own_read(err, process, ret_message);
	else
		message_set(ret_message,
			    "process %d cannot be read although we have CAP_SYS_PTRACE: a security "
			    "module (SELinux, AppArmor, Landlock)%s forbids it; see the kernel's "
			    "audit log, or run pysample outside the container",
			    process->pid, ours->seccomp_filter ? " or a seccomp filter" : "");
}

/* Explain Yama's refusal. Returns false if Yama is not the reason. */
static bool explain_yama(int scope, const char *remedy, struct message *ret_message)
{
	if (scope != 1 && scope != 2)
		return false;
	message_set(ret_message,
		    "kernel.yama.ptrace_scope is %d, which %s: %s, or set sysctl "
		    "kernel.yama.ptrace_scope=0 (for a container: on the host)",
		    scope,
		    scope == 1 ? "lets us read only our own children" : "needs CAP_SYS_PTRACE",
		    remedy);
	return true;
}

/* Returns what distinguishes the target from us, or NULL if no difference is visible. */
static const char *target_difference(const struct process *process, const struct rights *ours,
				     const struct rights *theirs)
{
	if (!are_all_ours(theirs->gids, ours->gids[0]))
		return "runs under another group";
	if (is_undumpable(process))
		return "has made itself undumpable (a set-user-ID program, one with file "
		       "capabilities or without read permission, or prctl PR_SET_DUMPABLE)";
	if (is_in_other_user_namespace(process))
		return "is in another user namespace";
	if (theirs->cap_permitted & ~ours->cap_permitted)
		return "has more capabilities than we have (its program has file "
		       "capabilities, or they were granted to it)";
	return NULL;
}

/* Explain to a user who lacks CAP_SYS_PTRACE, in the order of the kernel's checks. */
static void explain_unprivileged(const struct process *process, const struct rights *ours,
				 const struct rights *theirs, struct message *ret_message)
{
	const char *remedy = ours->uids[1] == 0
				     ? "add the capability (Docker: --cap-add=SYS_PTRACE; "
				       "Kubernetes: securityContext.capabilities.add "
				       "[\"SYS_PTRACE\"])"
				     : "run as root (sudo pysample …; in a container also "
				       "--cap-add=SYS_PTRACE)";
	const char *difference = target_difference(process, ours, theirs);
	unsigned long long our_uid = ours->uids[0];
	pid_t pid = process->pid;
	int err;

	if (!are_all_ours(theirs->uids, our_uid))
		message_set(ret_message,
			    "process %d belongs to another user (uid %llu, ours is %llu) and we "
			    "lack CAP_SYS_PTRACE: %s",
			    pid, (unsigned long long)theirs->uids[1], our_uid, remedy);
	else if (difference)
		message_set(ret_message, "process %d %s and we lack CAP_SYS_PTRACE: %s", pid,
			    difference, remedy);
	else if (!explain_yama(yama_scope(), remedy, ret_message)) {
		err = live_memory_probe();
		if (err)
			explain_own_read(err, process, ret_message);
		else
			message_set(ret_message,
				    "process %d cannot be read and we lack CAP_SYS_PTRACE%s: %s",
				    pid,
				    ours->seccomp_filter ? " (and run under a seccomp filter)" : "",
				    remedy);
	}
}

void permission_explain(const struct process *process, struct message *ret_message)
{
	struct rights ours = {.cap_permitted = 0};
	struct rights theirs;

	(void)read_rights(AT_FDCWD, "/proc/self/status", &ours);
	if (yama_scope() == 3)
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
