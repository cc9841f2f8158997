/* SPDX-License-Identifier: MIT */
/* A jitdump file written by hand, in either byte order. */
#pragma once

#include <criterion/criterion.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/jit/jitdump.h"

enum { DUMP_PID = 77, DUMP_MAX_BYTES = 1 << 16 };

struct dump_bytes {
	bool is_big;
	size_t nr;
	uint8_t bytes[DUMP_MAX_BYTES];
};

static inline void dump_put(struct dump_bytes *dump, const void *bytes, size_t nr)
{
	cr_assert(dump->nr + nr <= DUMP_MAX_BYTES);
	memcpy(dump->bytes + dump->nr, bytes, nr);
	dump->nr += nr;
}

static inline void dump_u32(struct dump_bytes *dump, uint32_t value)
{
	value = dump->is_big ? htobe32(value) : htole32(value);
	dump_put(dump, &value, sizeof(value));
}

static inline void dump_u64(struct dump_bytes *dump, uint64_t value)
{
	value = dump->is_big ? htobe64(value) : htole64(value);
	dump_put(dump, &value, sizeof(value));
}

static inline void dump_zeros(struct dump_bytes *dump, size_t nr)
{
	static const uint8_t zeros[DUMP_MAX_BYTES];

	dump_put(dump, zeros, nr);
}

static inline void dump_header(struct dump_bytes *dump, uint32_t nr_bytes, uint64_t flags)
{
	dump_u32(dump, 0x4a695444);
	dump_u32(dump, 1);
	dump_u32(dump, nr_bytes);
	dump_u32(dump, 62);
	dump_u32(dump, 0);
	dump_u32(dump, DUMP_PID);
	dump_u64(dump, 1234567);
	dump_u64(dump, flags);
	dump_zeros(dump, nr_bytes - JITDUMP_HEADER_BYTES);
}

static inline void dump_prefix(struct dump_bytes *dump, uint32_t id, size_t nr_bytes,
			       uint64_t time_ns)
{
	dump_u32(dump, id);
	dump_u32(dump, (uint32_t)nr_bytes);
	dump_u64(dump, time_ns);
}

struct dump_load {
	const char *name;
	remote_addr addr;
	uint64_t nr_bytes; /* bytes of code, all 0xc3 */
	uint64_t index;
	uint64_t time_ns;
	uint32_t pid; /* 0: DUMP_PID */
};

static inline void dump_add_load(struct dump_bytes *dump, struct dump_load load)
{
	dump_prefix(dump, JITDUMP_LOAD, 56 + strlen(load.name) + 1 + load.nr_bytes, load.time_ns);
	dump_u32(dump, load.pid ? load.pid : DUMP_PID);
	dump_u32(dump, 78);
	dump_u64(dump, load.addr);
	dump_u64(dump, load.addr);
	dump_u64(dump, load.nr_bytes);
	dump_u64(dump, load.index);
	dump_put(dump, load.name, strlen(load.name) + 1);
	for (uint64_t i = 0; i < load.nr_bytes; i++)
		dump_put(dump, "\xc3", 1);
}

static inline void dump_add_move(struct dump_bytes *dump, remote_addr from, remote_addr to,
				 uint64_t nr_bytes, uint64_t index, uint64_t time_ns)
{
	dump_prefix(dump, JITDUMP_MOVE, 64, time_ns);
	dump_u32(dump, DUMP_PID);
	dump_u32(dump, 78);
	dump_u64(dump, to);
	dump_u64(dump, from);
	dump_u64(dump, to);
	dump_u64(dump, nr_bytes);
	dump_u64(dump, index);
}

/*
 * Add three lines: one of /a.py, one whose name means "the same file", one of /b.py. Their
 * addresses start at lines_addr.
 */
static inline void dump_add_lines(struct dump_bytes *dump, remote_addr code_addr,
				  remote_addr lines_addr, uint64_t time_ns)
{
	dump_prefix(dump, JITDUMP_DEBUG_INFO, 32 + 16 + 6 + 16 + 2 + 16 + 6, time_ns);
	dump_u64(dump, code_addr);
	dump_u64(dump, 3);
	dump_u64(dump, lines_addr);
	dump_u32(dump, 10);
	dump_u32(dump, 0);
	dump_put(dump, "/a.py", 6);
	dump_u64(dump, lines_addr + 4);
	dump_u32(dump, 12);
	dump_u32(dump, 1);
	dump_put(dump, "\xff", 2);
	dump_u64(dump, lines_addr + 8);
	dump_u32(dump, 5);
	dump_u32(dump, 0);
	dump_put(dump, "/b.py", 6);
}

enum { DUMP_EH_FRAME_BYTES = 52, DUMP_EH_HEADER_BYTES = 20 };

/*
 * Add the .eh_frame section at vaddr for a function of 12 bytes at addr: a CIE, an FDE with
 * pc-relative pointers, and the terminator.
 */
static inline void dump_eh_frame(struct dump_bytes *dump, remote_addr addr, uint64_t vaddr)
{
	static const uint8_t cie[] = {0x14, 0,	  0,  0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
				      1,    0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
	static const uint8_t program[] = {0, 0x41, 0x0e, 16, 0x86, 2, 0, 0};
	const size_t begin = dump->nr;

	dump_put(dump, cie, sizeof(cie));
	dump_u32(dump, 20);
	dump_u32(dump, sizeof(cie) + 4);
	dump_u32(dump, (uint32_t)(addr - (vaddr + sizeof(cie) + 8)));
	dump_u32(dump, 12);
	dump_put(dump, program, sizeof(program));
	dump_u32(dump, 0);
	cr_assert(dump->nr - begin == DUMP_EH_FRAME_BYTES);
}

/*
 * Add unwinding information for the next LOAD: .eh_frame first, as perf reads it, or
 * .eh_frame_hdr first, as the specification requires.
 */
static inline void dump_add_unwinding(struct dump_bytes *dump, remote_addr addr, bool header_first,
				      uint64_t time_ns)
{
	const uint64_t nr_bytes = DUMP_EH_FRAME_BYTES + DUMP_EH_HEADER_BYTES;
	const uint64_t vaddr = (addr + 12 + 7) & ~UINT64_C(7);

	dump_prefix(dump, JITDUMP_UNWINDING_INFO, 40 + nr_bytes, time_ns);
	dump_u64(dump, nr_bytes);
	dump_u64(dump, DUMP_EH_HEADER_BYTES);
	dump_u64(dump, 0);
	if (header_first)
		dump_zeros(dump, DUMP_EH_HEADER_BYTES);
	dump_eh_frame(dump, addr, header_first ? vaddr + DUMP_EH_HEADER_BYTES : vaddr);
	if (!header_first)
		dump_zeros(dump, DUMP_EH_HEADER_BYTES);
}

/* Write the first nr bytes to fd, and set the file's length to nr. */
static inline void dump_write(const struct dump_bytes *dump, int fd, size_t nr)
{
	cr_assert(pwrite(fd, dump->bytes, nr, 0) == (ssize_t)nr);
	cr_assert(ftruncate(fd, (off_t)nr) == 0);
}

/* A file with all bytes. */
static inline int dump_file(const struct dump_bytes *dump)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	cr_assert(fd >= 0);
	dump_write(dump, fd, dump->nr);
	return fd;
}
