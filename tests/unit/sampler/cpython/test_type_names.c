/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/type_names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/fake_objects.h"

/* The bit of tp_flags for types. */
#define TYPE_SUBCLASS (1ull << 31)

/*
 * A Python whose builtins module has None and a type. The names of their types are not in memory.
 */
struct program {
	struct fake_python py;
	remote_addr type_addr;
	remote_addr none_addr;
};

/* Unmapped addresses of type names. */
enum { MISSING_ADDR = 0x123000, NONE_NAME_ADDR = MISSING_ADDR + 0x100 };

static remote_addr type_of(struct fake_python *py, remote_addr addr)
{
	uint64_t type_addr = 0;

	cr_assert(zero(int, remote_memory_read_u64(&py->fake.memory,
						   addr + py->build.offsets.object.ob_type,
						   &type_addr)));
	return type_addr;
}

static void set_name_addr(struct fake_python *py, remote_addr type_addr, remote_addr name_addr)
{
	fake_memory_write_u64(&py->fake, type_addr + py->build.offsets.object.tp_name, name_addr);
}

static void program_init(struct program *program, uint32_t minor)
{
	struct fake_python *py = &program->py;

	fake_python_init(py, minor);
	remote_addr metatype_addr = type_of(py, fake_object(py, "type", NULL, 0));

	program->none_addr = fake_object(py, "NoneType", NULL, 0);
	program->type_addr = type_of(py, fake_object(py, "widget", NULL, 0));
	fake_memory_write_u64(&py->fake, metatype_addr + py->build.offsets.type.flags,
			      TYPE_SUBCLASS);
	const remote_addr types[] = {program->type_addr, type_of(py, program->none_addr)};

	for (size_t i = 0; i < 2; i++) {
		fake_memory_write_u64(&py->fake, types[i] + py->build.offsets.object.ob_type,
				      metatype_addr);
		set_name_addr(py, types[i], MISSING_ADDR + i * 0x100);
	}
	const struct fake_item builtins[] = {
		{.text = "None", .value_addr = program->none_addr},
		{.text = "widget", .value_addr = program->type_addr},
		{.text = "twice", .value_addr = program->type_addr},
		{.text = "number", .value_addr = fake_int(py, 7)},
	};
	const struct fake_item modules[] = {
		{.text = "builtins",
		 .value_addr = fake_instance(py, FAKE_OWN_DICT, builtins, 4, NULL)},
	};
	struct fake_dict dict = fake_dict(py, modules, 1);

	fake_set_modules(py, &dict);
}

static bool has_name(struct type_names *names, remote_addr addr, const char *name)
{
	char text[TYPE_NAME_MAX_BYTES];
	size_t size = strlen(name) + 1;

	return remote_memory_read(&names->memory, addr, text, size) == 0 &&
	       memcmp(text, name, size) == 0;
}

Test(type_names, missing_name_comes_from_a_module)
{
	for (size_t i = 0; i < NR_FAKE_MINORS; i++) {
		struct type_names names;
		struct program program;
		uint64_t word;

		program_init(&program, fake_minors[i]);
		struct fake_python *py = &program.py;

		cr_assert(zero(int, type_names_init(&names, &py->fake.memory, &py->build,
						    py->runtime_addr)));
		cr_expect(has_name(&names, MISSING_ADDR, "widget"), "3.%u", py->minor);
		cr_expect(has_name(&names, MISSING_ADDR + 2, "dget"), "3.%u", py->minor);
		cr_expect(has_name(&names, NONE_NAME_ADDR, "NoneType"), "3.%u", py->minor);
		cr_expect(not(has_name(&names, MISSING_ADDR, "twice")));
		cr_expect(eq(int, remote_memory_read(&names.memory, MISSING_ADDR - 1, &word, 1),
			     -EFAULT));
		cr_expect(eq(int, remote_memory_read(&names.memory, MISSING_ADDR + 7, &word, 1),
			     -EFAULT));
		cr_expect(zero(int, remote_memory_read(&names.memory, py->runtime_addr, &word,
						       sizeof(word))));
		type_names_done(&names);
		fake_python_done(py);
	}
}

Test(type_names, readable_name_is_kept)
{
	struct type_names names;
	struct program program;

	program_init(&program, 14);
	struct fake_python *py = &program.py;

	(void)fake_memory_map(&py->fake, MISSING_ADDR, 16);
	fake_memory_write(&py->fake, MISSING_ADDR, "gadget", 7);
	cr_assert(
		zero(int, type_names_init(&names, &py->fake.memory, &py->build, py->runtime_addr)));
	cr_expect(has_name(&names, MISSING_ADDR, "gadget"));
	type_names_done(&names);
	fake_python_done(py);
}

Test(type_names, without_modules_no_name_is_found)
{
	struct type_names names;
	struct fake_python py;

	fake_python_init(&py, 13);
	cr_assert(zero(int, type_names_init(&names, &py.fake.memory, &py.build, py.runtime_addr)));
	cr_expect(zero(sz, names.nr_names));
	type_names_done(&names);
	fake_python_done(&py);
}
