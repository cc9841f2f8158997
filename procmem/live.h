/* SPDX-License-Identifier: MIT */
/*
 * The memory of a running process, read with process_vm_readv: no ptrace, no stop, and no writes
 * unless they were allowed. Each call reads its pieces one after the other while the target runs
 * on.
 *
 * If that system call is forbidden or missing (a seccomp filter, a kernel without
 * CONFIG_CROSS_MEMORY_ATTACH), reads use /proc/PID/mem, which needs the same permission. That
 * takes one call per piece, so it is slower and the pieces are further apart in time.
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
	pid_t tid;		       /* the thread id that the system calls use */
	bool through_file;	       /* reads use process->memory_fd; decided at the first read */
	uint64_t nr_reads;	       /* read system calls so far */
	uint64_t nr_checks;	       /* system calls of remote_memory_check() so far */
	uint64_t nr_writes;	       /* write system calls so far */
};

/*
 * Prepare to read a process, which is borrowed for the life of the memory. Nothing is opened and
 * nothing can fail. The kernel finds the memory by the id of a live thread; once the main thread
 * has ended, reads continue with another thread's id.
 *
 * The kernel can give an id to another process between two calls. remote_memory_check() returns 0
 * if the memory still belongs to the program that ran when process was opened and the id is one of
 * its threads'.
 */
void live_memory_init(struct live_memory *live, const struct process *process);

/*
 * Allow writes of single words, with process_vm_writev. A write fails with -EPERM where that call
 * is forbidden, and where an exec could not be detected (no /proc/PID/mem). remote_memory_check()
 * precedes each write; an exec in the microseconds between the two goes unnoticed.
 */
void live_memory_allow_writes(struct live_memory *live);

/* Whether writes are possible, as far as is known: neither reason above applies. */
static inline bool live_memory_can_write(const struct live_memory *live)
{
	return !live->through_file && live->process->memory_fd >= 0;
}

/*
 * Read a byte of our own memory the way a target's is read. Returns 0, or the negative errno with
 * which process_vm_readv fails for every target. Our own memory may always be read, so a failure
 * is -ENOSYS or the errno of a seccomp filter.
 */
int live_memory_probe(void);
