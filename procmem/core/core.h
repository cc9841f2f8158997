/* SPDX-License-Identifier: MIT */
/*
 * A core file of Linux: the memory and the state of a process when it died, or when a debugger took
 * a snapshot of it. The file is untrusted. Nothing in it is executed, and no other file is opened.
 * It is read piece by piece, never as a whole and never mapped, so the cost depends on what is read
 * and not on the size of the core.
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
	 * All memory of the process, saved or not. path, file_offset and deleted come from NT_FILE;
	 * inode is a number made up for each path, and the device is 0. "[vdso]" and the main
	 * thread's "[stack]" are named; the heap and all else that the kernel has a name for are
	 * anonymous.
	 */
	struct maps maps;
	struct core_notes notes; /* threads, death, psinfo, auxv; for the files use maps */

	uint64_t file_bytes;	/* size of the file */
	uint64_t missing_bytes; /* bytes that the headers name beyond its end; 0: complete */

	/* Private. */
	struct core_segments segments;
	struct file_blocks file;
	struct core_memory memory;
};

/*
 * Open the core file fd, which must not be compressed (procmem/core/unpack.h). The core takes over
 * fd, which is closed on failure. Of a file that is truncated or damaged, whatever can be read is
 * used.
 *
 * Returns 0; or, with a sentence that calls it "the file", -EBADMSG if it is not a core file,
 * -ENOTSUP if it is from another machine or a 32-bit process, -ENOMEM, or another errno.
 * core_close() accepts NULL.
 */
int core_open(int fd, struct core **ret_core, struct message *reterr);
void core_close(struct core *core);

/*
 * Returns the memory, borrowed from the core. Addresses that were not saved give -EFAULT, unless a
 * backing has them (procmem/core/core_memory.h).
 */
struct remote_memory *core_memory(struct core *core);

/*
 * Returns the mapping of the program that ran: the one that contains its program headers. Borrowed
 * from core->maps; NULL if unknown.
 */
const struct mapping *core_executable(const struct core *core);
