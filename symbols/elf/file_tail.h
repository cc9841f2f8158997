/* SPDX-License-Identifier: MIT */
/*
 * What a process has written to a file by stdio that is not in the file yet (stdio_file.h): the
 * bytes that come behind its end.
 *
 * The file is as long when they have been copied as it was before, and the FILE still has them: so
 * they were not handed over meanwhile, but for the moment between the kernel's answer and the change
 * of the FILE, in which they are behind themselves. And another process that shares the descriptor,
 * since a fork, may write before them. So they are a hint, to be read by who knows what is there
 * twice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "symbols/elf/stdio_file.h"

/* All zero nothing is known. */
struct file_tail {
	struct stdio_file writer; /* addr 0: none is known */
	uint64_t offset;	  /* how long the file was */
	uint8_t *bytes;		  /* owned */
	uint32_t nr_bytes;
};

void file_tail_done(struct file_tail *tail);

/*
 * Find the FILE by which the process, whose memory it is, writes to the file that fd, ours, is open
 * for; of lists there are nr_lists, by the addresses of their heads. None, if nothing leads there.
 */
void file_tail_find(struct file_tail *tail, const struct process *process,
		    struct remote_memory *memory, const remote_addr *lists, uint32_t nr_lists,
		    int fd);

/*
 * Copy what is not in the file yet. *ret_is_new is false if neither that nor the file has changed
 * since the last call, which takes two system calls. What cannot be read is not there. 0 or
 * -ENOMEM.
 */
int file_tail_read(struct file_tail *tail, struct remote_memory *memory, int fd, bool *ret_is_new);
