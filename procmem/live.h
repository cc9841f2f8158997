/* SPDX-License-Identifier: MIT */
/*
 * The memory of a running process, read with process_vm_readv: no ptrace, no
 * stop, no write. Each call reads its pieces one after the other while the
 * target runs on.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"

struct live_memory {
	struct remote_memory memory;
	pid_t pid;	   /* the process, or any of its threads that has not ended */
	uint64_t nr_reads; /* process_vm_readv calls so far */
};

/*
 * Prepare to read the process pid; nothing is opened, nothing can fail. Once the
 * main thread has ended while others run on, reads give -ESRCH: the kernel then
 * finds the memory under another thread's id only (process_live_thread()).
 */
void live_memory_init(struct live_memory *live, pid_t pid);
