/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/sys_info.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/fake_objects.h"

/* Bits of tp_flags for list and str. */
#define TYPE_IS_LIST (1ull << 25)
#define TYPE_IS_STR  (1ull << 28)

static void set_flags(struct fake_python *py, remote_addr addr, uint64_t flags)
{
	uint64_t type_addr;

	cr_assert(zero(int, remote_memory_read_u64(&py->fake.memory,
						   addr + py->build.offsets.object.ob_type,
						   &type_addr)));
	fake_memory_write_u64(&py->fake, type_addr + py->build.offsets.type.flags, flags);
}

static remote_addr make_str(struct fake_python *py, const char *text)
{
	remote_addr addr = fake_python_str(py, text);

	set_flags(py, addr, TYPE_IS_STR);
	return addr;
}

/* A list that claims nr_items items and has nr_there pointers to items. */
static remote_addr make_list(struct fake_python *py, uint64_t nr_items, const remote_addr *items,
			     size_t nr_there)
{
	remote_addr items_addr = fake_python_alloc(py, nr_there * sizeof(*items));
	const uint64_t words[] = {nr_items, items_addr};
	remote_addr addr = fake_object(py, "list", words, 2);

	for (size_t i = 0; i < nr_there; i++)
		fake_memory_write_u64(&py->fake, items_addr + 8 * i, items[i]);
	set_flags(py, addr, TYPE_IS_LIST);
	return addr;
}

/* Make sys a module with these attributes. */
static void make_sys(struct fake_python *py, const struct fake_item *items, size_t nr_items)
{
	const struct fake_item modules[] = {
		{.text = "sys",
		 .value_addr = fake_instance(py, FAKE_OWN_DICT, items, nr_items, NULL)},
	};
	struct fake_dict dict = fake_dict(py, modules, 1);

	fake_set_modules(py, &dict);
}

static struct sys_info read_info(struct fake_python *py)
{
	struct sys_info info;

	cr_assert(zero(int, sys_info_read(&py->fake.memory, &py->build, py->runtime_addr, &info)));
	return info;
}

Test(sys_info, original_arguments_come_first)
{
	for (size_t i = 0; i < NR_FAKE_MINORS; i++) {
		struct fake_python py;

		fake_python_init(&py, fake_minors[i]);
		const remote_addr original[] = {make_str(&py, "python3"), make_str(&py, "a.py"),
						make_str(&py, "")};
		const struct fake_item items[] = {
			{.text = "argv", .value_addr = make_list(&py, 1, &original[1], 1)},
			{.text = "executable", .value_addr = make_str(&py, "/usr/bin/python3")},
			{.text = "orig_argv", .value_addr = make_list(&py, 3, original, 3)},
		};

		for (size_t nr = 2; nr <= 3; nr++) {
			make_sys(&py, items, nr);
			struct sys_info info = read_info(&py);

			cr_assert(eq(sz, info.nr_arguments, nr == 3 ? 3 : 1), "3.%u", py.minor);
			cr_expect(
				eq(str, info.arguments[0], (char *)(nr == 3 ? "python3" : "a.py")));
			cr_expect(eq(int, info.has_original, nr == 3));
			cr_expect(eq(str, info.executable, (char *)"/usr/bin/python3"));
			sys_info_done(&info);
		}
		fake_python_done(&py);
	}
}

/* A missing item is marked in its place. A list with a wrong length is read as far as it goes. */
Test(sys_info, damaged_items_do_not_hide_others)
{
	struct fake_python py;

	fake_python_init(&py, 14);
	const remote_addr words[] = {make_str(&py, "python3"), 0x7000000, make_str(&py, "x")};
	const struct fake_item items[] = {
		{.text = "orig_argv", .value_addr = make_list(&py, UINT64_MAX, words, 3)},
		{.text = "executable", .value_addr = fake_int(&py, 7)},
	};

	make_sys(&py, items, 2);
	struct sys_info info = read_info(&py);

	cr_assert(eq(sz, info.nr_arguments, 3));
	cr_expect(eq(str, info.arguments[0], (char *)"python3"));
	cr_expect(eq(str, info.arguments[1], (char *)"<not in the core>"));
	cr_expect(eq(str, info.arguments[2], (char *)"x"));
	cr_expect(eq(ptr, info.executable, NULL));
	sys_info_done(&info);
	fake_python_done(&py);
}

/* A list whose items cannot be read is not mistaken for an empty one. */
Test(sys_info, missing_items_are_unknown)
{
	struct fake_python py;

	fake_python_init(&py, 14);
	const uint64_t words[] = {2, 0x7000000};
	remote_addr list_addr = fake_object(&py, "list", words, 2);
	const struct fake_item items[] = {
		{.text = "orig_argv", .value_addr = list_addr},
		{.text = "executable", .value_addr = make_str(&py, "/usr/bin/python3")},
	};

	set_flags(&py, list_addr, TYPE_IS_LIST);
	make_sys(&py, items, 2);
	struct sys_info info = read_info(&py);

	cr_expect(eq(ptr, info.arguments, NULL));
	cr_expect(eq(str, info.executable, (char *)"/usr/bin/python3"));
	sys_info_done(&info);
	fake_python_done(&py);
}

Test(sys_info, without_sys_all_items_are_unknown)
{
	struct fake_python py;

	fake_python_init(&py, 13);
	struct sys_info info = read_info(&py);

	cr_expect(eq(ptr, info.arguments, NULL));
	cr_expect(eq(ptr, info.executable, NULL));
	sys_info_done(&info);
	fake_python_done(&py);
}
