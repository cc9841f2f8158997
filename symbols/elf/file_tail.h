/* SPDX-License-Identifier: MIT */
/*
 * Copies what a process has written to a file through stdio but not yet flushed (stdio_file.h):
 * the bytes that will follow the file's end.
 *
 * A copy is accepted if the file has the same length before and after it and the FILE still holds
 * the bytes, so they were not flushed meanwhile. One race remains: after write() has returned and
 * before the FILE is updated, the bytes appear both in the file and after its end. Also, another
 * process that shares the descriptor since a fork may write first. So the bytes are a hint, for
 * readers that detect duplicates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "symbols/elf/stdio_file.h"

/* All zero: nothing is known. */
struct file_tail {
	struct stdio_file writer; /* addr 0: unknown */
	uint64_t offset;	  /* length of the file */
	uint8_t *bytes;		  /* owned */
	uint32_t nr_bytes;
};

void file_tail_done(struct file_tail *tail);

/*
 * Find the FILE through which the process writes to the file that our descriptor fd is open for.
 * memory is the process's. lists has the addresses of nr_lists heads of FILE lists. If nothing is
 * found, the writer is unknown.
 */
void file_tail_find(struct file_tail *tail, const struct process *process,
		    struct remote_memory *memory, const remote_addr *lists, uint32_t nr_lists,
		    int fd);

/*
 * Copy the unflushed bytes. *ret_is_new is false if neither they nor the file have changed since
 * the last call; finding that out takes two system calls. Bytes that cannot be read count as
 * missing. Returns 0 or -ENOMEM.
 */
int file_tail_read(struct file_tail *tail, struct remote_memory *memory, int fd, bool *ret_is_new);
