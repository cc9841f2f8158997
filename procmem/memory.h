/* SPDX-License-Identifier: MIT */
/*
 * The memory of a target: a running process, a core file, a recorded tape, a
 * fake made by a test. Everything above reads a target through this and
 * nothing else.
 *
 * Errors of the whole project are negative errno, each with one meaning:
 *
 *   -ESRCH    the target is gone
 *   -EPERM    not allowed
 *   -EFAULT   the address is not mapped (or not saved, in a core file)
 *   -EBADMSG  the bytes do not have the form they should have
 *   -ENOTSUP  valid, but not supported here
 *   -EAGAIN   it changed while it was read, or a piece of it is missing: try again later
 *   -ENOENT   not found
 *   -E2BIG    a limit named in the header was reached
 *   -ENOMEM   out of memory
 *
 * Set-up calls may also return another errno of the system call that failed.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An address in the target's memory; never a C pointer. */
typedef uint64_t remote_addr;

/* One piece of a vectored read. */
struct remote_range {
	remote_addr addr;  /* where it starts in the target */
	void *buffer;	   /* size bytes, the caller's */
	size_t size;	   /* how many are wanted */
	size_t done_bytes; /* how many were read, from the start; set by the read */
	/*
	 * So many behind it are of no use if nothing of it can be read: they may be left out
	 * then, with done_bytes 0. Each that cannot be read costs a live process a system call.
	 */
	size_t nr_with_it;
};

/* Whether an error is of the reading, and not of what was read at one place. */
static inline bool remote_error_is_fatal(int err)
{
	return err == -ENOMEM || err == -ESRCH || err == -EPERM;
}

struct remote_memory;

struct remote_memory_ops {
	/*
	 * Read every range, in order, in as few system calls as can be. A range
	 * that cannot be read has done_bytes < size and does not keep the others
	 * from being read. 0 (whatever the pieces came to), -ESRCH or -EPERM.
	 */
	int (*read_ranges)(struct remote_memory *memory, struct remote_range *ranges,
			   size_t nr_ranges);

	/*
	 * Whether what is read is still the memory of the program that was opened.
	 * 0; -ESRCH: the target is gone, or runs another program, be it the same one
	 * again. NULL for a memory that cannot change hands.
	 */
	int (*check)(struct remote_memory *memory);

	/*
	 * Write the aligned word at addr, in one piece. 0; -ESRCH, -EFAULT, or -EPERM: it is
	 * not allowed, or it cannot be told whose memory it is. NULL for a memory that may
	 * only be read.
	 */
	int (*write_u64)(struct remote_memory *memory, remote_addr addr, uint64_t value);
};

/* The first member of every kind of memory. */
struct remote_memory {
	const struct remote_memory_ops *ops;
};

/*
 * Read several ranges as remote_memory_ops.read_ranges says: in the order given
 * and, for a live process, as close to one instant as the kernel can.
 */
static inline int remote_memory_read_ranges(struct remote_memory *memory,
					    struct remote_range *ranges, size_t nr_ranges)
{
	return memory->ops->read_ranges(memory, ranges, nr_ranges);
}

/* As remote_memory_ops.check says: 0 or -ESRCH. A few microseconds for a live process. */
static inline int remote_memory_check(struct remote_memory *memory)
{
	return memory->ops->check ? memory->ops->check(memory) : 0;
}

/* Whether the memory may be written to at all, and can tell whose it is before that. */
static inline bool remote_memory_is_writable(const struct remote_memory *memory)
{
	return memory->ops->write_u64 && memory->ops->check;
}

/*
 * Write a word as remote_memory_ops.write_u64 says, after a check that the memory is still
 * the program's: -ESRCH if not. For a memory that remote_memory_is_writable().
 */
static inline int remote_memory_write_u64(struct remote_memory *memory, remote_addr addr,
					  uint64_t value)
{
	int err = memory->ops->check(memory);

	return err ? err : memory->ops->write_u64(memory, addr, value);
}

/*
 * Read size bytes at addr into buffer, all of them. 0; -EFAULT (buffer is then
 * undefined), -ESRCH, -EPERM.
 */
int remote_memory_read(struct remote_memory *memory, remote_addr addr, void *buffer, size_t size);

/* The same of several ranges at once. */
int remote_memory_read_all(struct remote_memory *memory, struct remote_range *ranges,
			   size_t nr_ranges);

/*
 * Have the REMOTE_FAULT_IN_BYTES from addr on in memory, as far as they are mapped: for whoever reads
 * only what is resident. Whether any of it is.
 */
enum { REMOTE_FAULT_IN_BYTES = 4096 };
bool remote_memory_fault_in(struct remote_memory *memory, remote_addr addr);

/* Read the eight bytes at addr as an unsigned number; errors of remote_memory_read(). */
int remote_memory_read_u64(struct remote_memory *memory, remote_addr addr, uint64_t *ret_value);

/*
 * One field of a struct that was read: a native-endian number at offset bytes
 * into buffer, however it is aligned. The caller has checked that it is inside.
 */
static inline uint64_t field_u64(const void *buffer, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)buffer + offset, sizeof(value));
	return value;
}

static inline uint32_t field_u32(const void *buffer, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)buffer + offset, sizeof(value));
	return value;
}

static inline int32_t field_i32(const void *buffer, size_t offset)
{
	return (int32_t)field_u32(buffer, offset);
}

static inline uint16_t field_u16(const void *buffer, size_t offset)
{
	uint16_t value;

	memcpy(&value, (const char *)buffer + offset, sizeof(value));
	return value;
}

static inline uint8_t field_u8(const void *buffer, size_t offset)
{
	return ((const uint8_t *)buffer)[offset];
}
