/* SPDX-License-Identifier: MIT */
/* Dicts and instances of every version, intact and damaged. */
#include "sampler/cpython/objects/dict.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>

#include "tests/support/fake_objects.h"

enum { MANY = 150 };

/* Look up key in the dict that open() finds at addr. */
static int look_up(struct fake_python *py,
		   int (*open)(struct remote_memory *, const struct py_build *, remote_addr,
			       struct dict *),
		   remote_addr addr, const char *key, uint32_t *hint, remote_addr *ret_value_addr)
{
	struct dict dict;
	int err = open(&py->fake.memory, &py->build, addr, &dict);

	return err ? err : dict_find(&dict, UINT32_MAX, key, hint, ret_value_addr);
}

Test(dict, finds_every_key)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_python py;
		struct fake_item items[MANY];
		char texts[MANY][16];
		struct fake_dict made;
		remote_addr value_addr;

		fake_python_init(&py, fake_minors[v]);
		for (size_t i = 0; i < MANY; i++) {
			(void)snprintf(texts[i], sizeof(texts[i]), "key%zu", i);
			items[i] = (struct fake_item){texts[i], 0, 0x1000 + i};
		}
		items[7].value_addr = 0;
		made = fake_dict(&py, items, 40);
		for (size_t i = 0; i < 40; i++) {
			uint32_t hint = i % 3 ? 0 : 1000;
			int err = look_up(&py, dict_open, made.addr, texts[i], &hint, &value_addr);

			cr_assert(eq(int, err, i == 7 ? -ENOENT : 0), "3.%u key %zu", py.minor, i);
			cr_expect(i == 7 || value_addr == 0x1000 + i);
			cr_expect(i == 7 || hint == i);
		}
		for (size_t i = 0; i < 3; i++) {
			static const char *const others[] = {"key", "key40", "keyX"};
			uint32_t hint = 3;

			cr_expect(eq(
				int,
				look_up(&py, dict_open, made.addr, others[i], &hint, &value_addr),
				-ENOENT));
		}
		fake_python_done(&py);
	}
}

Test(dict, starts_at_the_hint)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		static const struct fake_item items[] = {{"a", 0, 1}, {"b", 0, 2}, {"c", 0, 3}};
		struct fake_python py;
		struct dict dict;
		struct fake_dict made;
		remote_addr value_addr;
		uint32_t hint = 2;
		uint64_t nr_ranges;

		fake_python_init(&py, fake_minors[v]);
		made = fake_dict(&py, items, 3);
		cr_assert(zero(int, dict_open(&py.fake.memory, &py.build, made.addr, &dict)));
		nr_ranges = py.fake.nr_ranges;
		cr_assert(zero(int, dict_find(&dict, UINT32_MAX, "c", &hint, &value_addr)));
		cr_expect(eq(u64, value_addr, 3));
		cr_expect(eq(u64, py.fake.nr_ranges - nr_ranges, 2),
			  "reads only an entry and its key");
		fake_python_done(&py);
	}
}

Test(dict, finds_attributes_of_instances)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++)
		for (enum fake_form form = 0; form < NR_FAKE_FORMS; form++) {
			static const struct fake_item items[] = {
				{"first", 0, 11}, {"unset", 0, 0}, {"third", 0, 33}};
			struct fake_python py;
			remote_addr addr, value_addr = 0;
			uint32_t hint = 0;

			fake_python_init(&py, fake_minors[v]);
			addr = fake_instance(&py, form, items, 3, NULL);
			cr_expect(zero(int, look_up(&py, dict_open_attributes, addr, "third", &hint,
						    &value_addr)),
				  "3.%u form %d", py.minor, form);
			cr_expect(eq(u64, value_addr, 33), "3.%u form %d", py.minor, form);
			cr_expect(eq(int,
				     look_up(&py, dict_open_attributes, addr, "unset", &hint,
					     &value_addr),
				     -ENOENT),
				  "3.%u form %d", py.minor, form);
			fake_python_done(&py);
		}
}

Test(dict, invalid_values_are_absent)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		static const struct fake_item items[] = {{"a", 0, 11}};
		struct fake_python py;
		struct fake_dict made;
		struct dict dict;
		remote_addr addr;

		fake_python_init(&py, fake_minors[v]);
		if (py.build.traits.attribute_rule == ATTRIBUTES_INLINE) {
			addr = fake_instance(&py, FAKE_NO_DICT, items, 1, &made);
			fake_memory_write_u8(
				&py.fake, made.values_addr + py.build.offsets.dict_values.valid, 0);
			cr_expect(eq(int,
				     dict_open_attributes(&py.fake.memory, &py.build, addr, &dict),
				     -ENOENT));
		}
		fake_python_done(&py);
	}
}

/* Damage the head of a keys object and expect this error on opening. */
static void expect_refused(uint32_t minor, uint32_t py_field, size_t width, uint64_t value, int err)
{
	static const struct fake_item items[] = {{"a", 0, 11}};
	struct fake_python py;
	struct fake_dict made;
	struct dict dict;

	fake_python_init(&py, minor);
	made = fake_dict(&py, items, 1);
	fake_memory_write(&py.fake, made.keys_addr + py_field, &value, width);
	cr_expect(eq(int, dict_open(&py.fake.memory, &py.build, made.addr, &dict), err),
		  "3.%u: %u is %lu", minor, py_field, value);
	fake_python_done(&py);
}

Test(dict, damaged_heads_are_refused)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		uint32_t minor = fake_minors[v];
		struct fake_python py;

		fake_python_init(&py, minor);
		const struct py_offsets offsets = py.build.offsets;
		fake_python_done(&py);
		expect_refused(minor, offsets.dict_keys.nr_entries, 8, 65, -EBADMSG);
		expect_refused(minor, offsets.dict_keys.nr_entries, 8, UINT64_MAX, -EBADMSG);
		expect_refused(minor, offsets.dict_keys.nr_entries, 8, DICT_MAX_ENTRIES + 1,
			       -E2BIG);
		if (offsets.dict_keys.kind == OFFSET_ABSENT) {
			expect_refused(minor, offsets.dict_keys.size, 8, 3, -EBADMSG);
			expect_refused(minor, offsets.dict_keys.size, 8, 1ull << 40, -EBADMSG);
			continue;
		}
		expect_refused(minor, offsets.dict_keys.kind, 1, 3, -EBADMSG);
		expect_refused(minor, offsets.dict_keys.log2_size, 1, 60, -EBADMSG);
		expect_refused(minor, offsets.dict_keys.log2_index_bytes, 1, 5, -EBADMSG);
		expect_refused(minor, offsets.dict_keys.log2_index_bytes, 1, 255, -EBADMSG);
	}
}

Test(dict, unreadable_dicts_are_reported)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		static const struct fake_item items[] = {{"a", 0, 11}};
		struct fake_python py;
		struct fake_dict made;
		struct dict dict;
		uint32_t hint = 0;
		remote_addr value_addr;

		fake_python_init(&py, fake_minors[v]);
		made = fake_dict(&py, items, 1);
		cr_expect(eq(int, dict_open(&py.fake.memory, &py.build, 64, &dict), -EFAULT));
		cr_expect(eq(int, dict_open(&py.fake.memory, &py.build, UINT64_MAX - 7, &dict),
			     -EFAULT));
		/* A key that cannot be read does not match. */
		fake_memory_write_u64(
			&py.fake,
			made.entries_addr + (py.build.offsets.dict_keys.kind == OFFSET_ABSENT) * 8,
			64);
		cr_expect(eq(int, look_up(&py, dict_open, made.addr, "a", &hint, &value_addr),
			     -ENOENT));
		fake_memory_unmap(&py.fake, made.keys_addr);
		cr_expect(eq(int, look_up(&py, dict_open, made.addr, "a", &hint, &value_addr),
			     -EFAULT));
		py.fake.error = -ESRCH;
		cr_expect(eq(int, look_up(&py, dict_open, made.addr, "a", &hint, &value_addr),
			     -ESRCH));
		fake_python_done(&py);
	}
}
