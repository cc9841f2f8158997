/* SPDX-License-Identifier: MIT */
/*
 * The FILEs of a program that uses glibc: what it has written to a file by stdio and has not been
 * handed to the kernel yet is in a buffer in its memory.
 *
 * They are linked, the newest one first, and the head of the list is a symbol of libc. The program
 * opens, closes and writes meanwhile, so that anything may be read: what is taken for a FILE has
 * its magic number, and pointers into its buffer in their order.
 *
 * Source: glibc, libio/bits/types/struct_FILE.h (struct _IO_FILE, part of its ABI since 2.1),
 * libio/libio.h (_IO_MAGIC) and libio/fileops.c, of 64-bit machines.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

#define STDIO_FILE_LIST_SYMBOL "_IO_list_all"

/*
 * FILEs of a list that are looked at; one that goes on leads in a circle, or the program has more
 * of them than the 1024 descriptors that it may have unless it asks for more.
 */
#define STDIO_FILE_MAX 1024

/*
 * What a buffer has behind so many bytes is left for the time when it is in the file: buffers have
 * 4096 bytes, or what a program has chosen for them.
 */
#define STDIO_FILE_MAX_UNWRITTEN_BYTES (128u << 10)

struct stdio_file {
	remote_addr addr;
	remote_addr next_addr; /* 0: it is the last one */
	uint32_t index;	       /* on the list */
	int32_t fd;	       /* negative: it has none */
	/* What is not handed over yet; as many bytes as are looked at. */
	remote_addr unwritten_addr;
	uint32_t unwritten_bytes;
};

/*
 * Read the first FILE of the list whose head is at list_addr, or the one behind file. 0; -ENOENT
 * (there are no more); -EBADMSG (what is there is none); -EFAULT, -ESRCH, -EPERM.
 */
int stdio_file_first(struct remote_memory *memory, remote_addr list_addr,
		     struct stdio_file *ret_file);
int stdio_file_next(struct remote_memory *memory, const struct stdio_file *file,
		    struct stdio_file *ret_file);

/* Read a FILE again that was on the list. 0; -EBADMSG (it is none any more); -EFAULT, … */
int stdio_file_renew(struct remote_memory *memory, struct stdio_file *file);

/*
 * Read what is not handed over yet into buffer, which has room for unwritten_bytes. 0; -EAGAIN (it
 * has changed since file was read); or errors as above.
 */
int stdio_file_read_unwritten(struct remote_memory *memory, const struct stdio_file *file,
			      uint8_t *buffer);
