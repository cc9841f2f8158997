/* SPDX-License-Identifier: MIT */
#include "symbols/elf/stdio_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_memory.h"

/* Offsets from the headers of the C library that this was built with, glibc. */
#define OFFSET(field) offsetof(struct _IO_FILE, field)

enum { LIST_ADDR = 0x1000, FILES_ADDR = 0x10000, FILE_STEP = 0x100 };
enum { BUFFER_ADDR = 0x40000, BUFFER_BYTES = 256 };

struct target {
	struct fake_memory fake;
};

static remote_addr file_addr(unsigned int i)
{
	return FILES_ADDR + i * FILE_STEP;
}

/* Set the field at this offset of a FILE. */
static void set(struct target *target, unsigned int i, size_t offset, uint64_t value)
{
	fake_memory_write_u64(&target->fake, file_addr(i) + offset, value);
}

/* Set the unwritten part of the buffer. */
static void set_unwritten(struct target *target, unsigned int i, uint64_t start, uint64_t end)
{
	set(target, i, OFFSET(_IO_write_base), BUFFER_ADDR + start);
	set(target, i, OFFSET(_IO_write_ptr), BUFFER_ADDR + end);
}

/* Make a list of nr FILEs with descriptors 10, 11, …, which share one empty buffer. */
static void open_target(struct target *target, unsigned int nr)
{
	fake_memory_init(&target->fake);
	fake_memory_map(&target->fake, LIST_ADDR, sizeof(uint64_t));
	fake_memory_map(&target->fake, BUFFER_ADDR, BUFFER_BYTES);
	fake_memory_write_u64(&target->fake, LIST_ADDR, nr ? FILES_ADDR : 0);
	for (unsigned int i = 0; i < nr; i++) {
		fake_memory_map(&target->fake, file_addr(i), OFFSET(_fileno) + sizeof(int));
		fake_memory_write_u32(&target->fake, file_addr(i), 0xfbad2c84);
		fake_memory_write_u32(&target->fake, file_addr(i) + OFFSET(_fileno), 10 + i);
		set(target, i, OFFSET(_IO_buf_base), BUFFER_ADDR);
		set(target, i, OFFSET(_IO_buf_end), BUFFER_ADDR + BUFFER_BYTES);
		set(target, i, OFFSET(_chain), i + 1 < nr ? file_addr(i + 1) : 0);
		set_unwritten(target, i, 0, 0);
	}
}

static void close_target(struct target *target)
{
	fake_memory_done(&target->fake);
}

/* Count the FILEs on the list. *ret_err is the error that ends the walk. */
static uint32_t count(struct target *target, int *ret_err)
{
	struct stdio_file file;
	uint32_t nr = 0;
	int err = stdio_file_first(&target->fake.memory, LIST_ADDR, &file);

	for (; !err; err = stdio_file_next(&target->fake.memory, &file, &file)) {
		cr_expect(eq(u32, file.index, nr));
		cr_expect(eq(i32, file.fd, 10 + (int)nr % 3));
		nr++;
	}
	*ret_err = err;
	return nr;
}

Test(stdio_file, finds_all_files_of_the_list)
{
	struct target target;
	int err;

	open_target(&target, 3);
	cr_expect(eq(u32, count(&target, &err), 3));
	cr_expect(eq(int, err, -ENOENT));
	close_target(&target);
	open_target(&target, 0);
	cr_expect(eq(u32, count(&target, &err), 0));
	cr_expect(eq(int, err, -ENOENT));
	close_target(&target);
}

Test(stdio_file, cyclic_list_is_bounded)
{
	struct target target;
	int err;

	open_target(&target, 3);
	set(&target, 2, OFFSET(_chain), file_addr(0));
	cr_expect(eq(u32, count(&target, &err), STDIO_FILE_MAX));
	cr_expect(eq(int, err, -ENOENT));
	close_target(&target);
}

Test(stdio_file, invalid_files_are_skipped)
{
	struct target target;
	int err;

	open_target(&target, 3);
	fake_memory_write_u32(&target.fake, file_addr(1), 0x1bad2c84);
	cr_expect(eq(u32, count(&target, &err), 1));
	cr_expect(eq(int, err, -EBADMSG));
	set(&target, 0, OFFSET(_chain), 0xdead0000);
	cr_expect(eq(u32, count(&target, &err), 1));
	cr_expect(eq(int, err, -EFAULT));
	fake_memory_write_u64(&target.fake, LIST_ADDR, UINT64_MAX - 8);
	cr_expect(eq(u32, count(&target, &err), 0));
	cr_expect(eq(int, err, -EFAULT));
	close_target(&target);
}

/* Pointers in the wrong order belong to a FILE that is just changing, or to none. */
Test(stdio_file, counts_unwritten_bytes)
{
	static const struct {
		uint64_t start, end; /* in the buffer */
		uint32_t nr_bytes;
	} cases[] = {
		{0, 0, 0},
		{0, 1, 1},
		{7, 100, 93},
		{0, BUFFER_BYTES, BUFFER_BYTES},
		{0, BUFFER_BYTES + 1, 0},
		{8, 7, 0},
		{-UINT64_C(1), 7, 0},
		{0, -(uint64_t)BUFFER_ADDR, 0},
		{-(uint64_t)BUFFER_ADDR, UINT64_MAX - BUFFER_ADDR, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;
		struct stdio_file file;

		open_target(&target, 1);
		set_unwritten(&target, 0, cases[i].start, cases[i].end);
		cr_assert(zero(int, stdio_file_first(&target.fake.memory, LIST_ADDR, &file)));
		cr_expect(eq(u32, file.unwritten_bytes, cases[i].nr_bytes), "case %zu", i);
		if (file.unwritten_bytes)
			cr_expect(eq(u64, file.unwritten_addr, BUFFER_ADDR + cases[i].start));
		close_target(&target);
	}
}

Test(stdio_file, huge_buffer_is_read_up_to_the_limit)
{
	struct target target;
	struct stdio_file file;

	open_target(&target, 1);
	set(&target, 0, OFFSET(_IO_buf_end), UINT64_MAX);
	set_unwritten(&target, 0, 0, UINT64_MAX - BUFFER_ADDR);
	cr_assert(zero(int, stdio_file_first(&target.fake.memory, LIST_ADDR, &file)));
	cr_expect(eq(u32, file.unwritten_bytes, STDIO_FILE_MAX_UNWRITTEN_BYTES));
	close_target(&target);
}

/* Changes by the process while the buffer is copied. */
static void flush(struct fake_memory *fake)
{
	set_unwritten(fake->context, 0, 0, 3);
}

static void write_more(struct fake_memory *fake)
{
	set_unwritten(fake->context, 0, 0, 20);
}

static void close_file(struct fake_memory *fake)
{
	fake_memory_write_u32(fake, file_addr(0), 0);
}

static void change_on_copy(struct fake_memory *fake, size_t range_index,
			   void (*change)(struct fake_memory *))
{
	(void)range_index;
	if (fake->nr_calls > 2) /* 1: list head, 2: FILE, 3: buffer */
		change(fake);
}

static void flush_on_copy(struct fake_memory *fake, size_t range_index)
{
	change_on_copy(fake, range_index, flush);
}

static void write_on_copy(struct fake_memory *fake, size_t range_index)
{
	change_on_copy(fake, range_index, write_more);
}

static void close_on_copy(struct fake_memory *fake, size_t range_index)
{
	change_on_copy(fake, range_index, close_file);
}

Test(stdio_file, torn_copy_is_reported)
{
	static const struct {
		void (*before_range)(struct fake_memory *fake, size_t range_index);
		int err;
	} cases[] = {
		{NULL, 0},
		{write_on_copy, 0}, /* after the copied part */
		{flush_on_copy, -EAGAIN},
		{close_on_copy, -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;
		struct stdio_file file;
		uint8_t bytes[16] = {0};

		open_target(&target, 1);
		fake_memory_write(&target.fake, BUFFER_ADDR, "what is written", 15);
		set_unwritten(&target, 0, 0, 15);
		target.fake.context = &target;
		target.fake.before_range = cases[i].before_range;
		cr_assert(zero(int, stdio_file_first(&target.fake.memory, LIST_ADDR, &file)));
		cr_expect(eq(int, stdio_file_read_unwritten(&target.fake.memory, &file, bytes),
			     cases[i].err),
			  "case %zu", i);
		if (!cases[i].err)
			cr_expect(eq(str, (char *)bytes, (char *)"what is written"));
		close_target(&target);
	}
}
