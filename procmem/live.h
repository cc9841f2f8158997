/* SPDX-License-Identifier: MIT */
/*
 * The memory of a running process, read with process_vm_readv: no ptrace, no stop, and no write
 * unless that was allowed. Each call reads its pieces one after the other while the target runs on.
 *
 * Where that system call is forbidden or missing (a seccomp filter; a kernel without
 * CONFIG_CROSS_MEMORY_ATTACH) the file /proc/PID/mem is read, which asks for the same
 * right: a call for each piece, so that it is slower and the pieces lie further apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"
#include "procmem/process.h"

struct live_memory {
	struct remote_memory memory;
	const struct process *process; /* borrowed */
	pid_t tid;		       /* the thread of it whose id the calls take */
	bool through_file;	       /* process->memory_fd is read; decided at the first read */
	uint64_t nr_reads;	       /* system calls that read so far */
	uint64_t nr_checks;	       /* system calls of remote_memory_check() so far */
	uint64_t nr_writes;	       /* system calls that wrote so far */
};

/*
 * Prepare to read a process, which is borrowed as long as the memory is used;
 * nothing is opened, nothing can fail. The kernel finds the memory under the id of
 * a thread that has not ended: once the main one has, reads go on under another's.
 *
 * An id can be given to another process between two calls. remote_memory_check()
 * tells: 0 means that the memory is that of the program which ran when process
 * was opened, and that the id is one of its threads'.
 */
void live_memory_init(struct live_memory *live, const struct process *process);

/*
 * Allow single words to be written, with process_vm_writev. They are refused (-EPERM) where
 * that is forbidden, and where an exec could not be told (no /proc/PID/mem). Each write is
 * preceded by remote_memory_check(); an exec in the microseconds between the two is not told.
 */
void live_memory_allow_writes(struct live_memory *live);

/* Whether they are not refused for one of these reasons, so far as is known. */
static inline bool live_memory_can_write(const struct live_memory *live)
{
	return !live->through_file && live->process->memory_fd >= 0;
}

/*
 * Read a byte of our own the way that a target's are read: 0, or the errno with which
 * process_vm_readv is refused to us whatever the target, negative. Our own memory may
 * always be read, so it is -ENOSYS or what a seccomp filter says.
 */
int live_memory_probe(void);
