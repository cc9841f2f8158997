/* SPDX-License-Identifier: MIT */
#include "symbols/elf/file_tail.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/live.h"
#include "tests/support/fake_memory.h"
#include "tests/support/own_process.h"

/* This process writing to a file through its C library, and the reader of its buffer. */
struct own_file {
	FILE *file;
	int fd; /* our own, same file */
	struct process process;
	struct live_memory live;
	remote_addr list_addr;
	struct file_tail tail;
};

static void begin(struct own_file *own)
{
	*own = (struct own_file){.fd = memfd_create("tail", MFD_CLOEXEC),
				 .process = PROCESS_CLOSED};
	cr_assert(ge(int, own->fd, 0));
	own->file = fdopen(dup(own->fd), "w+");
	cr_assert(ne(ptr, own->file, NULL));
	own->process = own_process_open();
	live_memory_init(&own->live, &own->process);
	own->list_addr = (remote_addr)(uintptr_t)dlsym(RTLD_DEFAULT, STDIO_FILE_LIST_SYMBOL);
	cr_assert(ne(u64, own->list_addr, 0));
}

static void end(struct own_file *own)
{
	file_tail_done(&own->tail);
	if (own->file)
		(void)fclose(own->file);
	(void)close(own->fd);
	process_close(&own->process);
}

static void find(struct own_file *own)
{
	file_tail_find(&own->tail, &own->process, &own->live.memory, &own->list_addr, 1, own->fd);
}

static void put(struct own_file *own, const char *text)
{
	cr_assert(ge(int, fputs(text, own->file), 0));
}

/* Read the tail. Expect whether something was new, the unwritten text and its offset. */
static void expect_tail(struct own_file *own, bool is_new, const char *text, uint64_t offset)
{
	bool was_new;

	cr_assert(zero(int, file_tail_read(&own->tail, &own->live.memory, own->fd, &was_new)));
	cr_expect(eq(int, was_new, is_new), "%s", text);
	cr_expect(eq(u32, own->tail.nr_bytes, strlen(text)), "%s", text);
	cr_expect(eq(u64, own->tail.offset, offset), "%s", text);
	if (own->tail.nr_bytes == strlen(text))
		cr_expect(zero(int, memcmp(own->tail.bytes ? own->tail.bytes : (uint8_t *)"", text,
					   strlen(text))),
			  "%s", text);
}

Test(file_tail, reads_unwritten_bytes_of_this_process)
{
	struct own_file own;

	begin(&own);
	expect_tail(&own, false, "", 0);
	find(&own);
	cr_assert(eq(i32, own.tail.writer.fd, fileno(own.file)));
	expect_tail(&own, false, "", 0);
	put(&own, "one ");
	expect_tail(&own, true, "one ", 0);
	expect_tail(&own, false, "one ", 0);
	put(&own, "two ");
	expect_tail(&own, true, "one two ", 0);
	(void)fflush(own.file);
	expect_tail(&own, true, "", 8);
	expect_tail(&own, false, "", 8);
	put(&own, "three ");
	expect_tail(&own, true, "three ", 8);
	/* As many unwritten bytes as before, but after a flush. */
	(void)fflush(own.file);
	put(&own, "four! ");
	expect_tail(&own, true, "four! ", 14);
	end(&own);
}

Test(file_tail, ignores_streams_of_other_files)
{
	FILE *others[2];
	struct own_file own;

	begin(&own);
	others[0] = fdopen(memfd_create("another", MFD_CLOEXEC), "w"); /* on the same device */
	others[1] = fopen("/dev/null", "we");
	(void)fputs("another", others[0]);
	find(&own);
	cr_expect(eq(i32, own.tail.writer.fd, fileno(own.file)));
	(void)fclose(own.file);
	own.file = NULL;
	find(&own);
	cr_expect(zero(u64, own.tail.writer.addr));
	expect_tail(&own, false, "", 0);
	(void)fclose(others[0]);
	(void)fclose(others[1]);
	end(&own);
}

/* After fclose() the FILE is freed, or reused with another descriptor. */
Test(file_tail, closed_writer_has_no_tail)
{
	struct own_file own;
	bool is_new;

	begin(&own);
	find(&own);
	put(&own, "one");
	expect_tail(&own, true, "one", 0);
	(void)fclose(own.file);
	own.file = NULL;
	cr_assert(zero(int, file_tail_read(&own.tail, &own.live.memory, own.fd, &is_new)));
	cr_expect(is_new);
	cr_expect(zero(u32, own.tail.nr_bytes));
	cr_expect(eq(u64, own.tail.offset, 3));
	end(&own);
}

Test(file_tail, tail_moves_with_direct_writes)
{
	struct own_file own;

	begin(&own);
	cr_assert(eq(i64, write(own.fd, "abc", 3), 3));
	expect_tail(&own, true, "", 3);
	expect_tail(&own, false, "", 3);
	/* As after a fork, when another process writes to the file, too. */
	find(&own);
	put(&own, "mine");
	expect_tail(&own, true, "mine", 3);
	cr_assert(eq(i64, write(own.fd, "theirs", 6), 6));
	expect_tail(&own, true, "mine", 9);
	end(&own);
}

enum { FILE_ADDR = 0x1000, LIST_ADDR = 0x2000, BUFFER_ADDR = 0x3000 };

/* A process that flushes one more byte each time its buffer is read. */
struct writer {
	int fd;
	unsigned int nr_left;
};

static void flush_one_byte(struct fake_memory *fake, size_t range_index)
{
	struct writer *writer = fake->context;

	(void)range_index;
	if (writer->nr_left && fake->nr_calls % 3 == 2) {
		writer->nr_left--;
		cr_assert(eq(i64, write(writer->fd, "+", 1), 1));
	}
}

/* A copy made while the file grew may contain bytes that are already in the file. */
Test(file_tail, torn_copy_is_not_used)
{
	static const struct {
		unsigned int nr_flushed;
		uint32_t nr_bytes;
	} cases[] = {{0, 4}, {1, 4}, {2, 4}, {3, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct writer writer = {memfd_create("tail", MFD_CLOEXEC), 0};
		struct file_tail tail = {.offset = 0};
		struct fake_memory fake;
		bool is_new;

		fake_memory_init(&fake);
		fake_memory_map_bytes(&fake, FILE_ADDR, stdout, sizeof(*stdout));
		fake_memory_map(&fake, LIST_ADDR, sizeof(uint64_t));
		fake_memory_write_u64(&fake, LIST_ADDR, FILE_ADDR);
		fake_memory_map(&fake, BUFFER_ADDR, 4);
		fake_memory_write_u64(&fake, FILE_ADDR + offsetof(FILE, _IO_buf_base), BUFFER_ADDR);
		fake_memory_write_u64(&fake, FILE_ADDR + offsetof(FILE, _IO_buf_end),
				      BUFFER_ADDR + 4);
		fake_memory_write_u64(&fake, FILE_ADDR + offsetof(FILE, _IO_write_base),
				      BUFFER_ADDR);
		fake_memory_write_u64(&fake, FILE_ADDR + offsetof(FILE, _IO_write_ptr),
				      BUFFER_ADDR + 4);
		cr_assert(zero(int, stdio_file_first(&fake.memory, LIST_ADDR, &tail.writer)));
		fake.nr_calls = 0;
		fake.context = &writer;
		fake.before_range = flush_one_byte;
		writer.nr_left = cases[i].nr_flushed;
		cr_assert(zero(int, file_tail_read(&tail, &fake.memory, writer.fd, &is_new)));
		cr_expect(is_new);
		cr_expect(eq(u32, tail.nr_bytes, cases[i].nr_bytes), "case %zu", i);
		if (tail.nr_bytes)
			cr_expect(eq(u64, tail.offset, cases[i].nr_flushed));
		fake.before_range = NULL;
		cr_assert(zero(int, file_tail_read(&tail, &fake.memory, writer.fd, &is_new)));
		cr_expect(eq(int, is_new, cases[i].nr_bytes == 0), "the next read finds it");
		cr_expect(eq(u32, tail.nr_bytes, 4));
		file_tail_done(&tail);
		fake_memory_done(&fake);
		(void)close(writer.fd);
	}
}
