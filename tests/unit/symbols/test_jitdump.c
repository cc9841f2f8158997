/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jitdump.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/jitdump_body.h"
#include "tests/support/expected_code.h"
#include "tests/support/jitdump_bytes.h"

/* A file, its reader, and the codes read. */
struct reader {
	int fd; /* owned by dump */
	struct jitdump *dump;
	struct jit_map *map;
};

static struct reader open_bytes(const struct jitdump_bytes *bytes)
{
	struct reader reader = {.fd = jitdump_bytes_file(bytes), .map = jit_map_create()};

	cr_assert(zero(int, jitdump_open(reader.fd, 3, &reader.dump)));
	return reader;
}

static struct reader read_bytes(const struct jitdump_bytes *bytes)
{
	struct reader reader = open_bytes(bytes);

	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, true)));
	return reader;
}

static void close_reader(struct reader *reader)
{
	jitdump_close(reader->dump);
	jit_map_destroy(reader->map);
}

static uint32_t nr_codes(const struct reader *reader)
{
	uint32_t nr;

	(void)jit_map_codes(reader->map, &nr);
	return nr;
}

static uint64_t nr_faults(const struct reader *reader, enum jitdump_fault fault)
{
	return jitdump_stats(reader->dump)->nr_faults[fault];
}

static void expect_no_faults(const struct reader *reader)
{
	for (int i = 0; i < NR_JITDUMP_FAULTS; i++)
		cr_expect(zero(u64, nr_faults(reader, (enum jitdump_fault)i)), "fault %d", i);
}

static void add_three_loads(struct jitdump_bytes *bytes)
{
	jitdump_put_load(bytes, (struct jitdump_load){"one", 0x1000, 16, 1, 10, 0});
	jitdump_put_load(bytes,
			 (struct jitdump_load){"two, with blanks: <x>", 0x2000, 5, 2, 20, 0});
	jitdump_put_load(bytes, (struct jitdump_load){"three", 0x1008, 16, 3, 30, 0});
}

static void expect_three_loads(const struct reader *reader)
{
	cr_expect(eq(u32, nr_codes(reader), 3));
	expect_code(reader->map, 0x1000, 9, "-");
	expect_code(reader->map, 0x100f, 10, "one");
	expect_code(reader->map, 0x100f, 30, "three");
	expect_code(reader->map, 0x1000, 30, "-");
	expect_code(reader->map, 0x2004, 20, "two, with blanks: <x>");
	expect_code(reader->map, 0x2005, 20, "-");
}

Test(jitdump, reads_both_byte_orders_and_any_header_length)
{
	static const uint32_t lengths[] = {40, 41, 48, 4096};

	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct jitdump_bytes bytes = {.is_big = i % 2};
		struct reader reader;

		jitdump_put_header(&bytes, lengths[i / 2], 0);
		add_three_loads(&bytes);
		reader = read_bytes(&bytes);
		cr_expect(eq(u32, jitdump_header(reader.dump)->pid, JITDUMP_PID));
		cr_expect(eq(u32, jitdump_header(reader.dump)->elf_machine, EM_X86_64));
		cr_expect(not(jitdump_header(reader.dump)->has_ticks));
		expect_three_loads(&reader);
		expect_no_faults(&reader);
		close_reader(&reader);
	}
}

Test(jitdump, invalid_headers_are_refused)
{
	static const struct {
		const char *what;
		size_t offset;
		uint32_t value;
		int err;
	} cases[] = {
		{"magic", 0, 0x12345678, -EBADMSG}, {"version", 4, 2, -ENOTSUP},
		{"too short", 8, 39, -EBADMSG},	    {"too long", 8, 4097, -EBADMSG},
		{"flags", 32, 2, -ENOTSUP},	    {"more flags", 36, 1, -ENOTSUP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jitdump_bytes bytes = {.nr = 0};
		struct reader reader;

		jitdump_put_header(&bytes, 40, 0);
		memcpy(bytes.bytes + cases[i].offset, &cases[i].value, 4);
		reader = open_bytes(&bytes);
		cr_expect(eq(int, jitdump_read(reader.dump, reader.map, true), cases[i].err), "%s",
			  cases[i].what);
		cr_expect(eq(ptr, (void *)jitdump_header(reader.dump), NULL));
		close_reader(&reader);
	}
}

Test(jitdump, processor_timestamps_are_reported)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 1);
	reader = read_bytes(&bytes);
	cr_expect(jitdump_header(reader.dump)->has_ticks);
	close_reader(&reader);
}

/* A file truncated anywhere is read up to there, and the rest once it is there. */
Test(jitdump, reads_a_file_that_grows_byte_by_byte)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_unwinding(&bytes, 0x1000, false, 9);
	add_three_loads(&bytes);
	jitdump_put_lines(&bytes, 0x3000, 0x3000, 40);
	jitdump_put_load(&bytes, (struct jitdump_load){"four", 0x3000, 16, 4, 41, 0});
	reader = open_bytes(&bytes);
	for (size_t nr = 0; nr <= bytes.nr; nr++) {
		jitdump_bytes_write(&bytes, reader.fd, nr);
		cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	}
	cr_expect(eq(u32, nr_codes(&reader), 4));
	expect_code(reader.map, 0x3000, 41, "four");
	cr_expect(ne(u64, jit_map_find(reader.map, 0x1000, 10)->unwind_place, 0));
	cr_expect(ne(u64, jit_map_find(reader.map, 0x3000, 41)->lines_place, 0));
	cr_expect(zero(u64, jit_map_find(reader.map, 0x2000, 41)->unwind_place));
	expect_no_faults(&reader);
	close_reader(&reader);
}

Test(jitdump, reports_a_truncated_file)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	add_three_loads(&bytes);
	bytes.nr -= 3;
	reader = read_bytes(&bytes);
	cr_expect(eq(u32, nr_codes(&reader), 2));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_INCOMPLETE), 1));
	close_reader(&reader);
}

Test(jitdump, move_ends_the_code_at_its_old_address)
{
	struct jitdump_bytes bytes = {.is_big = true};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 16, 1, 10, 0});
	jitdump_put_move(&bytes, 0x1000, 0x5000, 16, 1, 20);
	jitdump_put_move(&bytes, 0x5000, 0x5008, 16, 1, 30);
	jitdump_put_move(&bytes, 0x1000, 0x6000, 16, 1, 40);
	jitdump_put_move(&bytes, 0x5008, 0x7000, 16, 9, 40);
	jitdump_put_move(&bytes, 0x5008, UINT64_MAX - 8, 16, 1, 40);
	reader = read_bytes(&bytes);
	expect_code(reader.map, 0x1000, 19, "one");
	expect_code(reader.map, 0x1000, 20, "-");
	expect_code(reader.map, 0x5000, 20, "one");
	expect_code(reader.map, 0x5000, 30, "-");
	expect_code(reader.map, 0x5017, 30, "one");
	expect_code(reader.map, 0x6000, 40, "-");
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_UNKNOWN_MOVE), 2));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_INCOMPLETE), 1),
		  "no code at such a high address");
	close_reader(&reader);
}

Test(jitdump, debug_records_belong_to_the_next_load_only)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;
	const struct jit_code *code;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_lines(&bytes, 0x9000, 0x9000, 1); /* another code's */
	jitdump_put_unwinding(&bytes, 0x1000, false, 1);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, 2, 0});
	jitdump_put_load(&bytes, (struct jitdump_load){"two", 0x2000, 12, 2, 3, 0});
	jitdump_put_unwinding(&bytes, 0x3000, false, 4);
	jitdump_put_unwinding(&bytes, 0x3000, false, 5);
	jitdump_put_lines(&bytes, 0x3000, 0x3000, 5);
	jitdump_put_load(&bytes, (struct jitdump_load){"three", 0x3000, 12, 3, 6, 0});
	jitdump_put_lines(&bytes, 0x4000, 0x4000, 7);
	reader = read_bytes(&bytes);
	code = jit_map_find(reader.map, 0x1000, 6);
	cr_expect(zero(u64, code->lines_place));
	cr_expect(ne(u64, code->unwind_place, 0));
	code = jit_map_find(reader.map, 0x2000, 6);
	cr_expect(zero(u64, code->lines_place));
	cr_expect(zero(u64, code->unwind_place));
	code = jit_map_find(reader.map, 0x3000, 6);
	cr_expect(ne(u64, code->lines_place, 0));
	cr_expect(ne(u64, code->unwind_place, 0));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_ORPHAN_LINES), 2));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_ORPHAN_UNWINDING), 1));
	close_reader(&reader);
}

Test(jitdump, foreign_and_unknown_records_are_skipped)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes,
			 (struct jitdump_load){"theirs", 0x8000, 12, 1, 2, JITDUMP_PID + 1});
	jitdump_put_load(&bytes,
			 (struct jitdump_load){"theirs", 0x9000, 12, 2, 3, JITDUMP_PID + 1});
	add_three_loads(&bytes);
	for (uint32_t id = 5; id < 7; id++) { /* of a future version */
		jitdump_put_prefix(&bytes, id, 32, 1);
		jitdump_put_zeros(&bytes, 16);
	}
	jitdump_put_load(&bytes, (struct jitdump_load){"empty", 0x9000, 0, 1, 2, 0});
	jitdump_put_prefix(&bytes, JITDUMP_CLOSE, 16, 50);
	jitdump_put_load(&bytes, (struct jitdump_load){"late", 0xa000, 12, 4, 60, 0});
	reader = read_bytes(&bytes);
	cr_expect(eq(u32, nr_codes(&reader), 4));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_UNKNOWN_ID), 2));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_OTHER_PROCESS), 2));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_EMPTY_CODE), 1));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_AFTER_CLOSE), 1));
	cr_expect(zero(u64, jitdump_stats(reader.dump)->skipped_bytes));
	close_reader(&reader);
}

/* Damage between two records. The records after it are found in every case. */
Test(jitdump, resumes_after_damage)
{
	static const struct {
		const char *what;
		uint32_t words[8];
	} cases[] = {
		{"zeros", {0}},
		{"no length", {JITDUMP_LOAD, 15, 1, 0, JITDUMP_PID}},
		{"a length beyond the end", {JITDUMP_LOAD, 0x100000, 1, 0, JITDUMP_PID}},
		{"an absurd length", {JITDUMP_LOAD, UINT32_MAX, 1, 0, JITDUMP_PID}},
		{"an absurd length of an unknown id", {9, 0x7fffffff}},
		{"an unknown id at the end", {9, 20, 1, 0, 2, 3, 4, 5}},
		{"no name", {JITDUMP_LOAD, 56, 1, 0, JITDUMP_PID}},
		{"more entries than bytes", {JITDUMP_DEBUG_INFO, 32, 1, 0, 0, 0, 9, 0}},
		{"a header longer than all", {JITDUMP_UNWINDING_INFO, 48, 1, 0, 8, 0, 9, 0}},
		{"a long close", {JITDUMP_CLOSE, 17, 1, 0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jitdump_bytes bytes = {.nr = 0};
		struct reader reader;

		jitdump_put_header(&bytes, 40, 0);
		jitdump_put_load(&bytes, (struct jitdump_load){"zero", 0x500, 16, 7, 5, 0});
		jitdump_put(&bytes, cases[i].words, sizeof(cases[i].words));
		add_three_loads(&bytes);
		reader = read_bytes(&bytes);
		cr_expect(eq(u32, nr_codes(&reader), 4), "%s", cases[i].what);
		expect_code(reader.map, 0x500, 30, "zero");
		expect_code(reader.map, 0x2000, 30, "two, with blanks: <x>");
		cr_expect(eq(u64, nr_faults(&reader, JITDUMP_SKIPPED), 1), "%s", cases[i].what);
		cr_expect(
			eq(u64, jitdump_stats(reader.dump)->skipped_bytes, sizeof(cases[i].words)),
			"%s", cases[i].what);
		close_reader(&reader);
	}
}

/*
 * A file as CPython leaves it after a fork: the child flushes the buffer it inherited, which
 * begins in the middle of a record, and then the parent writes the same bytes again.
 */
static struct jitdump_bytes fork_damaged(const struct jitdump_bytes *whole, size_t flushed,
					 size_t forked)
{
	struct jitdump_bytes damaged = {.nr = 0};

	jitdump_put(&damaged, whole->bytes, forked);
	jitdump_put(&damaged, whole->bytes + flushed, whole->nr - flushed);
	return damaged;
}

Test(jitdump, damage_by_a_fork_loses_no_code)
{
	struct jitdump_bytes whole = {.nr = 0};
	size_t ends[40];

	jitdump_put_header(&whole, 40, 0);
	for (uint64_t i = 0; i < 40; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "py::function_%d:/a.py", (int)i);
		jitdump_put_unwinding(&whole, 0x1000 + 32 * i, false, 10 * i + 1);
		jitdump_put_load(&whole, (struct jitdump_load){name, 0x1000 + 32 * i, 12, i + 1,
							       10 * i + 2, 0});
		ends[i] = whole.nr;
	}
	/* The fork was after record 20. The last flush before it ended at any earlier place. */
	for (size_t flushed = ends[18] - 60; flushed < ends[20]; flushed++) {
		struct jitdump_bytes damaged = fork_damaged(&whole, flushed, ends[20]);
		struct reader reader = read_bytes(&damaged);

		cr_assert(eq(u32, nr_codes(&reader), 40), "flushed %zu", flushed);
		for (uint64_t i = 0; i < 40; i++) {
			const struct jit_code *code =
				jit_map_find(reader.map, 0x1000 + 32 * i, 1000);

			cr_assert(ne(ptr, (void *)code, NULL));
			cr_assert(eq(u64, code->code_index, i + 1));
		}
		close_reader(&reader);
	}
}

Test(jitdump, duplicate_record_adds_no_code)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	add_three_loads(&bytes);
	jitdump_put_move(&bytes, 0x2000, 0x7000, 5, 2, 40);
	add_three_loads(&bytes);
	jitdump_put_move(&bytes, 0x2000, 0x7000, 5, 2, 40);
	reader = read_bytes(&bytes);
	cr_expect(eq(u32, nr_codes(&reader), 4));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_DUPLICATE), 4));
	expect_code(reader.map, 0x100f, 29, "one");
	expect_code(reader.map, 0x2000, 40, "-");
	expect_code(reader.map, 0x7000, 40, "two, with blanks: <x>");
	close_reader(&reader);
}

Test(jitdump, rewritten_file_is_read_from_its_start)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct jitdump_bytes other = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	add_three_loads(&bytes);
	reader = read_bytes(&bytes);
	jitdump_put_header(&other, 40, 0);
	other.bytes[24]++; /* its time */
	jitdump_put_load(&other, (struct jitdump_load){"new", 0x2000, 5, 1, 100, 0});
	add_three_loads(&other);
	jitdump_bytes_write(&other, reader.fd, other.nr);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	expect_code(reader.map, 0x2000, 99, "two, with blanks: <x>");
	expect_code(reader.map, 0x2000, 100, "new");
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_RESTARTED), 1));
	/* A file truncated to nothing: wait for what comes. */
	jitdump_bytes_write(&bytes, reader.fd, 0);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	cr_expect(ne(ptr, (void *)jitdump_header(reader.dump), NULL), "its codes are still known");
	jitdump_bytes_write(&bytes, reader.fd, bytes.nr);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_RESTARTED), 2));
	close_reader(&reader);
}

Test(jitdump, reading_stops_at_a_huge_hole)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	reader = open_bytes(&bytes);
	cr_assert(zero(int, ftruncate(reader.fd, (off_t)1 << 40)));
	cr_expect(eq(int, jitdump_read(reader.dump, reader.map, false), -E2BIG));
	close_reader(&reader);
}

/*
 * Refusing a code is slow if it precedes JIT_MAP_MAX_STEPS others at its address, so refusals are
 * limited.
 */
Test(jitdump, reading_stops_after_many_refused_codes)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	for (uint64_t i = 0; i < JITDUMP_MAX_REFUSED; i++)
		jitdump_put_load(&bytes, (struct jitdump_load){"f", 0x1000, 1, .index = i,
							       .time_ns = 1 + i % 2});
	jitdump_put_load(&bytes, (struct jitdump_load){"g", 0x2000, 1, .index = 77, .time_ns = 1});
	reader = open_bytes(&bytes);
	for (uint64_t i = 0; i < JIT_MAP_MAX_STEPS; i++) {
		const struct jit_code code = {.start_addr = 0x1000,
					      .nr_bytes = 1,
					      .from_ns = 2 * JIT_MAP_MAX_STEPS - i,
					      .to_ns = JIT_MAP_OPEN_NS,
					      .name = "later"};

		cr_assert(zero(int, jit_map_add(reader.map, &code, 5, NULL)));
	}
	for (int i = 0; i < 2; i++)
		cr_expect(zero(int, jitdump_read(reader.dump, reader.map, i)));
	cr_expect(eq(u64, nr_faults(&reader, JITDUMP_REFUSED), JITDUMP_MAX_REFUSED));
	cr_expect(eq(u32, nr_codes(&reader), JIT_MAP_MAX_STEPS));
	close_reader(&reader);
}

Test(jitdump, codes_after_the_end_time_are_ignored)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	add_three_loads(&bytes);
	reader = open_bytes(&bytes);
	jitdump_set_end(reader.dump, 30);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, true)));
	cr_expect(eq(u32, nr_codes(&reader), 2));
	close_reader(&reader);
}

/* The part that the writer has not written yet. */

/* Read with nr_in_file bytes in the file and the rest up to end in the tail. */
static void read_with_tail(struct reader *reader, const struct jitdump_bytes *bytes,
			   size_t nr_in_file, size_t end)
{
	jitdump_bytes_write(bytes, reader->fd, nr_in_file);
	jitdump_set_tail(reader->dump, nr_in_file, bytes->bytes + nr_in_file, end - nr_in_file);
	cr_assert(zero(int, jitdump_read(reader->dump, reader->map, false)));
}

/* A dump with names, a move, line and unwind information. */
static struct jitdump_bytes whole_dump(void)
{
	struct jitdump_bytes bytes = {.nr = 0};

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_unwinding(&bytes, 0x1000, false, 9);
	add_three_loads(&bytes);
	jitdump_put_lines(&bytes, 0x3000, 0x3000, 40);
	jitdump_put_load(&bytes, (struct jitdump_load){"four", 0x3000, 16, 4, 41, 0});
	jitdump_put_move(&bytes, 0x3000, 0x5000, 16, 4, 50);
	return bytes;
}

static void expect_whole_dump(const struct reader *reader)
{
	expect_code(reader->map, 0x100f, 29, "one");
	expect_code(reader->map, 0x2004, 60, "two, with blanks: <x>");
	expect_code(reader->map, 0x1008, 60, "three");
	expect_code(reader->map, 0x3000, 49, "four");
	expect_code(reader->map, 0x3000, 50, "-");
	expect_code(reader->map, 0x5000, 60, "four");
	cr_expect(eq(u32, nr_codes(reader), 5));
	expect_no_faults(reader);
}

/* The file may end anywhere, even in its header, and may already have the whole tail. */
Test(jitdump, tail_is_read_after_the_file)
{
	const struct jitdump_bytes bytes = whole_dump();

	for (size_t nr = 0; nr <= bytes.nr; nr++) {
		struct reader reader = open_bytes(&bytes);

		read_with_tail(&reader, &bytes, nr, bytes.nr);
		expect_whole_dump(&reader);
		cr_assert(le(u64, jitdump_offset(reader.dump), nr));
		cr_assert(ne(ptr, (void *)jitdump_header(reader.dump), NULL));
		read_with_tail(&reader, &bytes, bytes.nr, bytes.nr);
		expect_whole_dump(&reader);
		cr_assert(eq(u64, jitdump_offset(reader.dump), bytes.nr));
		cr_assert(zero(int, jitdump_read(reader.dump, reader.map, true)));
		expect_whole_dump(&reader);
		close_reader(&reader);
	}
}

/* The writer flushes 100 bytes at a time. A truncated record is read once it is complete. */
Test(jitdump, tail_grows_byte_by_byte)
{
	const struct jitdump_bytes bytes = whole_dump();
	struct reader reader = open_bytes(&bytes);

	for (size_t end = 0; end <= bytes.nr; end++)
		read_with_tail(&reader, &bytes, end - end % 100, end);
	expect_whole_dump(&reader);
	cr_expect(ne(u64, jit_map_find(reader.map, 0x1000, 10)->unwind_place, 0));
	cr_expect(ne(u64, jit_map_find(reader.map, 0x5000, 50)->lines_place, 0));
	close_reader(&reader);
}

Test(jitdump, tail_at_another_offset_is_not_read)
{
	const struct jitdump_bytes bytes = whole_dump();
	struct reader reader = open_bytes(&bytes);
	size_t nr = 40;

	jitdump_bytes_write(&bytes, reader.fd, nr);
	for (size_t offset = 0; offset < 80; offset++) {
		if (offset == nr)
			continue;
		jitdump_set_tail(reader.dump, offset, bytes.bytes + nr, bytes.nr - nr);
		cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	}
	/* A tail of an earlier moment: its records would begin at the end of the file. */
	jitdump_set_tail(reader.dump, nr - 8, bytes.bytes + nr - 8, bytes.nr - nr + 8);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
	cr_expect(zero(u32, nr_codes(&reader)));
	/* The tail of an ended process is never written. */
	jitdump_set_tail(reader.dump, nr, bytes.bytes + nr, bytes.nr - nr);
	cr_assert(zero(int, jitdump_read(reader.dump, reader.map, true)));
	cr_expect(zero(u32, nr_codes(&reader)));
	close_reader(&reader);
}

/*
 * A child flushes the inherited buffer and more records of its own before the parent does.
 * Nothing is lost, and nothing is read twice.
 */
Test(jitdump, tail_moved_by_a_fork_loses_no_code)
{
	struct jitdump_bytes whole = {.nr = 0};
	size_t ends[30];

	jitdump_put_header(&whole, 40, 0);
	for (uint64_t i = 0; i < 30; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "py::function_%d:/a.py", (int)i);
		jitdump_put_load(
			&whole, (struct jitdump_load){name, 0x1000 + 32 * i, 12, i + 1, 10 * i, 0});
		ends[i] = whole.nr;
	}
	for (size_t flushed = ends[4] - 80; flushed < ends[4]; flushed++) {
		struct reader reader = open_bytes(&whole);
		struct jitdump_bytes moved = {.nr = 0};

		read_with_tail(&reader, &whole, flushed, ends[19]);
		cr_assert(eq(u32, nr_codes(&reader), 20), "flushed %zu", flushed);
		/* The fork was after record 10; the parent still has the rest to write. */
		jitdump_put(&moved, whole.bytes, ends[9]);
		jitdump_put_load(&moved, (struct jitdump_load){"child", 0x1000, 12, 1, 500,
							       JITDUMP_PID + 1});
		jitdump_bytes_write(&moved, reader.fd, moved.nr);
		jitdump_set_tail(reader.dump, moved.nr, whole.bytes + flushed, ends[24] - flushed);
		cr_assert(zero(int, jitdump_read(reader.dump, reader.map, false)));
		cr_assert(eq(u32, nr_codes(&reader), 25), "flushed %zu", flushed);
		jitdump_put(&moved, whole.bytes + flushed, whole.nr - flushed);
		jitdump_bytes_write(&moved, reader.fd, moved.nr);
		cr_assert(zero(int, jitdump_read(reader.dump, reader.map, true)));
		cr_assert(eq(u32, nr_codes(&reader), 30), "flushed %zu", flushed);
		for (uint64_t i = 0; i < 30; i++)
			cr_assert(eq(u64,
				     jit_map_find(reader.map, 0x1000 + 32 * i, 1000)->code_index,
				     i + 1));
		close_reader(&reader);
	}
}

/*
 * A writer whose clock does not advance. The last code at a place counts, however often it is
 * read.
 */
Test(jitdump, last_code_of_a_tail_wins_without_times)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 16, 1, 0, 0});
	jitdump_put_load(&bytes, (struct jitdump_load){"two", 0x1000, 16, 2, 0, 0});
	jitdump_put_load(&bytes, (struct jitdump_load){"three", 0x1000, 16, 3, 0, 0});
	reader = open_bytes(&bytes);
	for (int i = 0; i < 3; i++) {
		read_with_tail(&reader, &bytes, 40, bytes.nr);
		expect_code(reader.map, 0x1000, 10, "three");
		cr_expect(eq(u32, nr_codes(&reader), 3));
	}
	read_with_tail(&reader, &bytes, bytes.nr, bytes.nr);
	expect_code(reader.map, 0x1000, 10, "three");
	cr_expect(eq(u32, nr_codes(&reader), 3));
	expect_no_faults(&reader);
	close_reader(&reader);
}

/* A tail that is no record does not count as damage of the file. */
Test(jitdump, tail_without_records_is_no_damage)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;
	size_t nr;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes, (struct jitdump_load){"zero", 0x500, 16, 7, 5, 0});
	nr = bytes.nr;
	for (int i = 0; i < 1000; i++)
		jitdump_put(&bytes, "\xff", 1);
	add_three_loads(&bytes);
	reader = open_bytes(&bytes);
	read_with_tail(&reader, &bytes, nr, bytes.nr);
	cr_expect(eq(u32, nr_codes(&reader), 4));
	expect_no_faults(&reader);
	cr_expect(eq(u64, jitdump_offset(reader.dump), nr));
	close_reader(&reader);
}

/* Information other than the name. */

static struct jit_body body_at(const struct reader *reader, remote_addr addr)
{
	struct jit_body body;

	cr_assert(zero(int,
		       jitdump_read_body(reader->dump,
					 jit_map_find(reader->map, addr, JIT_MAP_NOW_NS), &body)));
	return body;
}

Test(jitdump, reads_the_lines_of_a_code)
{
	/* As specified; with V8's offset; of another code, so there are none. */
	static const remote_addr begins[] = {0x1000, 0x1040, 0x1100};

	for (size_t i = 0; i < 3; i++)
		for (int is_big = 0; is_big < 2; is_big++) {
			struct jitdump_bytes bytes = {.is_big = is_big};
			struct reader reader;
			struct jit_body body;

			jitdump_put_header(&bytes, 40, 0);
			jitdump_put_lines(&bytes, 0x1000, begins[i], 1);
			jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, 2, 0});
			jitdump_put_move(&bytes, 0x1000, 0x4000, 12, 1, 3);
			reader = read_bytes(&bytes);
			body = body_at(&reader, 0x4000);
			cr_assert(eq(u32, body.nr_lines, i == 2 ? 0 : 3));
			for (uint32_t line = 0; line < body.nr_lines; line++) {
				static const uint32_t numbers[] = {10, 12, 5};

				cr_expect(eq(u64, body.lines[line].addr, 0x4000 + 4 * line));
				cr_expect(eq(u32, body.lines[line].line, numbers[line]));
				cr_expect(zero(int, strcmp(body.lines[line].path,
							   line == 2 ? "/b.py" : "/a.py")));
			}
			cr_expect(eq(u8, body.code[11], 0xc3));
			jit_body_done(&body);
			close_reader(&reader);
		}
}

Test(jitdump, reads_unwind_information_with_either_section_first)
{
	for (int header_first = 0; header_first < 2; header_first++) {
		struct jitdump_bytes bytes = {.nr = 0};
		struct reader reader;
		struct jit_body body;

		jitdump_put_header(&bytes, 40, 0);
		jitdump_put_unwinding(&bytes, 0x1000, header_first, 1);
		jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, 2, 0});
		jitdump_put_unwinding(&bytes, 0x9999, header_first, 3); /* another code's */
		jitdump_put_load(&bytes, (struct jitdump_load){"two", 0x2000, 12, 2, 4, 0});
		reader = read_bytes(&bytes);
		body = body_at(&reader, 0x1000);
		cr_expect(eq(u64, body.unwind_bytes, JITDUMP_EH_FRAME_BYTES));
		cr_expect(eq(u64, body.unwind_vaddr,
			     header_first ? 0x1010 + JITDUMP_EH_HEADER_BYTES : 0x1010));
		cr_assert(ne(ptr, body.unwind, NULL));
		cr_expect(eq(u8, body.unwind[9], 'z'));
		jit_body_done(&body);
		body = body_at(&reader, 0x2000);
		cr_expect(eq(ptr, body.unwind, NULL));
		jit_body_done(&body);
		close_reader(&reader);
	}
}

Test(jitdump, reads_bodies_from_a_tail)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct reader reader;
	struct jit_body body;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_lines(&bytes, 0x1000, 0x1000, 1);
	jitdump_put_unwinding(&bytes, 0x1000, false, 1);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, 2, 0});
	reader = open_bytes(&bytes);
	for (size_t nr = 0; nr <= bytes.nr; nr++) {
		read_with_tail(&reader, &bytes, nr, bytes.nr);
		body = body_at(&reader, 0x1000);
		cr_assert(eq(u32, body.nr_lines, 3));
		cr_assert(eq(u64, body.unwind_bytes, JITDUMP_EH_FRAME_BYTES));
		cr_assert(eq(u8, body.code[11], 0xc3));
		jit_body_done(&body);
	}
	/* A code that disappears before it was written to the file has no body any more. */
	read_with_tail(&reader, &bytes, 40, bytes.nr);
	read_with_tail(&reader, &bytes, 40, 40);
	cr_expect(eq(int,
		     jitdump_read_body(reader.dump, jit_map_find(reader.map, 0x1000, 2), &body),
		     -ENOENT));
	close_reader(&reader);
}

Test(jitdump, body_changed_in_the_file_is_refused)
{
	struct jitdump_bytes bytes = {.nr = 0};
	struct jit_body body;
	struct reader reader;

	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, 2, 0});
	reader = read_bytes(&bytes);
	bytes.bytes[40 + 56] = 'O';
	jitdump_bytes_write(&bytes, reader.fd, bytes.nr);
	cr_expect(eq(int,
		     jitdump_read_body(reader.dump, jit_map_find(reader.map, 0x1000, 2), &body),
		     -ENOENT));
	close_reader(&reader);
}
