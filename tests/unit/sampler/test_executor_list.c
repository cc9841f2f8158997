/* SPDX-License-Identifier: MIT */
#include "sampler/native/executor_list.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "tests/support/fake_python.h"

/* The executors on the list, and the code objects. */
enum { NR_EXECUTORS = 4, NR_CODES = 3, ARRAY_ITEMS = 3, AFTER_TYPE = 16 };

/* The first executor's machine code, and the distance from one to the next. */
enum { JIT_ADDR = 0x700000, JIT_STRIDE = 0x10000, JIT_BYTES = 0x2000 };

/* Time between looks, so long that the list is read again however long the last reading took. */
#define LATER_NS 3600000000000

struct listed {
	struct fake_python py;
	struct code_cache codes;
	struct executor_list list;
	remote_addr executor_addrs[NR_EXECUTORS];
	remote_addr code_addrs[NR_CODES];
	remote_addr array_addrs[NR_CODES];
	uint64_t now_ns;
};

static void put(struct listed *listed, remote_addr addr, uint64_t value)
{
	fake_memory_write_u64(&listed->py.fake, addr, value);
}

static void put_field(struct listed *listed, unsigned int executor, uint32_t field, uint64_t value)
{
	put(listed, listed->executor_addrs[executor] + AFTER_TYPE + field, value);
}

static remote_addr jit_addr(unsigned int executor)
{
	return JIT_ADDR + executor * (remote_addr)JIT_STRIDE;
}

/* Link nr executors into a list, beginning with first. */
static void link_executors(struct listed *listed, unsigned int first, unsigned int nr)
{
	for (unsigned int i = first; i < first + nr; i++) {
		put_field(listed, i, EXECUTOR_NEXT_AFTER_TYPE,
			  i + 1 < first + nr ? listed->executor_addrs[i + 1] : 0);
		put_field(listed, i, EXECUTOR_PREVIOUS_AFTER_TYPE,
			  i > first ? listed->executor_addrs[i - 1] : 0);
	}
}

static remote_addr make_type(struct listed *listed, const char *name)
{
	const uint32_t name_offset = listed->py.build.offsets.object.tp_name;
	const remote_addr addr = fake_python_alloc(&listed->py, name_offset + sizeof(uint64_t));

	put(listed, addr + name_offset,
	    fake_python_str(&listed->py, name) + listed->py.build.offsets.unicode.ascii_data);
	return addr;
}

static void make_executors(struct listed *listed, const char *type_name)
{
	const uint32_t type_offset = listed->py.build.offsets.object.ob_type;
	const remote_addr type_addr = make_type(listed, type_name);

	for (unsigned int i = 0; i < NR_EXECUTORS; i++) {
		listed->executor_addrs[i] = fake_python_alloc(
			&listed->py, AFTER_TYPE + EXECUTOR_JIT_CODE_AFTER_TYPE + sizeof(uint64_t));
		put(listed, listed->executor_addrs[i] + type_offset, type_addr);
		put_field(listed, i, EXECUTOR_JIT_CODE_AFTER_TYPE, jit_addr(i));
		put_field(listed, i, EXECUTOR_JIT_SIZE_AFTER_TYPE, JIT_BYTES);
	}
	link_executors(listed, 0, NR_EXECUTORS);
}

/* Give a code object an array of which only the last item is an executor. */
static void put_array(struct listed *listed, unsigned int code, unsigned int executor)
{
	const uint32_t field = listed->py.build.offsets.code.linetable + EXECUTORS_AFTER_LINETABLE;
	const remote_addr addr =
		fake_python_alloc(&listed->py, EXECUTOR_ARRAY_ITEMS + ARRAY_ITEMS * 8);

	fake_memory_write_u32(&listed->py.fake, addr + EXECUTOR_ARRAY_NR, ARRAY_ITEMS);
	put(listed, addr + EXECUTOR_ARRAY_ITEMS + (ARRAY_ITEMS - 1) * 8,
	    listed->executor_addrs[executor]);
	put(listed, listed->code_addrs[code] + field, addr);
	listed->array_addrs[code] = addr;
}

/* Code objects that are in the cache. The second one has an array with the third executor. */
static void listed_init(struct listed *listed, const char *type_name)
{
	*listed = (struct listed){.now_ns = 1000000000000};
	fake_python_init(&listed->py, 14);
	code_cache_init(&listed->codes, &listed->py.fake.memory, &listed->py.build);
	make_executors(listed, type_name);
	for (unsigned int i = 0; i < NR_CODES; i++) {
		struct code_clock clock;
		struct code *code;

		listed->code_addrs[i] =
			fake_python_code(&listed->py, &(struct fake_code){.name = "f"});
		clock = fake_python_clock(&listed->py, i + 1);
		cr_assert(zero(
			int, code_cache_get(&listed->codes, listed->code_addrs[i], &clock, &code)));
	}
	put_array(listed, 1, 2);
}

static void listed_done(struct listed *listed)
{
	executor_list_done(&listed->list);
	code_cache_done(&listed->codes);
	fake_python_done(&listed->py);
}

static bool has(struct listed *listed, remote_addr addr)
{
	return executor_list_has(&listed->list, &listed->codes, addr, listed->now_ns);
}

/* The executors whose code is known, as a bit mask. */
static unsigned int known(struct listed *listed)
{
	unsigned int sum = 0;

	listed->now_ns += LATER_NS;
	(void)has(listed, 1); /* reads the list again */
	for (unsigned int i = 0; i < NR_EXECUTORS; i++)
		if (has(listed, jit_addr(i)))
			sum |= 1u << i;
	return sum;
}

Test(executor_list, lists_all_of_an_interpreter)
{
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	cr_expect(eq(uint, known(&listed), 15));
	cr_expect(has(&listed, jit_addr(3) + JIT_BYTES - 1));
	cr_expect(not(has(&listed, jit_addr(3) + JIT_BYTES)));
	cr_expect(not(has(&listed, jit_addr(1) - 1)));
	listed_done(&listed);
}

Test(executor_list, lists_other_interpreters)
{
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	link_executors(&listed, 0, 2);
	link_executors(&listed, 2, 2);
	cr_expect(eq(uint, known(&listed), 12));
	put_array(&listed, 0, 1);
	put_array(&listed, 2, 3);
	cr_expect(eq(uint, known(&listed), 15));
	cr_expect(eq(u32, listed.list.nr_ranges, 4));
	listed_done(&listed);
}

/* An object of another type in an executor's memory. */
Test(executor_list, objects_of_other_types_are_skipped)
{
	struct listed listed;
	remote_addr other_addr;

	listed_init(&listed, "uop_executors");
	cr_expect(zero(uint, known(&listed)));
	listed_done(&listed);

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	cr_expect(eq(uint, known(&listed), 15));
	other_addr = make_type(&listed, EXECUTOR_TYPE_NAME);
	put(&listed, listed.executor_addrs[0] + listed.py.build.offsets.object.ob_type, other_addr);
	cr_expect(eq(uint, known(&listed), 14));
	listed_done(&listed);
}

/* An executor that is just being linked or unlinked. */
Test(executor_list, torn_list_yields_what_precedes_the_tear)
{
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	put_field(&listed, 3, EXECUTOR_PREVIOUS_AFTER_TYPE, listed.executor_addrs[0]);
	cr_expect(eq(uint, known(&listed), 7));
	put_field(&listed, 0, EXECUTOR_NEXT_AFTER_TYPE, 0);
	cr_expect(eq(uint, known(&listed), 6));
	put_field(&listed, 2, EXECUTOR_PREVIOUS_AFTER_TYPE, 0x1230);
	cr_expect(eq(uint, known(&listed), 4));
	listed_done(&listed);
}

/* A circular list ends at the limit. */
Test(executor_list, cyclic_list_is_bounded)
{
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	put_field(&listed, 3, EXECUTOR_NEXT_AFTER_TYPE, listed.executor_addrs[0]);
	put_field(&listed, 0, EXECUTOR_PREVIOUS_AFTER_TYPE, listed.executor_addrs[3]);
	cr_expect(eq(uint, known(&listed), 15));
	cr_expect(eq(u32, listed.list.nr_ranges, EXECUTOR_LIST_MAX));
	listed_done(&listed);
}

/* An executor whose code cannot be JIT code is left out. */
Test(executor_list, impossible_code_is_skipped)
{
	static const struct {
		uint64_t addr, nr_bytes;
		unsigned int known;
	} cases[] = {
		{JIT_ADDR + 8, JIT_BYTES, 14},
		{JIT_ADDR, UINT64_MAX - JIT_ADDR, 14},
		{JIT_ADDR, 1u << 30, 14},
		{UINT64_MAX - 4095, 8192, 14},
		{JIT_ADDR, 0, 14},
		{0, JIT_BYTES, 14},
		{JIT_ADDR, JIT_BYTES, 15},
	};
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_field(&listed, 0, EXECUTOR_JIT_CODE_AFTER_TYPE, cases[i].addr);
		put_field(&listed, 0, EXECUTOR_JIT_SIZE_AFTER_TYPE, cases[i].nr_bytes);
		cr_expect(eq(uint, known(&listed), cases[i].known), "case %zu", i);
	}
	/* An executor without compiled code is on the list like the others. */
	put_field(&listed, 1, EXECUTOR_JIT_CODE_AFTER_TYPE, 0);
	cr_expect(eq(uint, known(&listed), 13));
	listed_done(&listed);
}

Test(executor_list, arrays_of_invalid_size_are_refused)
{
	struct listed listed;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	fake_memory_write_u32(&listed.py.fake, listed.array_addrs[1] + EXECUTOR_ARRAY_NR, 2);
	cr_expect(zero(uint, known(&listed)));
	fake_memory_write_u32(&listed.py.fake, listed.array_addrs[1] + EXECUTOR_ARRAY_NR, 0x10001);
	cr_expect(zero(uint, known(&listed)));
	fake_memory_write_u32(&listed.py.fake, listed.array_addrs[1] + EXECUTOR_ARRAY_NR, 3);
	cr_expect(eq(uint, known(&listed), 15));
	listed.py.fake.error = -EPERM;
	cr_expect(zero(uint, known(&listed)));
	listed_done(&listed);
}

/* The list is read at once. After each unsuccessful read the wait doubles. */
Test(executor_list, unsuccessful_reads_double_the_wait)
{
	struct listed listed;
	uint64_t nr_calls;

	listed_init(&listed, EXECUTOR_TYPE_NAME);
	cr_expect(has(&listed, jit_addr(0)));
	nr_calls = listed.py.fake.nr_calls;
	listed.now_ns += REFRESH_MIN_WAIT_NS - 1;
	cr_expect(has(&listed, jit_addr(0)));
	cr_expect(not(has(&listed, 1)));
	cr_expect(eq(u64, listed.py.fake.nr_calls, nr_calls));
	listed.now_ns += 1;
	cr_expect(not(has(&listed, 1)));
	cr_expect(lt(u64, nr_calls, listed.py.fake.nr_calls));
	nr_calls = listed.py.fake.nr_calls;
	listed.now_ns += 2 * REFRESH_MIN_WAIT_NS - 1;
	cr_expect(not(has(&listed, 1)));
	cr_expect(eq(u64, listed.py.fake.nr_calls, nr_calls), "the wait has doubled");
	listed.now_ns += LATER_NS;
	cr_expect(not(has(&listed, 1)));
	cr_expect(lt(u64, nr_calls, listed.py.fake.nr_calls));
	listed_done(&listed);
}

Test(executor_list, recognises_executor_names)
{
	static const struct {
		const char *name;
		bool is;
	} cases[] = {
		{"py::jit:executor", true},
		{"py::jit_executor:<jit>", true},
		{"py::jit_shim:<jit>", true},
		{"py::jit:/a.py", false},
		{"py::jit:executor:/a.py", false},
		{"[jit]", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(int, executor_is_name(cases[i].name), cases[i].is), "%s",
			  cases[i].name);
}
