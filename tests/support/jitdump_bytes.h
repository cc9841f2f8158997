/* SPDX-License-Identifier: MIT */
/* A jitdump file written by hand, in either byte order. */
#pragma once

#include <criterion/criterion.h>
#include <elf.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/jit/jitdump.h"

/* Of the format: tools/perf/Documentation/jitdump-specification.txt. */
enum {
	JITDUMP_MAGIC = 0x4a695444,
	JITDUMP_LOAD_BYTES = 56, /* before the name */
	JITDUMP_MOVE_BYTES = 64,
};

enum { JITDUMP_PID = 77, JITDUMP_TID = 78, JITDUMP_BYTES_MAX = 1 << 16 };

struct jitdump_bytes {
	bool is_big;
	size_t nr;
	uint8_t bytes[JITDUMP_BYTES_MAX];
};

static inline void jitdump_put(struct jitdump_bytes *dump, const void *bytes, size_t nr)
{
	cr_assert(dump->nr + nr <= JITDUMP_BYTES_MAX);
	memcpy(dump->bytes + dump->nr, bytes, nr);
	dump->nr += nr;
}

static inline void jitdump_put_u32(struct jitdump_bytes *dump, uint32_t value)
{
	value = dump->is_big ? htobe32(value) : htole32(value);
	jitdump_put(dump, &value, sizeof(value));
}

static inline void jitdump_put_u64(struct jitdump_bytes *dump, uint64_t value)
{
	value = dump->is_big ? htobe64(value) : htole64(value);
	jitdump_put(dump, &value, sizeof(value));
}

static inline void jitdump_put_zeros(struct jitdump_bytes *dump, size_t nr)
{
	static const uint8_t zeros[JITDUMP_BYTES_MAX];

	jitdump_put(dump, zeros, nr);
}

static inline void jitdump_put_header(struct jitdump_bytes *dump, uint32_t nr_bytes, uint64_t flags)
{
	jitdump_put_u32(dump, JITDUMP_MAGIC);
	jitdump_put_u32(dump, 1);
	jitdump_put_u32(dump, nr_bytes);
	jitdump_put_u32(dump, EM_X86_64);
	jitdump_put_u32(dump, 0);
	jitdump_put_u32(dump, JITDUMP_PID);
	jitdump_put_u64(dump, 1234567);
	jitdump_put_u64(dump, flags);
	jitdump_put_zeros(dump, nr_bytes - JITDUMP_HEADER_BYTES);
}

static inline void jitdump_put_prefix(struct jitdump_bytes *dump, uint32_t id, size_t nr_bytes,
				      uint64_t time_ns)
{
	jitdump_put_u32(dump, id);
	jitdump_put_u32(dump, (uint32_t)nr_bytes);
	jitdump_put_u64(dump, time_ns);
}

struct jitdump_load {
	const char *name;
	remote_addr addr;
	uint64_t nr_bytes; /* bytes of code, all 0xc3 */
	uint64_t index;
	uint64_t time_ns;
	uint32_t pid; /* 0: JITDUMP_PID */
};

static inline void jitdump_put_load(struct jitdump_bytes *dump, struct jitdump_load load)
{
	jitdump_put_prefix(dump, JITDUMP_LOAD,
			   JITDUMP_LOAD_BYTES + strlen(load.name) + 1 + load.nr_bytes,
			   load.time_ns);
	jitdump_put_u32(dump, load.pid ? load.pid : JITDUMP_PID);
	jitdump_put_u32(dump, JITDUMP_TID);
	jitdump_put_u64(dump, load.addr);
	jitdump_put_u64(dump, load.addr);
	jitdump_put_u64(dump, load.nr_bytes);
	jitdump_put_u64(dump, load.index);
	jitdump_put(dump, load.name, strlen(load.name) + 1);
	for (uint64_t i = 0; i < load.nr_bytes; i++)
		jitdump_put(dump, "\xc3", 1);
}

static inline void jitdump_put_move(struct jitdump_bytes *dump, remote_addr from, remote_addr to,
				    uint64_t nr_bytes, uint64_t index, uint64_t time_ns)
{
	jitdump_put_prefix(dump, JITDUMP_MOVE, JITDUMP_MOVE_BYTES, time_ns);
	jitdump_put_u32(dump, JITDUMP_PID);
	jitdump_put_u32(dump, JITDUMP_TID);
	jitdump_put_u64(dump, to);
	jitdump_put_u64(dump, from);
	jitdump_put_u64(dump, to);
	jitdump_put_u64(dump, nr_bytes);
	jitdump_put_u64(dump, index);
}

/*
 * Add three lines: one of /a.py, one whose name means "the same file", one of /b.py. Their
 * addresses start at lines_addr.
 */
static inline void jitdump_put_lines(struct jitdump_bytes *dump, remote_addr code_addr,
				     remote_addr lines_addr, uint64_t time_ns)
{
	jitdump_put_prefix(dump, JITDUMP_DEBUG_INFO, 32 + 16 + 6 + 16 + 2 + 16 + 6, time_ns);
	jitdump_put_u64(dump, code_addr);
	jitdump_put_u64(dump, 3);
	jitdump_put_u64(dump, lines_addr);
	jitdump_put_u32(dump, 10);
	jitdump_put_u32(dump, 0);
	jitdump_put(dump, "/a.py", 6);
	jitdump_put_u64(dump, lines_addr + 4);
	jitdump_put_u32(dump, 12);
	jitdump_put_u32(dump, 1);
	jitdump_put(dump, "\xff", 2);
	jitdump_put_u64(dump, lines_addr + 8);
	jitdump_put_u32(dump, 5);
	jitdump_put_u32(dump, 0);
	jitdump_put(dump, "/b.py", 6);
}

enum { JITDUMP_EH_FRAME_BYTES = 52, JITDUMP_EH_HEADER_BYTES = 20 };

/*
 * Add the .eh_frame section at vaddr for a function of 12 bytes at addr: a CIE, an FDE with
 * pc-relative pointers, and the terminator.
 */
static inline void jitdump_put_eh_frame(struct jitdump_bytes *dump, remote_addr addr,
					uint64_t vaddr)
{
	static const uint8_t cie[] = {0x14, 0,	  0,  0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
				      1,    0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
	static const uint8_t program[] = {0, 0x41, 0x0e, 16, 0x86, 2, 0, 0};
	const size_t begin = dump->nr;

	jitdump_put(dump, cie, sizeof(cie));
	jitdump_put_u32(dump, 20);
	jitdump_put_u32(dump, sizeof(cie) + 4);
	jitdump_put_u32(dump, (uint32_t)(addr - (vaddr + sizeof(cie) + 8)));
	jitdump_put_u32(dump, 12);
	jitdump_put(dump, program, sizeof(program));
	jitdump_put_u32(dump, 0);
	cr_assert(dump->nr - begin == JITDUMP_EH_FRAME_BYTES);
}

/*
 * Add unwinding information for the next LOAD: .eh_frame first, as perf reads it, or
 * .eh_frame_hdr first, as the specification requires.
 */
static inline void jitdump_put_unwinding(struct jitdump_bytes *dump, remote_addr addr,
					 bool header_first, uint64_t time_ns)
{
	const uint64_t nr_bytes = JITDUMP_EH_FRAME_BYTES + JITDUMP_EH_HEADER_BYTES;
	const uint64_t vaddr = (addr + 12 + 7) & ~UINT64_C(7);

	jitdump_put_prefix(dump, JITDUMP_UNWINDING_INFO, 40 + nr_bytes, time_ns);
	jitdump_put_u64(dump, nr_bytes);
	jitdump_put_u64(dump, JITDUMP_EH_HEADER_BYTES);
	jitdump_put_u64(dump, 0);
	if (header_first)
		jitdump_put_zeros(dump, JITDUMP_EH_HEADER_BYTES);
	jitdump_put_eh_frame(dump, addr, header_first ? vaddr + JITDUMP_EH_HEADER_BYTES : vaddr);
	if (!header_first)
		jitdump_put_zeros(dump, JITDUMP_EH_HEADER_BYTES);
}

/* Write the first nr bytes to fd, and set the file's length to nr. */
static inline void jitdump_bytes_write(const struct jitdump_bytes *dump, int fd, size_t nr)
{
	cr_assert(pwrite(fd, dump->bytes, nr, 0) == (ssize_t)nr);
	cr_assert(ftruncate(fd, (off_t)nr) == 0);
}

/* A file with all bytes. */
static inline int jitdump_bytes_file(const struct jitdump_bytes *dump)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	cr_assert(fd >= 0);
	jitdump_bytes_write(dump, fd, dump->nr);
	return fd;
}
