/* SPDX-License-Identifier: MIT */
/*
 * The stdio FILEs of a program that uses glibc: what the program has written but not flushed is
 * in a buffer in its memory.
 *
 * FILEs are linked, newest first; the head of the list is a symbol of libc. The program opens,
 * closes and writes meanwhile, so a read may return anything. A FILE is accepted if it has the
 * magic number; its unwritten bytes, if the pointers into its buffer are in order.
 *
 * Source: glibc, libio/bits/types/struct_FILE.h (struct _IO_FILE, part of its ABI since 2.1),
 * libio/libio.h (_IO_MAGIC) and libio/fileops.c, of 64-bit machines.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

#define STDIO_FILE_LIST_SYMBOL "_IO_list_all"

/*
 * Limit on the FILEs read of a list. A longer one is circular, or the program has raised its
 * limit of descriptors, 1024 by default.
 */
#define STDIO_FILE_MAX 1024

/*
 * Limit on the unwritten bytes; more are read once they are in the file. Buffers have 4096 bytes,
 * or what the program has chosen.
 */
#define STDIO_FILE_MAX_UNWRITTEN_BYTES (128u << 10)

struct stdio_file {
	remote_addr addr;
	remote_addr next_addr; /* 0: the last one */
	uint32_t index;	       /* position on the list */
	int32_t fd;	       /* negative: none */
	/* The unwritten bytes, at most STDIO_FILE_MAX_UNWRITTEN_BYTES. */
	remote_addr unwritten_addr;
	uint32_t unwritten_bytes;
};

/*
 * Read the first FILE of the list whose head is at list_addr, or the FILE after file. Returns 0;
 * -ENOENT if there are no more; -EBADMSG if there is no FILE at the address; -EFAULT, -ESRCH,
 * -EPERM.
 */
int stdio_file_first(struct remote_memory *memory, remote_addr list_addr,
		     struct stdio_file *ret_file);
int stdio_file_next(struct remote_memory *memory, const struct stdio_file *file,
		    struct stdio_file *ret_file);

/*
 * Read a FILE of the list again. Returns 0; -EBADMSG if it is no longer a FILE; -EFAULT, -ESRCH,
 * -EPERM.
 */
int stdio_file_reread(struct remote_memory *memory, struct stdio_file *file);

/*
 * Read the unwritten bytes into buffer, which has room for unwritten_bytes. Returns 0; -EAGAIN if
 * the FILE was flushed since file was read (bytes appended meanwhile do no harm); or errors as
 * above.
 */
int stdio_file_read_unwritten(struct remote_memory *memory, const struct stdio_file *file,
			      uint8_t *buffer);
