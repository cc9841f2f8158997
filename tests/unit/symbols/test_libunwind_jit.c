/* SPDX-License-Identifier: MIT */
#include "symbols/jit/libunwind_jit.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/remote_list.h"
#include "tests/support/expected_code.h"
#include "tests/support/fake_memory.h"

enum { LIST_ADDR = 0x1000, ENTRIES_ADDR = 0x10000, NAMES_ADDR = 0x20000, NAME_STEP = 0x2000 };
enum { NR_ENTRIES = 4, ENTRY_STEP = 0x60, CODE_BYTES = 0x10 };

/* A process with entries that are not on its list yet, and the reader. */
struct target {
	struct fake_memory fake;
	struct libunwind_jit *jit;
	struct jit_map *map;
};

static remote_addr entry_addr(unsigned int i)
{
	return ENTRIES_ADDR + i * ENTRY_STEP;
}

static remote_addr name_addr(unsigned int i)
{
	return NAMES_ADDR + i * NAME_STEP;
}

static remote_addr code_addr(unsigned int i)
{
	return 0x100000 + i * 0x1000;
}

/* Set the word at this offset of an entry. */
static void set_word(struct target *target, unsigned int i, unsigned int offset, uint64_t value)
{
	fake_memory_write_u64(&target->fake, entry_addr(i) + offset, value);
}

static void set_name(struct target *target, unsigned int i, const char *name)
{
	fake_memory_write(&target->fake, name_addr(i), name, strlen(name) + 1);
}

static void set_first(struct target *target, remote_addr addr)
{
	fake_memory_write_u64(&target->fake, LIST_ADDR + 8, addr);
}

static void count_change(struct target *target, uint32_t generation)
{
	fake_memory_write_u32(&target->fake, LIST_ADDR + 4, generation);
}

/* Make entries first to last the list, in this order. */
static void link_entries(struct target *target, unsigned int first, unsigned int last)
{
	set_first(target, entry_addr(first));
	for (unsigned int i = first; i <= last; i++) {
		set_word(target, i, 0, i < last ? entry_addr(i + 1) : 0);
		set_word(target, i, 8, i > first ? entry_addr(i - 1) : 0);
	}
}

static void open_target(struct target *target)
{
	fake_memory_init(&target->fake);
	fake_memory_map(&target->fake, LIST_ADDR, 16);
	fake_memory_map(&target->fake, ENTRIES_ADDR, NR_ENTRIES * ENTRY_STEP);
	for (unsigned int i = 0; i < NR_ENTRIES; i++) {
		const char name[] = {'f', 'n', (char)('0' + i), '\0'};

		fake_memory_map(&target->fake, name_addr(i), LIBUNWIND_JIT_MAX_NAME_BYTES + 1);
		set_name(target, i, name);
		set_word(target, i, 16, code_addr(i));
		set_word(target, i, 24, code_addr(i) + CODE_BYTES);
		set_word(target, i, 56, name_addr(i));
	}
	target->jit = libunwind_jit_create(&target->fake.memory);
	target->map = jit_map_create();
	cr_assert(zero(int, libunwind_jit_add_list(target->jit, LIST_ADDR)));
}

static void close_target(struct target *target)
{
	libunwind_jit_destroy(target->jit);
	jit_map_destroy(target->map);
	fake_memory_done(&target->fake);
}

static void read_lists(struct target *target, uint64_t now_ns)
{
	cr_assert(zero(int, libunwind_jit_read(target->jit, target->map, 1, now_ns)));
}

static uint32_t nr_codes(const struct target *target)
{
	uint32_t nr;

	(void)jit_map_codes(target->map, &nr);
	return nr;
}

Test(libunwind_jit, functions_are_added_and_removed)
{
	struct target target;

	open_target(&target);
	read_lists(&target, 10);
	cr_expect(eq(u32, nr_codes(&target), 0));
	link_entries(&target, 1, 3);
	count_change(&target, 3);
	read_lists(&target, 20);
	expect_code(target.map, code_addr(1), 10, "fn1");
	expect_code(target.map, code_addr(1), 9, "-");
	expect_code(target.map, code_addr(2) + CODE_BYTES - 1, 20, "fn2");
	expect_code(target.map, code_addr(2) + CODE_BYTES, 20, "-");
	expect_code(target.map, code_addr(3), 20, "fn3");
	link_entries(&target, 0, 2);
	count_change(&target, 5);
	read_lists(&target, 30);
	expect_code(target.map, code_addr(0), 20, "fn0");
	expect_code(target.map, code_addr(1), 30, "fn1");
	expect_code(target.map, code_addr(3), 29, "fn3");
	expect_code(target.map, code_addr(3), 30, "-");
	cr_expect(eq(u32, nr_codes(&target), 4), "known codes are not added again");
	close_target(&target);
}

/* The generation is changed before the list, so a walk may still see the old list. */
Test(libunwind_jit, change_in_progress_is_read_again)
{
	struct target target;
	uint64_t nr_calls;

	open_target(&target);
	link_entries(&target, 0, 3);
	count_change(&target, 4);
	read_lists(&target, 10);
	count_change(&target, 5);
	read_lists(&target, 20);
	expect_code(target.map, code_addr(3), 20, "fn3");
	link_entries(&target, 0, 2); /* the change of generation 5 */
	read_lists(&target, 30);
	expect_code(target.map, code_addr(3), 30, "-");
	nr_calls = target.fake.nr_calls;
	read_lists(&target, 40);
	cr_expect(eq(u64, target.fake.nr_calls, nr_calls + 1), "an unchanged list costs one read");
	close_target(&target);
}

/* A new entry in the memory of a freed one. */
Test(libunwind_jit, reused_entry_is_a_new_function)
{
	struct target target;

	open_target(&target);
	link_entries(&target, 0, 1);
	read_lists(&target, 10);
	set_name(&target, 0, "new");
	set_word(&target, 1, 24, code_addr(1) + 2);
	count_change(&target, 2);
	read_lists(&target, 20);
	expect_code(target.map, code_addr(0), 9, "fn0");
	expect_code(target.map, code_addr(0), 20, "new");
	expect_code(target.map, code_addr(1) + 1, 20, "fn1");
	expect_code(target.map, code_addr(1) + 2, 20, "-");
	close_target(&target);
}

Test(libunwind_jit, torn_list_ends_no_function)
{
	static const struct {
		const char *what;
		unsigned int entry, offset;
		uint64_t value;
	} cases[] = {
		{"the second one does not point back", 1, 8, 0},
		{"the second one points to unmapped memory", 1, 0, 0xdead000},
		{"the last one points to the first", 2, 0, ENTRIES_ADDR},
		{"the last one points to itself", 2, 0, ENTRIES_ADDR + 2 * ENTRY_STEP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;

		open_target(&target);
		link_entries(&target, 0, 3);
		read_lists(&target, 10);
		link_entries(&target, 0, 2);
		count_change(&target, 1);
		set_word(&target, cases[i].entry, cases[i].offset, cases[i].value);
		read_lists(&target, 20);
		expect_code(target.map, code_addr(0), 20, "fn0");
		expect_code(target.map, code_addr(3), 20, "fn3");
		link_entries(&target, 0, 2);
		read_lists(&target, 30);
		cr_expect(eq(ptr, (void *)jit_map_find(target.map, code_addr(3), 30), NULL), "%s",
			  cases[i].what);
		close_target(&target);
	}
}

/* A list that is too long ends no code, because its end was not seen. */
Test(libunwind_jit, endless_list_ends_no_function)
{
	enum { LONG_ADDR = 0x10000000, NR_LONG = REMOTE_LIST_MAX_ENTRIES + 1, BYTES = 64 };
	struct target target;
	uint8_t *bytes;

	open_target(&target);
	link_entries(&target, 0, 0);
	read_lists(&target, 10);
	bytes = fake_memory_map(&target.fake, LONG_ADDR, (size_t)NR_LONG * BYTES);
	for (uint64_t i = 0; i < NR_LONG; i++) {
		const uint64_t addr = LONG_ADDR + i * BYTES;
		const uint64_t entry[8] = {addr + BYTES, i ? addr - BYTES : 0, addr,
					   addr + 1, [7] = NAMES_ADDR};

		memcpy(bytes + i * BYTES, entry, sizeof(entry));
	}
	set_first(&target, LONG_ADDR);
	read_lists(&target, 20);
	cr_expect(eq(u32, nr_codes(&target), 1 + REMOTE_LIST_MAX_ENTRIES));
	expect_code(target.map, code_addr(0), 20, "fn0");
	close_target(&target);
}

Test(libunwind_jit, incomplete_entries_are_skipped)
{
	static const struct {
		const char *what;
		unsigned int offset;
		uint64_t value;
	} cases[] = {
		{"no bytes", 24, 0x100000},
		{"an end before its start", 24, 0xfffff},
		{"an unknown format", 40, 5},
		{"a negative format", 40, UINT32_MAX},
		{"no name", 56, 0},
		{"a name that cannot be read", 56, 0xdead000},
		{"an empty name", 56, NAMES_ADDR + 3},
		{"a name at the last address", 56, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;

		open_target(&target);
		link_entries(&target, 0, 1);
		set_word(&target, 0, cases[i].offset, cases[i].value);
		read_lists(&target, 10);
		cr_expect(eq(u32, nr_codes(&target), 1), "%s", cases[i].what);
		expect_code(target.map, code_addr(1), 10, "fn1");
		close_target(&target);
	}
}

/*
 * All formats have the name at the same offset; before libunwind 1.6 that of functions was
 * elsewhere.
 */
Test(libunwind_jit, name_offset_is_the_same_in_all_formats)
{
	struct target target;

	open_target(&target);
	link_entries(&target, 0, 3);
	set_word(&target, 0, 48, name_addr(3));
	set_word(&target, 0, 56, 0);
	set_word(&target, 1, 40, 1); /* UNW_INFO_FORMAT_TABLE */
	set_word(&target, 1, 48, 0x1000);
	set_word(&target, 2, 40, 2); /* UNW_INFO_FORMAT_REMOTE_TABLE */
	read_lists(&target, 10);
	expect_code(target.map, code_addr(0), 10, "fn3");
	expect_code(target.map, code_addr(1), 10, "fn1");
	expect_code(target.map, code_addr(2), 10, "fn2");
	close_target(&target);
}

Test(libunwind_jit, long_names_are_limited)
{
	static const size_t lengths[] = {255, LIBUNWIND_JIT_MAX_NAME_BYTES};
	struct target target;
	char *name = calloc(1, LIBUNWIND_JIT_MAX_NAME_BYTES + 2);

	open_target(&target);
	link_entries(&target, 0, 0);
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(name, 'x', lengths[i]);
		set_name(&target, 0, name);
		count_change(&target, i + 1);
		read_lists(&target, 10 * (i + 1));
		expect_code(target.map, code_addr(0), 10 * (i + 1), name);
	}
	/* With one byte more there is no name, and the old code ends. */
	fake_memory_write_u8(&target.fake, name_addr(0) + LIBUNWIND_JIT_MAX_NAME_BYTES, 'x');
	count_change(&target, 10);
	read_lists(&target, 100);
	expect_code(target.map, code_addr(0), 100, "-");
	free(name);
	close_target(&target);
}

Test(libunwind_jit, invalid_lists_are_skipped)
{
	struct target target;

	open_target(&target);
	link_entries(&target, 0, 3);
	fake_memory_write_u32(&target.fake, LIST_ADDR, 1); /* unknown version */
	cr_assert(zero(int, libunwind_jit_add_list(target.jit, 0xdead000)));
	read_lists(&target, 10);
	cr_expect(eq(u32, nr_codes(&target), 0));
	fake_memory_write_u32(&target.fake, LIST_ADDR, 0);
	read_lists(&target, 20);
	cr_expect(eq(u32, nr_codes(&target), 4));
	target.fake.error = -ESRCH;
	cr_expect(eq(int, libunwind_jit_read(target.jit, target.map, 1, 30), -ESRCH));
	close_target(&target);
}

/* The walk of one list neither ends nor keeps codes of the other. */
Test(libunwind_jit, lists_do_not_affect_each_other)
{
	enum { OTHER_LIST_ADDR = 0x3000 };
	struct target target;

	open_target(&target);
	fake_memory_map(&target.fake, OTHER_LIST_ADDR, 16);
	fake_memory_write_u64(&target.fake, OTHER_LIST_ADDR + 8, entry_addr(3));
	link_entries(&target, 0, 1);
	for (int i = 0; i < 2; i++)
		cr_assert(zero(int, libunwind_jit_add_list(target.jit, OTHER_LIST_ADDR)));
	read_lists(&target, 10);
	count_change(&target, 1);
	link_entries(&target, 0, 0);
	read_lists(&target, 20);
	expect_code(target.map, code_addr(0), 20, "fn0");
	expect_code(target.map, code_addr(1), 20, "-");
	expect_code(target.map, code_addr(3), 20, "fn3");
	for (unsigned int i = 0; i < LIBUNWIND_JIT_MAX_LISTS - 2; i++)
		cr_expect(zero(int, libunwind_jit_add_list(target.jit, 0x5000 + i)));
	cr_expect(eq(int, libunwind_jit_add_list(target.jit, 0x4000), -E2BIG));
	close_target(&target);
}

Test(libunwind_jit, recognises_functions_that_return_a_list)
{
	/* Each function is at 0x8000 and returns 0x1000 if it is recognized. */
#if defined(__x86_64__)
	static const struct {
		const char *what;
		uint8_t code[12];
		int err;
	} cases[] = {
		{"as compiled", {0x48, 0x8d, 0x05, 0xf9, 0x8f, 0xff, 0xff, 0xc3}, 0},
		{"after endbr64",
		 {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05, 0xf5, 0x8f, 0xff, 0xff, 0xc3},
		 0},
		{"no return", {0x48, 0x8d, 0x05, 0xf9, 0x8f, 0xff, 0xff, 0x90}, -ENOENT},
		{"another register", {0x48, 0x8d, 0x0d, 0xf9, 0x8f, 0xff, 0xff, 0xc3}, -ENOENT},
	};
#elif defined(__aarch64__)
	static const struct {
		const char *what;
		uint32_t code[4];
		int err;
	} cases[] = {
		{"as compiled", {0xb0ffffc0, 0x91000000, 0xd65f03c0}, 0},
		{"after bti c", {0xd503245f, 0xb0ffffc0, 0x91000000, 0xd65f03c0}, 0},
		{"no return", {0xb0ffffc0, 0x91000000, 0xd503201f}, -ENOENT},
		{"another register", {0xb0ffffc1, 0x91000000, 0xd65f03c0}, -ENOENT},
		{"another register in the sum", {0xb0ffffc0, 0x91000020, 0xd65f03c0}, -ENOENT},
		{"not a page", {0x30ffffc0, 0x91000000, 0xd65f03c0}, -ENOENT},
	};
#endif

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;

		open_target(&target);
		link_entries(&target, 0, 0);
		libunwind_jit_destroy(target.jit);
		target.jit = libunwind_jit_create(&target.fake.memory);
		fake_memory_map_bytes(&target.fake, 0x8000, cases[i].code, sizeof(cases[i].code));
		cr_expect(eq(int, libunwind_jit_add_function(target.jit, 0x8000), cases[i].err),
			  "%s", cases[i].what);
		read_lists(&target, 10);
		expect_code(target.map, code_addr(0), 10, cases[i].err ? "-" : "fn0");
		cr_expect(eq(int, libunwind_jit_add_function(target.jit, 0x8004), -EFAULT));
		close_target(&target);
	}
}

#if defined(__aarch64__)

/* The function of Debian 12's libunwind, at its address; objdump says 24310. */
Test(libunwind_jit, function_of_a_distribution)
{
	static const uint32_t code[] = {0xb0000100, 0x910c4000, 0xd65f03c0, 0};
	struct target target;

	open_target(&target);
	fake_memory_map_bytes(&target.fake, 0x20003190, code, sizeof(code));
	link_entries(&target, 0, 0);
	fake_memory_map(&target.fake, 0x20024310, 16);
	fake_memory_write_u64(&target.fake, 0x20024318, entry_addr(0));
	libunwind_jit_destroy(target.jit);
	target.jit = libunwind_jit_create(&target.fake.memory);
	cr_assert(zero(int, libunwind_jit_add_function(target.jit, 0x20003190)));
	read_lists(&target, 10);
	expect_code(target.map, code_addr(0), 10, "fn0");
	close_target(&target);
}

#endif
