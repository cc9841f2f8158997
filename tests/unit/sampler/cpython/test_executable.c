/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/executable.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/look_memory.h"
#include "tests/support/fake_objects.h"

/* of tp_flags */
enum { HEAP_TYPE = 1 << 9 };

static const uint32_t minors[] = {
	11, 12, 13, 14, 15, FAKE_MAIN, FAKE_FREE_THREADED + 15, FAKE_FREE_THREADED + FAKE_MAIN,
};
enum { NR_MINORS = sizeof(minors) / sizeof(*minors) };

static void begin(struct fake_python *py, struct code_cache *codes, uint32_t minor)
{
	fake_python_init(py, minor);
	code_cache_init(codes, &py->fake.memory, &py->build);
}

static void end(struct fake_python *py, struct code_cache *codes)
{
	code_cache_done(codes);
	fake_python_done(py);
}

static remote_addr c_string(struct fake_python *py, const char *text)
{
	remote_addr addr = fake_python_alloc(py, strlen(text) + 1);

	fake_memory_write(&py->fake, addr, text, strlen(text) + 1);
	return addr;
}

static remote_addr make_type(struct fake_python *py, const char *name, uint64_t flags)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, 400);

	fake_memory_write_u64(&py->fake, addr + offsets->object.tp_name, c_string(py, name));
	fake_memory_write_u64(&py->fake, addr + offsets->type.flags, flags);
	return addr;
}

static void set_type(struct fake_python *py, remote_addr addr, remote_addr type_addr)
{
	fake_memory_write_u64(&py->fake, addr + py->build.offsets.object.ob_type, type_addr);
}

static remote_addr make_int(struct fake_python *py, uint64_t value)
{
	remote_addr addr = fake_int(py, value);

	set_type(py, addr, make_type(py, "int", 0));
	return addr;
}

static remote_addr make_tuple(struct fake_python *py, uint64_t size, remote_addr name,
			      remote_addr path, remote_addr line)
{
	uint64_t words[6] = {size};
	uint64_t *items = words + py->build.traits.tuple_items_after_type / 8;

	items[0] = name;
	items[1] = path;
	items[2] = line;
	return fake_object(py, "tuple", words, 6);
}

static void expect_named(struct fake_python *py, struct code_cache *codes, remote_addr addr,
			 uint64_t tick, const char *name)
{
	struct code_clock clock = fake_python_clock(py, tick);
	struct code *code = NULL;

	cr_assert(zero(int, executable_get(codes, addr, &clock, &code)), "3.%u: %s", py->minor,
		  name);
	cr_assert(code != NULL, "3.%u: %s", py->minor, name);
	cr_expect(zero(int, strcmp(code->function->qualname, name)), "3.%u: %s, not %s", py->minor,
		  code->function->qualname, name);
}

static remote_addr builtin(struct fake_python *py, remote_addr name_addr, remote_addr self_addr,
			   remote_addr module_addr)
{
	remote_addr ml_addr = fake_python_alloc(py, 32);
	const uint64_t words[] = {ml_addr, self_addr, module_addr};

	fake_memory_write_u64(&py->fake, ml_addr + METHOD_DEF_NAME, name_addr);
	return fake_object(py, "builtin_function_or_method", words, 3);
}

Test(executable, names_each_kind_of_object)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;
		struct code_clock clock;
		struct code *code;

		begin(&py, &codes, minors[v]);
		remote_addr str = fake_python_str(&py, "join");
		remote_addr list = fake_object(&py, "list", NULL, 0);
		remote_addr sleep =
			builtin(&py, c_string(&py, "sleep"), 0, fake_python_str(&py, "time"));
		remote_addr run = fake_python_code(&py, &(struct fake_code){.name = "Class.run"});
		const uint64_t function_words[] = {0, 0, 0, 0, run};
		remote_addr function = fake_object(&py, "function", function_words, 5);
		const uint64_t descriptor_words[] = {make_type(&py, "str", 0), str};

		fake_memory_write_u64(&py.fake, py.code_type_addr + py.build.offsets.type.flags, 0);
		expect_named(&py, &codes, sleep, 1, "time.sleep");
		expect_named(
			&py, &codes,
			builtin(&py, c_string(&py, "len"), 0, fake_python_str(&py, "builtins")), 1,
			"len");
		expect_named(&py, &codes, builtin(&py, c_string(&py, "append"), list, 0), 1,
			     "list.append");
		expect_named(&py, &codes,
			     fake_object(&py, "method_descriptor", descriptor_words, 2), 1,
			     "str.join");
		expect_named(&py, &codes, fake_object(&py, "method", &function, 1), 1, "Class.run");
		expect_named(&py, &codes, fake_object(&py, "method", &sleep, 1), 1, "time.sleep");
		expect_named(&py, &codes, fake_object(&py, "mod.Frame", NULL, 0), 1, "<mod.Frame>");
		expect_named(&py, &codes,
			     make_tuple(&py, 3, str, fake_python_str(&py, "/f.pyx"),
					make_int(&py, 1ull << 30)),
			     1, "join");

		clock = fake_python_clock(&py, 1);
		cr_assert(zero(int, executable_get(&codes, py.none_addr, &clock, &code)));
		cr_expect(code == NULL);
		cr_expect(executable_is_hidden(&codes, py.none_addr));
		cr_assert(zero(int, executable_get(&codes, run, &clock, &code)));
		cr_assert(code != NULL);
		cr_expect(not(code->is_not_code));
		cr_expect(eq(u64, code->addr, run));
		end(&py, &codes);
	}
}

Test(executable, tuple_has_line_and_path)
{
	static const uint64_t lines[] = {0, 1, 1234567, (1u << 30) + 5, INT32_MAX};

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;

		begin(&py, &codes, minors[v]);
		for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
			struct code_clock clock = fake_python_clock(&py, 1);
			struct code *code;
			remote_addr tuple =
				make_tuple(&py, 3, fake_python_str(&py, "f"),
					   fake_python_str(&py, "/f.pyx"), make_int(&py, lines[i]));

			cr_assert(zero(int, executable_get(&codes, tuple, &clock, &code)));
			cr_expect(eq(i32, code_line(&codes, code, 0), (int32_t)lines[i]));
			cr_expect(zero(int, strcmp(code->function->path, "/f.pyx")));
		}
		end(&py, &codes);
	}
}

/* A tuple other than (str, str, int) is shown by its type, and not read further. */
Test(executable, other_tuples_are_named_by_their_type)
{
	static const uint64_t sizes[] = {0, 2, 4, 1ull << 60, UINT64_MAX};

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;

		begin(&py, &codes, minors[v]);
		remote_addr str = fake_python_str(&py, "f");
		remote_addr line = make_int(&py, 3);

		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			expect_named(&py, &codes, make_tuple(&py, sizes[i], str, str, line), 1,
				     "<tuple>");
		expect_named(&py, &codes, make_tuple(&py, 3, line, str, line), 1, "<tuple>");
		expect_named(&py, &codes, make_tuple(&py, 3, str, py.none_addr, line), 1,
			     "<tuple>");
		expect_named(&py, &codes, make_tuple(&py, 3, str, str, str), 1, "<tuple>");
		expect_named(&py, &codes, make_tuple(&py, 3, str, str, 0x1234560), 1, "<tuple>");
		expect_named(&py, &codes, make_tuple(&py, 3, str, str, make_int(&py, 1ull << 31)),
			     1, "<tuple>");
		end(&py, &codes);
	}
}

/* The program's own classes may have any name. Their instances are not read as something else. */
Test(executable, types_with_only_a_known_name_are_unknown)
{
	static const char *const names[] = {"NoneType", "code", "tuple", "function", "method"};

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;

		begin(&py, &codes, minors[v]);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			remote_addr addr = fake_object(&py, "", NULL, 0);
			char expected[32];

			(void)snprintf(expected, sizeof(expected), "<%s>", names[i]);
			set_type(&py, addr, make_type(&py, names[i], HEAP_TYPE));
			expect_named(&py, &codes, addr, 1, expected);
		}
		end(&py, &codes);
	}
}

Test(executable, unterminated_name_is_cut)
{
	struct fake_python py;
	struct code_cache codes;
	char expected[EXECUTABLE_NAME_MAX_BYTES + 8];

	begin(&py, &codes, 15);
	remote_addr name_addr = fake_python_alloc(&py, 1 << 16);

	for (size_t i = 0; i < 1 << 16; i++)
		fake_memory_write_u8(&py.fake, name_addr + i, 'x');
	memset(expected, 'x', EXECUTABLE_NAME_MAX_BYTES);
	memcpy(expected + EXECUTABLE_NAME_MAX_BYTES, "\xe2\x80\xa6", 4);
	expect_named(&py, &codes, builtin(&py, name_addr, 0, 0), 1, expected);
	/* A name cut off by the end of its mapping is none. */
	name_addr = fake_python_alloc(&py, 4);
	fake_memory_write(&py.fake, name_addr, "abcd", 4);
	expect_named(&py, &codes, builtin(&py, name_addr, 0, 0), 1, "<builtin_function_or_method>");
	end(&py, &codes);
}

Test(executable, invalid_pointers_are_no_objects)
{
	static const remote_addr nowhere[] = {1,	  8,	     0x12345678, UINT64_MAX - 7,
					      UINT64_MAX, 1ull << 63};

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;
		struct code_clock clock;
		struct code *code;

		begin(&py, &codes, minors[v]);
		clock = fake_python_clock(&py, 1);
		for (size_t i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++) {
			int err = executable_get(&codes, nowhere[i], &clock, &code);

			cr_expect(err == -EFAULT || err == -EBADMSG);
			remote_addr addr = fake_object(&py, "", NULL, 0);

			set_type(&py, addr, nowhere[i]);
			err = executable_get(&codes, addr, &clock, &code);
			cr_expect(err == -EFAULT || err == -EBADMSG);
			expect_named(&py, &codes,
				     fake_object(&py, "builtin_function_or_method",
						 (uint64_t[]){nowhere[i], nowhere[i], nowhere[i]},
						 3),
				     1, "<builtin_function_or_method>");
			expect_named(&py, &codes,
				     fake_object(&py, "method", (uint64_t[]){nowhere[i]}, 1), 1,
				     "<method>");
		}
		/* A method of itself. */
		remote_addr method = fake_object(&py, "method", (uint64_t[]){0}, 1);

		fake_memory_write_u64(&py.fake, method + py.build.offsets.object.ob_type + 8,
				      method);
		expect_named(&py, &codes, method, 1, "<method>");
		end(&py, &codes);
	}
}

/* The name is that of the object at the time of the look, never the previous one's. */
Test(executable, replaced_object_has_the_new_name)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;

		begin(&py, &codes, minors[v]);
		remote_addr first = fake_python_str(&py, "first");
		remote_addr second = fake_python_str(&py, "secnd");
		remote_addr tuple = make_tuple(&py, 3, first, first, make_int(&py, 3));
		const uint32_t item = py.build.offsets.object.ob_type + 8 +
				      py.build.traits.tuple_items_after_type;

		for (uint64_t tick = 1; tick < 4; tick++)
			expect_named(&py, &codes, tuple, tick, "first");
		/* Another object in its place: another item, then other characters of the item. */
		fake_memory_write_u64(&py.fake, tuple + item, second);
		for (uint64_t tick = 4; tick < 6; tick++)
			expect_named(&py, &codes, tuple, tick, "secnd");
		fake_memory_write(&py.fake, second + py.build.offsets.unicode.ascii_data, "third",
				  5);
		expect_named(&py, &codes, tuple, 6, "third");
		/* An object that was not used for a while. */
		expect_named(&py, &codes, tuple, 20, "third");
		fake_memory_write(&py.fake, second + py.build.offsets.unicode.ascii_data, "fourt",
				  5);
		expect_named(&py, &codes, tuple, 30, "fourt");
		end(&py, &codes);
	}
}

/* Another object in the memory of a code object, with no new code object made. */
Test(executable, object_replaces_a_code_object)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct code_cache codes;
		struct code_clock clock;
		struct code *code;

		begin(&py, &codes, minors[v]);
		remote_addr addr = fake_python_code(&py, &(struct fake_code){.name = "f"});

		for (uint64_t tick = 1; tick < 3; tick++) {
			clock = fake_python_clock(&py, tick);
			cr_assert(zero(int, executable_get(&codes, addr, &clock, &code)));
			cr_expect(not(code->is_not_code));
		}
		set_type(&py, addr, make_type(&py, "mod.Frame", 0));
		expect_named(&py, &codes, addr, 3, "<mod.Frame>");
		end(&py, &codes);
	}
}

/* A fake's memory in whole pages: the rest reads as zeros. */
struct paged_memory {
	struct remote_memory memory;
	struct remote_memory *inner;
	uint64_t nr_calls;
};

static int read_paged(struct remote_memory *memory, struct remote_range *ranges, size_t nr_ranges)
{
	struct paged_memory *paged = (struct paged_memory *)memory;

	paged->nr_calls++;
	for (size_t i = 0; i < nr_ranges; i++) {
		memset(ranges[i].buffer, 0, ranges[i].size);
		for (size_t k = 0; k < ranges[i].size; k++)
			(void)remote_memory_read(paged->inner, ranges[i].addr + k,
						 (uint8_t *)ranges[i].buffer + k, 1);
		ranges[i].done_bytes = ranges[i].size;
	}
	return 0;
}

/* Known executables cost no call, because a look prefetches what the last one read. */
Test(executable, known_executables_are_prefetched)
{
	static const struct remote_memory_ops ops = {.read_ranges = read_paged};
	enum { NR = 20 };
	struct look_memory look = {0};
	struct fake_python py;
	struct code_cache codes;
	remote_addr addrs[NR];

	fake_python_init(&py, 14);
	struct paged_memory paged = {.memory.ops = &ops, .inner = &py.fake.memory};
	look_memory_init(&look, &paged.memory);
	code_cache_init(&codes, &look.memory, &py.build);
	for (size_t i = 0; i < NR; i++)
		addrs[i] = builtin(&py, c_string(&py, "f"), 0, 0);
	for (uint64_t tick = 1; tick < 5; tick++) {
		uint64_t nr_calls;

		cr_assert(zero(int, look_memory_begin(&look)));
		nr_calls = paged.nr_calls;
		for (size_t i = 0; i < NR; i++)
			expect_named(&py, &codes, addrs[i], tick, "f");
		if (tick > 1)
			cr_expect(eq(u64, paged.nr_calls, nr_calls));
		cr_assert(zero(int, look_memory_end(&look)));
	}
	end(&py, &codes);
	look_memory_done(&look);
}

Test(executable, executables_beyond_the_limit_are_refused)
{
	struct fake_python py;
	struct code_cache codes;
	struct code_clock clock;
	struct code *code;

	begin(&py, &codes, 13);
	clock = fake_python_clock(&py, 1);
	for (uint32_t i = 0; i < MAX_EXECUTABLES; i++)
		(void)executable_get(&codes, 8ull * i + 8, &clock, &code);
	cr_expect(eq(int,
		     executable_get(&codes, builtin(&py, c_string(&py, "f"), 0, 0), &clock, &code),
		     -E2BIG));
	end(&py, &codes);
}

/* Where code comes and goes, its memory is reused by other objects. */
Test(executable, unused_executables_are_dropped)
{
	struct fake_python py;
	struct code_cache codes;
	struct code_clock clock;
	struct code *code, *again;

	begin(&py, &codes, 13);
	const remote_addr addr = builtin(&py, c_string(&py, "f"), 0, 0);
	for (uint64_t turn = 1; turn < 4; turn++) {
		clock = fake_python_clock(&py, turn);
		for (uint32_t i = 0; i < MAX_EXECUTABLES - 1; i++)
			(void)executable_get(&codes, 8 * (MAX_EXECUTABLES * turn + i), &clock,
					     &code);
		cr_assert(zero(int, executable_get(&codes, addr, &clock, &code)));
		cr_assert(code_cache_should_drop(&codes));

		/* An object used in the last tick stays until the next one is over. */
		code_cache_drop_unused(&codes);
		clock = fake_python_clock(&py, 10 * turn);
		cr_assert(zero(int, executable_get(&codes, addr, &clock, &again)));
		cr_expect(eq(ptr, code, again), "an object in use is kept");
		code_cache_drop_unused(&codes);
	}
	end(&py, &codes);
}

/* When there is no room for names, known ones stay. */
Test(executable, total_size_of_names_is_bounded)
{
	struct fake_python py;
	struct code_cache codes;
	struct code_clock clock;
	struct code *code;

	begin(&py, &codes, 14);
	const remote_addr known = builtin(&py, c_string(&py, "known"), 0, 0);
	const remote_addr other = builtin(&py, c_string(&py, "other"), 0, 0);

	expect_named(&py, &codes, known, 1, "known");
	codes.own_functions.nr_bytes = FUNCTIONS_MAX_BYTES;
	expect_named(&py, &codes, known, 2, "known");
	clock = fake_python_clock(&py, 2);
	cr_expect(eq(int, executable_get(&codes, other, &clock, &code), -E2BIG));
	end(&py, &codes);
}
