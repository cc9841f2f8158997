/* SPDX-License-Identifier: MIT */
/*
 * The memory of a target: a running process, a core file, a recorded tape, or a fake made by a
 * test. All code above this layer reads a target through this interface only.
 *
 * Errors in the whole project are negative errno values with one meaning each:
 *
 *   -ESRCH    the target is gone
 *   -EPERM    not allowed
 *   -EFAULT   the address is not mapped (or not saved, in a core file)
 *   -EBADMSG  the bytes are malformed
 *   -ENOTSUP  valid, but not supported here
 *   -EAGAIN   it changed while it was read, or part of it is missing: try again later
 *   -ENOENT   not found
 *   -E2BIG    a limit named in the header was reached
 *   -ENOMEM   out of memory
 *   -EMFILE, -ENFILE  no descriptor is left, or only the reserve of procmem/descriptor_limit.h
 *   -EBADF    stdout is closed, or open for reading only
 *   -EINTR    the caller's stop flag was set
 *   -EPROTO   written by a newer version of pysample
 *   -ESTALE   a file was replaced or changed meanwhile
 *   -ESPIPE   the file cannot be read back
 *   -EIO      a write was cut short, or a library reports no reason
 *
 * Set-up calls may also return another errno of a system call that failed.
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
	remote_addr addr;  /* start address in the target */
	void *buffer;	   /* size bytes, owned by the caller */
	size_t size;	   /* bytes to read */
	size_t done_bytes; /* bytes read, from the start; set by the read */
	/*
	 * If nothing of this range can be read, the next nr_dependent ranges are useless: the read
	 * may skip them and set their done_bytes to 0. Every unreadable range costs a live process
	 * a system call.
	 */
	size_t nr_dependent;
};

/* Whether an error concerns the whole read and not only one address. */
static inline bool remote_error_is_fatal(int err)
{
	return err == -ENOMEM || err == -ESRCH || err == -EPERM;
}

struct remote_memory;

struct remote_memory_ops {
	/*
	 * Read every range, in order, in as few system calls as possible. A range that cannot be
	 * read ends with done_bytes < size and does not affect the others. Returns 0 however much
	 * was read, -ESRCH or -EPERM.
	 */
	int (*read_ranges)(struct remote_memory *memory, struct remote_range *ranges,
			   size_t nr_ranges);

	/*
	 * Check that the memory still belongs to the program that was opened. Returns 0, or -ESRCH
	 * if the target is gone or has called exec, even for the same program. NULL for a memory
	 * whose owner cannot change.
	 */
	int (*check)(struct remote_memory *memory);

	/*
	 * Write the aligned word at addr atomically. Returns 0, -ESRCH, -EFAULT, or -EPERM if that
	 * is not allowed or the owner of the memory cannot be verified. NULL for a read-only
	 * memory.
	 */
	int (*write_u64)(struct remote_memory *memory, remote_addr addr, uint64_t value);
};

/* The first member of every kind of memory. */
struct remote_memory {
	const struct remote_memory_ops *ops;
};

/*
 * Read several ranges as remote_memory_ops.read_ranges does: in the given order and, for a live
 * process, as close to one instant as the kernel can.
 */
static inline int remote_memory_read_ranges(struct remote_memory *memory,
					    struct remote_range *ranges, size_t nr_ranges)
{
	return memory->ops->read_ranges(memory, ranges, nr_ranges);
}

/*
 * Check the owner as remote_memory_ops.check does: 0 or -ESRCH. A few microseconds for a live
 * process.
 */
static inline int remote_memory_check(struct remote_memory *memory)
{
	return memory->ops->check ? memory->ops->check(memory) : 0;
}

/* Whether the memory can be written to, with its owner checked before each write. */
static inline bool remote_memory_is_writable(const struct remote_memory *memory)
{
	return memory->ops->write_u64 && memory->ops->check;
}

/*
 * Write a word as remote_memory_ops.write_u64 does, after a check of the owner; -ESRCH if it has
 * changed. The memory must be remote_memory_is_writable().
 */
static inline int remote_memory_write_u64(struct remote_memory *memory, remote_addr addr,
					  uint64_t value)
{
	int err = memory->ops->check(memory);

	return err ? err : memory->ops->write_u64(memory, addr, value);
}

/*
 * Read exactly size bytes at addr into buffer. Returns 0, -EFAULT (the contents of buffer are then
 * undefined), -ESRCH or -EPERM.
 */
int remote_memory_read(struct remote_memory *memory, remote_addr addr, void *buffer, size_t size);

/* Like remote_memory_read(), for several ranges at once. */
int remote_memory_read_all(struct remote_memory *memory, struct remote_range *ranges,
			   size_t nr_ranges);

/* What remote_memory_fault_in() reads: one page. */
enum { REMOTE_FAULT_IN_BYTES = 4096 };

/*
 * Make the target's pages of the REMOTE_FAULT_IN_BYTES at addr resident, for readers that see
 * resident memory only. Returns whether any of these bytes could be read.
 */
bool remote_memory_fault_in(struct remote_memory *memory, remote_addr addr);

/* Read the eight bytes at addr as an unsigned number. Errors of remote_memory_read(). */
int remote_memory_read_u64(struct remote_memory *memory, remote_addr addr, uint64_t *ret_value);

/*
 * Read one field of a struct that was read before: a native-endian number, of any alignment, at
 * offset bytes into buffer. The caller has checked that it is inside.
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
