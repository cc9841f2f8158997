/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/objects/object.h"
#include "tests/support/fake_python.h"
#include "tests/support/reported_object.h"

static void begin(struct fake_python *py, struct code_cache *cache, uint32_t minor)
{
	fake_python_init(py, minor);
	code_cache_init(cache, &py->fake.memory, &py->build);
}

static void end(struct fake_python *py, struct code_cache *cache)
{
	code_cache_done(cache);
	fake_python_done(py);
}

static void expect_string(const char *got, const char *wanted)
{
	cr_expect(zero(int, strcmp(got, wanted)), "%s, not %s", got, wanted);
}

static void expect_name(struct code_cache *cache, remote_addr addr, const struct code_clock *clock,
			const char *name)
{
	struct code *code = NULL;

	cr_assert(zero(int, code_cache_get(cache, addr, clock, &code)), "%s", name);
	expect_string(code->function->qualname, name);
}

Test(code, knows_name_lines_and_size)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f",
									     .first_line = 10,
									     .frame_words = 33,
									     .nr_units = 6,
									     .first_traceable = 2});
		struct code_clock clock = fake_python_clock(&py, 1);
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		expect_string(code->function->qualname, "f");
		expect_string(code->function->path, "/f.py");
		cr_expect(eq(int, code->function->first_line, 10));
		cr_expect(eq(uint, code->frame_size_bytes, 33 * 8));
		remote_addr start = addr + py.build.offsets.code.code_adaptive;
		cr_expect(eq(u64, code->bytecode.start_addr, start));
		cr_expect(eq(u64, code->bytecode.end_addr, start + 12));
		cr_expect(eq(u64, code->bytecode.first_traceable_addr, start + 4));
		cr_expect(eq(int, code_line(&cache, code, start - 2), 10));
		for (int i = 0; i < 6; i++)
			cr_expect(eq(int, code_line(&cache, code, start + 2 * i), 10 + i));
		end(&py, &cache);
	}
	code_cache_done(NULL);
}

/* Replace an object by the code object "new". */
static void replace(struct fake_python *py, remote_addr addr)
{
	fake_python_code_free(py, addr);
	fake_python_code_at(py, addr, &(struct fake_code){.name = "new"});
}

Test(code, replaced_object_has_the_new_name)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "old"});
		struct code_clock clock = fake_python_clock(&py, 1);
		expect_name(&cache, addr, &clock, "old");
		replace(&py, addr);
		clock = fake_python_clock(&py, 2);
		expect_name(&cache, addr, &clock, "new");
		end(&py, &cache);
	}
}

Test(code, entry_is_valid_while_a_counter_is_unchanged)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
		struct code_clock clock = fake_python_clock(&py, 1);
		expect_name(&cache, addr, &clock, "f");
		uint64_t nr_calls = py.fake.nr_calls;
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		cr_expect(eq(u64, py.fake.nr_calls, nr_calls), "no read in the same tick");

		struct code_clock later = fake_python_clock(&py, 2);
		bool counters = later.has_generation || later.has_next_version;
		cr_expect(eq(int, code_cache_is_current(&cache, code, &later), counters));

		/* One made, none freed: the generation is unchanged. */
		py.next_version++;
		later = fake_python_clock(&py, 3);
		cr_expect(
			eq(int, code_cache_is_current(&cache, code, &later), later.has_generation));
		/* One freed, none made: the version is unchanged. */
		py.next_version--;
		py.generation++;
		later = fake_python_clock(&py, 4);
		cr_expect(eq(int, code_cache_is_current(&cache, code, &later),
			     later.has_next_version));
		/* Both have changed. */
		py.next_version++;
		later = fake_python_clock(&py, 5);
		cr_expect(not(code_cache_is_current(&cache, code, &later)));
		/* When versions have run out the counter stays 0 and is no evidence. */
		later.next_version = 0;
		code->checked.next_version = 0;
		cr_expect(not(code_cache_is_current(&cache, code, &later)));
		/* Another interpreter's counters are no evidence. */
		later = code->checked;
		later.interp_addr += 8;
		cr_expect(not(code_cache_is_current(&cache, code, &later)));
		end(&py, &cache);
	}
}

/* An unproven look may have read the counters before the object was made. */
Test(code, object_newer_than_the_counters_is_checked_again)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "old"});
		struct code_clock early = fake_python_clock(&py, 1);
		replace(&py, addr);
		expect_name(&cache, addr, &early, "new");
		cr_expect(not(cache.next_version_unusable));
		struct code_clock later = fake_python_clock(&py, 2);
		cr_assert(zero(int, code_cache_get(&cache, addr, &early, &code)));
		cr_expect(not(code_cache_is_current(&cache, code, &later)));
		fake_python_code_free(&py, addr);
		fake_python_code_at(&py, addr, &(struct fake_code){.name = "newer"});
		later = fake_python_clock(&py, 3);
		expect_name(&cache, addr, &later, "newer");
		end(&py, &cache);
	}
}

/* A counter far below the versions is not the counter. */
Test(code, implausible_counter_is_ignored)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		py.next_version = 1 << 20;
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "old"});
		struct code_clock clock = fake_python_clock(&py, 1);
		clock.next_version = 7;
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		cr_expect(eq(int, cache.next_version_unusable, clock.has_next_version));
		/* It is unchanged while objects come and go. */
		replace(&py, addr);
		clock = fake_python_clock(&py, 2);
		clock.next_version = 7;
		expect_name(&cache, addr, &clock, "new");
		end(&py, &cache);
	}
}

struct replacing {
	struct fake_python *py;
	remote_addr addr;
};

/* Replace the object once, before the second range of a read. */
static void replace_in_a_read(struct fake_memory *fake, size_t range_index)
{
	const struct replacing *replacing = fake->context;

	if (range_index != 1)
		return;
	fake->before_range = NULL;
	replace(replacing->py, replacing->addr);
}

/* The name would be the old object's and the rest the new one's, or the other way round. */
Test(code, object_replaced_during_the_read_is_refused)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "old"});
		struct code_clock clock = fake_python_clock(&py, 1);
		struct replacing replacing = {.py = &py, .addr = addr};
		py.fake.context = &replacing;
		py.fake.before_range = replace_in_a_read;
		cr_expect(eq(int, code_cache_get(&cache, addr, &clock, &code), -EAGAIN));
		cr_expect(eq(int, py.fake.before_range == NULL, 1), "the object was replaced");
		end(&py, &cache);
	}
}

/* Objects may live for microseconds, so a new one is read in as few calls as possible. */
Test(code, new_object_costs_two_reads)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;

		begin(&py, &cache, fake_stack_minors[v]);
		remote_addr known = fake_python_code(&py, &(struct fake_code){.name = "known"});
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
		struct code_clock clock = fake_python_clock(&py, 1);
		expect_name(&cache, known, &clock, "known"); /* also learns the type */
		uint64_t nr_calls = py.fake.nr_calls;
		bool bytecode_apart = py.build.offsets.code.bytecode != OFFSET_ABSENT;
		expect_name(&cache, addr, &clock, "f");
		cr_expect(eq(u64, py.fake.nr_calls - nr_calls, bytecode_apart ? 3 : 2));
		end(&py, &cache);
	}
}

/* An object is freed, and the next one gets the same memory for itself and its parts. */
Test(code, name_distinguishes_objects_with_equal_pointers)
{
	struct fake_python py;
	struct code_cache cache;
	struct code *code;
	uint64_t name_addr;

	begin(&py, &cache, 11);
	const struct py_offsets *offsets = &py.build.offsets;
	remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f1"});
	struct code_clock clock = fake_python_clock(&py, 1);
	expect_name(&cache, addr, &clock, "f1");
	cr_assert(zero(int, remote_memory_read_u64(&py.fake.memory, addr + offsets->code.qualname,
						   &name_addr)));
	for (uint64_t tick = 2; tick < 6; tick++) {
		char digit = (char)('0' + tick);
		char name[] = {'f', digit, '\0'};

		clock = fake_python_clock(&py, tick);
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		clock = fake_python_clock(&py, 10 * tick);
		fake_memory_write_u8(&py.fake, name_addr + offsets->unicode.ascii_data + 1,
				     (uint8_t)digit);
		cr_expect(not(code_cache_is_current(&cache, code, &clock)));
		expect_name(&cache, addr, &clock, name);
	}
	/* Neither the reference count nor the bytes after the str count. */
	fake_memory_write_u64(&py.fake, name_addr, 12345);
	fake_memory_map_bytes(&py.fake, name_addr + offsets->unicode.ascii_data + 3, "next", 4);
	clock = fake_python_clock(&py, 100);
	expect_name(&cache, addr, &clock, "f5");
	cr_expect(code_cache_is_current(&cache, code, &clock));
	end(&py, &cache);
}

/* A new function of the same name, from another file or with other lines. */
Test(code, path_and_lines_distinguish_objects_with_equal_names)
{
	struct fake_python py;
	struct code_cache cache;
	struct code *code;
	uint64_t path_addr, table_addr;

	begin(&py, &cache, 11);
	const struct py_offsets *offsets = &py.build.offsets;
	remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f1"});
	struct code_clock clock = fake_python_clock(&py, 1);
	cr_assert(zero(int, remote_memory_read_u64(&py.fake.memory, addr + offsets->code.filename,
						   &path_addr)));
	cr_assert(zero(int, remote_memory_read_u64(&py.fake.memory, addr + offsets->code.linetable,
						   &table_addr)));
	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	cr_expect(eq(str, (char *)code->function->path, (char *)"/f1.py"));
	fake_memory_write_u8(&py.fake, path_addr + offsets->unicode.ascii_data + 2, '2');
	clock = fake_python_clock(&py, 2);
	cr_expect(not(code_cache_is_current(&cache, code, &clock)));
	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	cr_expect(eq(str, (char *)code->function->path, (char *)"/f2.py"));
	cr_assert(lt(sz, 0, code->lines.table_bytes));
	const uint8_t first = code->lines.table[0] ^ 1;

	fake_memory_write_u8(&py.fake, table_addr + offsets->bytes.ob_sval, first);
	clock = fake_python_clock(&py, 3);
	cr_expect(not(code_cache_is_current(&cache, code, &clock)));
	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	cr_expect(eq(u8, code->lines.table[0], first));
	clock = fake_python_clock(&py, 4);
	cr_expect(not(code_cache_is_current(&cache, code, &clock)));
	const uint32_t nr_loads = code->nr_loads;

	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	cr_expect(eq(uint, code->nr_loads, nr_loads), "the unchanged object is not loaded again");
	end(&py, &cache);
}

/* When versions have run out, new objects have version 0, and only the generation is left. */
Test(code, generation_works_after_versions_ran_out)
{
	for (uint32_t minor = 14; minor <= 15; minor++) {
		struct fake_python py;
		struct code_cache cache;

		begin(&py, &cache, minor);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "old"});
		py.next_version = 0;
		struct code_clock clock = fake_python_clock(&py, 1);
		expect_name(&cache, addr, &clock, "old");
		replace(&py, addr);
		py.next_version = 0;
		struct code_clock later = fake_python_clock(&py, 2);
		expect_name(&cache, addr, &later, "new");
		end(&py, &cache);
	}
}

Test(code, non_code_objects_are_remembered)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, fake_stack_minors[v]);
		/* The first code object's type is known by name, later ones' by address. */
		struct code_clock clock = fake_python_clock(&py, 1);
		cr_expect(eq(int, code_cache_get(&cache, py.none_addr, &clock, &code), -EBADMSG));
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
		clock = fake_python_clock(&py, 2);
		expect_name(&cache, addr, &clock, "f");
		cr_expect(eq(int, code_cache_get(&cache, py.none_addr, &clock, &code), -EBADMSG));
		cr_expect(eq(int, code_cache_get(&cache, addr + 4, &clock, &code), -EBADMSG));
		cr_expect(eq(int, code_cache_get(&cache, 0x1000, &clock, &code), -EFAULT));
		uint64_t nr_calls = py.fake.nr_calls;
		cr_expect(eq(int, code_cache_get(&cache, py.none_addr, &clock, &code), -EBADMSG));
		cr_expect(eq(int, code_cache_get(&cache, 0x1000, &clock, &code), -EBADMSG));
		cr_expect(eq(u64, py.fake.nr_calls, nr_calls));
		/* A code object may be made where there was none. */
		remote_addr later_addr = fake_python_alloc(&py, 512);
		cr_expect(eq(int, code_cache_get(&cache, later_addr, &clock, &code), -EBADMSG));
		fake_python_code_at(&py, later_addr, &(struct fake_code){.name = "late"});
		py.generation++;
		clock = fake_python_clock(&py, 3);
		expect_name(&cache, later_addr, &clock, "late");
		end(&py, &cache);
	}
}

Test(code, impossible_numbers_are_refused)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;

		fake_python_init(&py, fake_stack_minors[v]);
		const struct py_offsets *offsets = &py.build.offsets;
		const struct {
			char name[32];
			uint32_t offset;
			uint64_t value;
			unsigned int width;
		} cases[] = {
			{"bytecode of 2^63 units", offsets->code.ob_size, 1ull << 63, 8},
			{"bytecode of 2^31 units", offsets->code.ob_size, 1ull << 31, 8},
			{"frame size 0", offsets->code.framesize, 0, 4},
			{"frame size -1", offsets->code.framesize, UINT32_MAX, 4},
			{"locals -1", offsets->code.nlocalsplus, UINT32_MAX, 4},
			{"stack of 2 GiB", offsets->code.stacksize, INT32_MAX, 4},
			{"no name", offsets->code.qualname, 0, 8},
			{"no file", offsets->code.filename, 0x1001, 8},
			{"no table", offsets->code.linetable, UINT64_MAX, 8},
		};

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct code_cache cache;
			struct code *code;
			bool framesize = offsets->code.framesize != OFFSET_ABSENT;

			if (cases[i].offset == OFFSET_ABSENT ||
			    (framesize && (cases[i].offset == offsets->code.nlocalsplus ||
					   cases[i].offset == offsets->code.stacksize)))
				continue;
			code_cache_init(&cache, &py.fake.memory, &py.build);
			remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
			fake_memory_write(&py.fake, addr + cases[i].offset, &cases[i].value,
					  cases[i].width);
			struct code_clock clock = fake_python_clock(&py, i + 1);
			cr_expect(ne(int, code_cache_get(&cache, addr, &clock, &code), 0), "%s",
				  cases[i].name);
			code_cache_done(&cache);
		}
		fake_python_done(&py);
	}
}

/* A location table with one entry per unit, each one line further; free() it. */
static uint8_t *make_table(size_t nr_units)
{
	uint8_t *table = malloc(2 * nr_units);

	for (size_t i = 0; i < nr_units; i++) {
		table[2 * i] = 0x80 | 13 << 3;
		table[2 * i + 1] = i ? 1 << 1 : 0;
	}
	return table;
}

/* A code object with another line table, of nr_units units that cannot be read. */
static remote_addr code_with_table(struct fake_python *py, remote_addr table_addr, size_t nr_units)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_code(py, &(struct fake_code){.name = "f"});

	fake_memory_write_u64(&py->fake, addr + offsets->code.linetable, table_addr);
	fake_memory_write_u64(&py->fake, addr + offsets->code.ob_size, nr_units);
	return addr;
}

Test(code, huge_function_has_all_its_lines)
{
	enum { NR_UNITS = 100000 };
	uint8_t *table = make_table(NR_UNITS);
	struct fake_python py;
	struct code_cache cache;
	struct code *code;

	begin(&py, &cache, 15);
	remote_addr table_addr = fake_python_bytes(&py, table, 2 * NR_UNITS);
	remote_addr addr = code_with_table(&py, table_addr, NR_UNITS + 1000);
	struct code_clock clock = fake_python_clock(&py, 1);
	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	for (int i = 0; i < NR_UNITS; i++)
		cr_assert(
			eq(int, code_line(&cache, code, code->bytecode.start_addr + 2 * i), 1 + i));
	cr_expect(zero(int, code_line(&cache, code, code->bytecode.end_addr - 2)),
		  "no line after the table");
	end(&py, &cache);
	free(table);
}

/* Many code objects that share one large line table. */
Test(code, total_size_of_tables_is_bounded)
{
	enum { TABLE_BYTES = 10 << 20, NR_CODES = 30 };
	uint8_t *table = make_table(TABLE_BYTES / 2);
	struct fake_python py;
	struct code_cache cache;
	struct code *code;
	int nr_known = 0;

	begin(&py, &cache, 15);
	remote_addr table_addr = fake_python_bytes(&py, table, TABLE_BYTES);
	remote_addr addrs[NR_CODES];
	for (int i = 0; i < NR_CODES; i++)
		addrs[i] = code_with_table(&py, table_addr, 100);
	struct code_clock clock = fake_python_clock(&py, 1);
	for (int i = 0; i < NR_CODES; i++) {
		int err = code_cache_get(&cache, addrs[i], &clock, &code);

		cr_expect(err == 0 || err == -E2BIG);
		nr_known += !err;
	}
	cr_expect(le(sz, (size_t)nr_known * TABLE_BYTES, CODE_TABLES_MAX_BYTES));
	cr_expect(lt(int, 1, nr_known));

	/* An object that was refused in one tick is loaded in the next. */
	for (int i = 0; i < NR_CODES; i++) {
		if (code_cache_get(&cache, addrs[i], &clock, &code) == -E2BIG)
			code_cache_clear_if_full(&cache);
		cr_assert(zero(int, code_cache_get(&cache, addrs[i], &clock, &code)));
		cr_expect(eq(int, code_line(&cache, code, code->bytecode.start_addr + 20), 11));
	}
	end(&py, &cache);
	free(table);
}

/* The limit includes the decoded lines. */
Test(code, oversized_table_gives_no_lines)
{
	enum { NR_UNITS = 3 << 20 };
	uint8_t *table = make_table(NR_UNITS);
	struct fake_python py;
	struct code_cache cache;
	struct code *code;

	begin(&py, &cache, 14);
	remote_addr table_addr = fake_python_bytes(&py, table, 2 * NR_UNITS);
	remote_addr addr = code_with_table(&py, table_addr, NR_UNITS);
	struct code_clock clock = fake_python_clock(&py, 1);
	cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
	expect_string(code->function->qualname, "f");
	cr_expect(zero(int, code_line(&cache, code, code->bytecode.start_addr)));
	cr_expect(zero(sz, cache.table_bytes));
	end(&py, &cache);
	free(table);
}

/* A str of the maximum length, all lone surrogates, each of which takes six bytes as text. */
static remote_addr long_str(struct fake_python *py)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr =
		fake_python_alloc(py, offsets->unicode.compact_data + 2 * STRING_MAX_CHARS);

	fake_memory_write_u64(&py->fake, addr + offsets->unicode.length, STRING_MAX_CHARS);
	/* kind 2, compact */
	fake_memory_write_u32(&py->fake, addr + offsets->unicode.state,
			      (2u | 1u << 3) << offsets->unicode.state_kind_shift);
	for (size_t i = 0; i < STRING_MAX_CHARS; i++)
		fake_memory_write_u16(&py->fake, addr + offsets->unicode.compact_data + 2 * i,
				      0xdc80);
	return addr;
}

/* Endless code objects, all with the same long name. Beyond the limit they share one. */
Test(code, total_size_of_names_is_bounded)
{
	enum { NAME_BYTES = 6 * STRING_MAX_CHARS, NR_CODES = FUNCTIONS_MAX_BYTES / NAME_BYTES };
	struct fake_python py;
	struct code_cache cache;
	struct code *code = NULL;
	int nr_known = 0;

	begin(&py, &cache, 15);
	remote_addr name_addr = long_str(&py);
	for (int i = 0; i < NR_CODES; i++) {
		remote_addr addr = fake_python_code(
			&py, &(struct fake_code){.name = "f", .first_line = i + 1});
		struct code_clock clock = fake_python_clock(&py, i + 1);

		fake_memory_write_u64(&py.fake, addr + py.build.offsets.code.qualname, name_addr);
		fake_memory_write_u64(&py.fake, addr + py.build.offsets.code.filename, name_addr);
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		nr_known += !function_is_overflow(code->function);
	}
	cr_expect(eq(str, (char *)code->function->qualname, (char *)FUNCTION_TABLE_OVERFLOW));
	cr_expect(zero(i32, code_line(&cache, code, code->bytecode.start_addr)));
	cr_expect(lt(int, 1000, nr_known));
	cr_expect(lt(int, nr_known, NR_CODES));
	cr_expect(le(sz, cache.own_functions.nr_bytes, FUNCTIONS_MAX_BYTES + 3 * NAME_BYTES));
	end(&py, &cache);
}

/* Endless code at new addresses. Objects that are not used again are dropped. */
Test(code, unused_code_is_dropped)
{
	enum { NR_TURNS = 5, NR_USED = 10 };
	struct fake_python py;
	struct code_cache cache;
	struct code *code, *listed = NULL, *used[NR_USED];
	remote_addr used_addrs[NR_USED];
	int nr_drops = 0;

	begin(&py, &cache, 15);
	for (uint32_t i = 0; i < NR_TURNS * DROP_AFTER_NEW_CODES; i++) {
		remote_addr addr =
			fake_python_code(&py, &(struct fake_code){.name = "f", .nr_units = 4});
		struct code_clock clock = fake_python_clock(&py, i + 1);

		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		if (i == 0)
			listed = code;
		else if (i <= NR_USED)
			used_addrs[i - 1] = addr, used[i - 1] = code;
		for (uint32_t u = 0; i > NR_USED && u < NR_USED; u++) {
			cr_assert(zero(int, code_cache_get(&cache, used_addrs[u], &clock, &code)));
			cr_assert(eq(ptr, code, used[u]));
		}
		if (code_cache_should_drop(&cache)) {
			listed->in_use = true;
			code_cache_drop_unused(&cache);
			nr_drops++;
			cr_expect(eq(sz, cache.codes.nr_used, NR_USED + 1));
			cr_expect(eq(ptr, addr_map_get(&cache.codes, listed->addr), listed));
		}
	}
	cr_expect(ge(int, nr_drops, NR_TURNS - 1));
	cr_expect(eq(uint, cache.own_functions.nr_functions, 1), "functions are kept");
	end(&py, &cache);
}

/* Code as the target's interrupt reported it, whatever is at its address now. */

struct reporter {
	struct code_reporter reporter;
	remote_addr forgotten; /* the last one forgotten */
};

static void forget(struct code_reporter *reporter, remote_addr code_addr)
{
	((struct reporter *)reporter)->forgotten = code_addr;
}

static void expect_forgotten(struct reporter *reporter, remote_addr code_addr)
{
	cr_expect(eq(u64, reporter->forgotten, code_addr));
	reporter->forgotten = 0;
}

static int report(const struct fake_python *py, struct code_cache *cache, remote_addr addr,
		  uint64_t identity, size_t max_bytes)
{
	static struct reported_object object;
	const struct code_clock clock = {.tick = 1, .frames_are_older = true};

	reported_object_read(&object, py, addr, identity, max_bytes);
	return code_cache_add_reported(cache, &object.reported, &clock);
}

static const uint32_t reported_minors[] = {8, 11, 12, 15};
enum { NR_REPORTED_MINORS = 4 };

Test(code, freed_code_is_known_by_its_report)
{
	enum { BEFORE = 5, AFTER = 7, OTHER = 9 };

	for (size_t i = 0; i < NR_REPORTED_MINORS; i++) {
		struct fake_python py;
		struct reporter reporter = {{forget}, 0};
		struct code_cache cache;
		struct code *code, *same;

		begin(&py, &cache, reported_minors[i]);
		cache.reporter = &reporter.reporter;
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "before"});
		cr_assert(zero(int, report(&py, &cache, addr, BEFORE, REPORTED_TEXT_BYTES)));
		fake_python_code_free(&py, addr);
		fake_python_code_at(&py, addr, &(struct fake_code){.name = "after"});
		cr_assert(zero(int, code_cache_get_reported(&cache, addr, BEFORE, &code)));
		expect_string(code->function->qualname, "before");
		cr_expect(eq(int, code_line(&cache, code, code->bytecode.start_addr), 1));
		/* An unknown object has to be reported first. */
		expect_forgotten(&reporter, 0);
		cr_expect(eq(int, code_cache_get_reported(&cache, addr, OTHER, &same), -EAGAIN));
		expect_forgotten(&reporter, addr);
		cr_expect(eq(int, code_cache_get_reported(&cache, addr, 0, &same), -EBADMSG));
		/* A look that finds another object at the address forgets the reported one. */
		struct code_clock clock = fake_python_clock(&py, 2);
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		expect_string(code->function->qualname, "after");
		expect_forgotten(&reporter, addr);
		cr_expect(eq(int, code_cache_get_reported(&cache, addr, BEFORE, &same), -EAGAIN));
		/* An object found by a look and then reported is one object. */
		const uint32_t nr_loads = code->nr_loads;
		cr_assert(zero(int, report(&py, &cache, addr, AFTER, REPORTED_TEXT_BYTES)));
		cr_assert(zero(int, code_cache_get_reported(&cache, addr, AFTER, &same)));
		cr_expect(eq(ptr, code, same));
		cr_expect(eq(uint, code->nr_loads, nr_loads));
		end(&py, &cache);
	}
}

Test(code, dropped_code_is_reported_again)
{
	struct fake_python py;
	struct reporter reporter = {{forget}, 0};
	struct code_cache cache;
	struct code *code;
	remote_addr unused_addr = 0;

	begin(&py, &cache, 15);
	cache.reporter = &reporter.reporter;
	for (uint32_t i = 0; i < DROP_AFTER_NEW_CODES; i++) {
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});

		cr_assert(zero(int, report(&py, &cache, addr, i + 1, REPORTED_TEXT_BYTES)));
		cr_assert(zero(int, code_cache_get_reported(&cache, addr, i + 1, &code)));
		code->in_use = i > 0;
		unused_addr = i ? unused_addr : addr;
	}
	cr_assert(code_cache_should_drop(&cache));
	code_cache_drop_unused(&cache);
	expect_forgotten(&reporter, unused_addr);
	end(&py, &cache);
}

/* A str stays the same when its UTF-8 form is made, and so does its code. */
Test(code, utf8_form_does_not_change_the_identity)
{
	for (size_t i = 0; i < NR_REPORTED_MINORS; i++) {
		struct fake_python py;
		struct code_cache cache;
		struct code *code;

		begin(&py, &cache, reported_minors[i]);
		const struct py_offsets *offsets = &py.build.offsets;
		/* Long enough that a non-ASCII str, whose head is longer, fits. */
		remote_addr addr = fake_python_code(
			&py, &(struct fake_code){.name = "a_function_with_a_long_name_of_its_own"});
		struct reported_object object;
		reported_object_read(&object, &py, addr, 1, REPORTED_TEXT_BYTES);
		const remote_addr text_addr = field_u64(object.object, offsets->code.qualname);
		uint64_t state;
		cr_assert(zero(int,
			       remote_memory_read_u64(&py.fake.memory,
						      text_addr + offsets->unicode.state, &state)));
		state &= ~(16ull << offsets->unicode.state_kind_shift);
		fake_memory_write_u64(&py.fake, text_addr + offsets->unicode.length, 1);
		fake_memory_write_u64(&py.fake, text_addr + offsets->unicode.state, state);
		fake_memory_write_u64(&py.fake, text_addr + offsets->unicode.compact_data, 'g');
		cr_assert(zero(int, report(&py, &cache, addr, 1, REPORTED_TEXT_BYTES)));
		cr_assert(zero(int, code_cache_get_reported(&cache, addr, 1, &code)));
		expect_string(code->function->qualname, "g");
		const uint32_t nr_loads = code->nr_loads;
		for (uint32_t offset = offsets->unicode.state + 8;
		     offset < offsets->unicode.compact_data; offset += 8)
			fake_memory_write_u64(&py.fake, text_addr + offset, 12345);
		struct code_clock clock = fake_python_clock(&py, 2);
		cr_assert(zero(int, code_cache_get(&cache, addr, &clock, &code)));
		cr_expect(eq(uint, code->nr_loads, nr_loads), "3.%u", reported_minors[i]);
		end(&py, &cache);
	}
}

/*
 * A text too long to be reported whole is completed from the target's memory, if it begins the
 * same.
 */
Test(code, long_names_are_completed_from_memory)
{
	static const char name[] = "a_function_whose_name_is_longer_than_what_is_reported_of_it";
	enum { REPORTED_BYTES = 64 };

	for (size_t i = 0; i < NR_REPORTED_MINORS; i++) {
		static struct reported_object object;
		struct fake_python py;
		struct code_cache cache;
		struct code *code;
		const struct code_clock clock = {.tick = 1, .frames_are_older = true};

		begin(&py, &cache, reported_minors[i]);
		const struct py_offsets *offsets = &py.build.offsets;
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = name});
		reported_object_read(&object, &py, addr, 1, REPORTED_BYTES);
		cr_assert(not(object.reported.texts[CODE_QUALNAME].is_whole));
		const remote_addr text_addr = field_u64(object.object, offsets->code.qualname);
		/* The hash was computed after the report. */
		fake_memory_write_u64(&py.fake, text_addr + offsets->unicode.length + 8, 12345);
		cr_assert(zero(int, code_cache_add_reported(&cache, &object.reported, &clock)));
		cr_assert(zero(int, code_cache_get_reported(&cache, addr, 1, &code)));
		expect_string(code->function->qualname, name);
		cache.tables_full = true;
		cr_assert(code_cache_clear_if_full(&cache));
		/* Another text is at the address now. */
		fake_memory_write_u64(&py.fake, text_addr + offsets->unicode.ascii_data, 0x6162);
		object.reported.identity = 2;
		cr_expect(eq(int, code_cache_add_reported(&cache, &object.reported, &clock),
			     -EFAULT));
		cr_expect(eq(int, code_cache_get_reported(&cache, addr, 2, &code), -EAGAIN));
		end(&py, &cache);
	}
}

Test(code, broken_reports_are_refused)
{
	static struct reported_object object;
	struct fake_python py;
	struct code_cache cache;
	struct code *code;
	const struct code_clock clock = {.tick = 1, .frames_are_older = true};

	begin(&py, &cache, 15);
	const struct py_offsets *offsets = &py.build.offsets;
	remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
	cr_assert(zero(int, report(&py, &cache,
				   fake_python_code(&py, &(struct fake_code){.name = "other"}), 1,
				   REPORTED_TEXT_BYTES)));
	reported_object_read(&object, &py, addr, 1, REPORTED_TEXT_BYTES);
	object.reported.texts[CODE_LINETABLE].nr_bytes = 0;
	const uint64_t nr_ranges = py.fake.nr_ranges;
	cr_expect(eq(int, code_cache_add_reported(&cache, &object.reported, &clock), -EAGAIN));
	cr_expect(eq(u64, py.fake.nr_ranges, nr_ranges + 1), "it is brought in");
	cr_expect(eq(int, code_cache_get_reported(&cache, addr, 1, &code), -EAGAIN));
	reported_object_read(&object, &py, addr, 1, REPORTED_TEXT_BYTES);
	memset(object.object + offsets->object.ob_type, 1, sizeof(uint64_t));
	cr_expect(eq(int, code_cache_add_reported(&cache, &object.reported, &clock), -EBADMSG));
	cr_expect(eq(int, code_cache_get_reported(&cache, addr, 1, &code), -EBADMSG));
	/* Now there is a code object in its place. */
	cr_assert(zero(int, report(&py, &cache, addr, 2, REPORTED_TEXT_BYTES)));
	cr_expect(eq(int, code_cache_get_reported(&cache, addr, 3, &code), -EAGAIN));
	cr_expect(zero(int, code_cache_get_reported(&cache, addr, 2, &code)));
	end(&py, &cache);
}
