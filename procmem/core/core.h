/* SPDX-License-Identifier: MIT */
/*
 * A core file of Linux: what there was of a process when it died, or when a debugger took a
 * snapshot of it. Nothing of the file is trusted, nothing is executed, and no other file is
 * opened. It is read piece by piece, never as a whole and never mapped: what a core of
 * gigabytes costs is what is looked at of it.
 *
 * Source: core(5), elf(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/core/core_memory.h"
#include "procmem/core/core_notes.h"
#include "procmem/core/core_segments.h"
#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/message.h"

struct core {
	/*
	 * All memory that there was, whether it was saved or not. path, file_offset, inode and
	 * deleted are those of NT_FILE; the inode is a number made up for the path, and the
	 * device is 0. "[vdso]" and "[stack]" (the main thread's) have their names; the heap,
	 * and what else the kernel has a name for, are anonymous.
	 */
	struct maps maps;
	struct core_notes notes; /* threads, death, psinfo, auxv; its files are in maps */

	uint64_t file_bytes;	/* how long the file is */
	uint64_t missing_bytes; /* what lacks at its end of what its headers name; 0: it is whole */

	/* Private. */
	struct core_segments segments;
	struct file_blocks file;
	struct core_memory memory;
};

/*
 * Open the core file fd, which is the core's from then on, also on failure; it is not
 * packed (procmem/core/unpack.h). Of a file that is cut off, or damaged, what is there is used.
 * 0; with a sentence that calls it "the file": -EBADMSG (no core file), -ENOTSUP (one of
 * another machine, or of a 32-bit process), -ENOMEM, or another errno. core_close() accepts
 * NULL.
 */
int core_open(int fd, struct core **ret_core, struct message *reterr);
void core_close(struct core *core);

/* The memory; addresses that were not saved are -EFAULT. Borrowed from the core. */
struct remote_memory *core_memory(struct core *core);

/*
 * The mapping of the program that ran: the one that holds its program headers. Borrowed from
 * core->maps; NULL if that is not told.
 */
const struct mapping *core_executable(const struct core *core);
