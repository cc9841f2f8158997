/* SPDX-License-Identifier: MIT */
/* Names of threads in a fake threading module: intact, torn and damaged. */
#include "sampler/cpython/threads/threads.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "procmem/bounded_memory.h"
#include "tests/support/fake_objects.h"

enum { NR_THREADS = 3 };

static const uint64_t idents[NR_THREADS] = {0x7f0000003640, 0x7f0000001640, 0x7f0000002640};

static int read_names(struct fake_python *py, struct named_thread threads[NR_THREADS])
{
	struct thread_name_hints hints = {0};

	for (size_t i = 0; i < NR_THREADS; i++)
		threads[i] = (struct named_thread){
			.ident = idents[i],
			.native_id = i ? FAKE_NATIVE_ID(idents[i]) : 0,
			.index = i,
			.name = "old",
		};
	return thread_names_read(&py->fake.memory, &py->build, py->interp_addr, &hints, threads,
				 NR_THREADS);
}

static const char *name_of(const struct named_thread threads[NR_THREADS], size_t index)
{
	for (size_t i = 0; i < NR_THREADS; i++)
		if (threads[i].index == index)
			return threads[i].name;
	cr_assert(false, "thread %zu is gone", index);
	return "";
}

static void make_items(struct fake_python *py, enum fake_form form,
		       struct fake_item items[NR_THREADS])
{
	static const char *const names[NR_THREADS] = {"MainThread", "worker", "a\nb"};

	for (size_t i = 0; i < NR_THREADS; i++)
		items[i] = (struct fake_item){NULL, idents[i],
					      fake_thread_object(py, form, idents[i], names[i])};
}

Test(thread_names, read_from_every_form_of_object)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++)
		for (enum fake_form form = 0; form < NR_FAKE_FORMS; form++) {
			struct fake_python py;
			struct fake_item items[NR_THREADS];
			struct named_thread threads[NR_THREADS];

			fake_python_init(&py, fake_minors[v]);
			make_items(&py, form, items);
			(void)fake_threading(&py, items, NR_THREADS);
			cr_assert(zero(int, read_names(&py, threads)), "3.%u", py.minor);
			cr_expect(eq(str, (char *)name_of(threads, 0), (char *)"MainThread"));
			cr_expect(eq(str, (char *)name_of(threads, 1), (char *)"worker"));
			cr_expect(eq(str, (char *)name_of(threads, 2), (char *)"a\nb"));
			fake_python_done(&py);
		}
}

Test(thread_names, belong_to_the_thread_with_their_ident)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_python py;
		struct fake_item items[NR_THREADS];
		struct named_thread threads[NR_THREADS];

		fake_python_init(&py, fake_minors[v]);
		make_items(&py, FAKE_NO_DICT, items);
		items[0].value_addr = items[1].value_addr; /* another thread's Thread */
		items[1].value_addr = 0;		   /* removed */
		(void)fake_threading(&py, items, NR_THREADS);
		cr_assert(zero(int, read_names(&py, threads)));
		cr_expect(eq(str, (char *)name_of(threads, 0), (char *)""));
		cr_expect(eq(str, (char *)name_of(threads, 1), (char *)""));
		cr_expect(eq(str, (char *)name_of(threads, 2), (char *)"a\nb"));
		fake_python_done(&py);
	}
}

/* A thread has ended, and the next one has its ident. */
Test(thread_names, do_not_pass_to_the_next_thread)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_python py;
		struct fake_item items[NR_THREADS];
		struct thread_name_hints hints = {0};
		struct named_thread thread = {.ident = idents[1], .native_id = 5000};

		fake_python_init(&py, fake_minors[v]);
		make_items(&py, FAKE_NO_DICT, items);
		(void)fake_threading(&py, items, NR_THREADS);
		cr_assert(zero(int, thread_names_read(&py.fake.memory, &py.build, py.interp_addr,
						      &hints, &thread, 1)));
		cr_expect(eq(str, (char *)thread.name, (char *)(py.minor < 8 ? "worker" : "")),
			  "3.%u", py.minor);
		fake_python_done(&py);
	}
}

Test(thread_names, are_cut_between_code_points)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++)
		for (size_t extra = 0; extra < 4; extra++) {
			struct fake_python py;
			struct fake_item items[NR_THREADS];
			struct named_thread threads[NR_THREADS];
			char ascii[200];
			remote_addr thread_addr;

			fake_python_init(&py, fake_minors[v]);
			memset(ascii, 'x', sizeof(ascii));
			ascii[126 + extra] = '\0';
			make_items(&py, FAKE_NO_DICT, items);
			thread_addr = fake_thread_object(&py, FAKE_OWN_DICT, idents[0], ascii);
			items[0].value_addr = thread_addr;
			(void)fake_threading(&py, items, NR_THREADS);
			cr_assert(zero(int, read_names(&py, threads)));
			cr_expect(eq(sz, strlen(name_of(threads, 0)),
				     extra ? THREAD_NAME_MAX_BYTES - 1 : 126));
			fake_python_done(&py);
		}
}

Test(thread_names, are_absent_without_threading)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		static const struct fake_item modules[] = {{"sys", 0, 8}};
		struct fake_python py;
		struct named_thread threads[NR_THREADS];
		uint64_t modules_at;

		fake_python_init(&py, fake_minors[v]);
		modules_at = py.interp_addr + py.build.offsets.interpreter.modules;
		cr_expect(eq(int, read_names(&py, threads), -ENOENT));
		fake_memory_write_u64(&py.fake, modules_at, fake_dict(&py, modules, 1).addr);
		cr_expect(eq(int, read_names(&py, threads), -ENOENT));
		fake_memory_write_u64(&py.fake, modules_at, 64);
		cr_expect(eq(int, read_names(&py, threads), -ENOENT));
		py.fake.error = -ESRCH;
		cr_expect(eq(int, read_names(&py, threads), -ESRCH));
		fake_python_done(&py);
	}
}

/* Whether every name is right or missing. */
static bool names_are_true(const struct named_thread threads[NR_THREADS])
{
	static const char *const names[NR_THREADS] = {"MainThread", "worker", "a\nb"};

	for (size_t i = 0; i < NR_THREADS; i++) {
		const char *name = name_of(threads, i);

		if (name[0] && strcmp(name, names[i]) != 0)
			return false;
	}
	return true;
}

Test(thread_names, torn_dict_gives_no_wrong_name)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_python py;
		struct fake_item items[NR_THREADS];
		struct named_thread threads[NR_THREADS];
		struct fake_dict active;
		size_t nr_bytes;

		fake_python_init(&py, fake_minors[v]);
		make_items(&py, FAKE_NO_DICT, items);
		active = fake_threading(&py, items, NR_THREADS);
		nr_bytes = active.entries_addr + 3 * 24 - active.keys_addr;
		for (size_t i = 0; i < nr_bytes; i++)
			for (unsigned int bit = 0; bit < 8; bit++) {
				remote_addr addr = active.keys_addr + i;
				uint8_t byte, damaged;

				cr_assert(zero(
					int, remote_memory_read(&py.fake.memory, addr, &byte, 1)));
				damaged = byte ^ (uint8_t)(1u << bit);
				fake_memory_write_u8(&py.fake, addr, damaged);
				if (read_names(&py, threads) == 0)
					cr_expect(names_are_true(threads), "3.%u byte %zu bit %u",
						  py.minor, i, bit);
				fake_memory_write_u8(&py.fake, addr, byte);
			}
		fake_python_done(&py);
	}
}

/* Read the name of thread idents[0] with these hints; "" if there is none. */
static void read_one(struct fake_python *py, struct remote_memory *memory,
		     struct thread_name_hints *hints, int expected, struct named_thread *ret_thread)
{
	*ret_thread = (struct named_thread){.ident = idents[0]};
	cr_expect(eq(int,
		     thread_names_read(memory, &py->build, py->interp_addr, hints, ret_thread, 1),
		     expected),
		  "3.%u", py->minor);
}

/* A Thread may have other attributes before those of threading. */
Test(thread_names, are_found_among_a_limited_number_of_attributes)
{
	static const struct {
		size_t nr_pads;
		const char *name;
	} cases[] = {{THREAD_MAX_ATTRIBUTES - 2, "worker"}, {THREAD_MAX_ATTRIBUTES, ""}};

	for (size_t v = 0; v < NR_FAKE_MINORS; v++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct thread_name_hints hints = {0};
			struct fake_item item = {.number = idents[0]};
			struct named_thread thread;
			struct fake_python py;
			struct fake_item pad;

			fake_python_init(&py, fake_minors[v]);
			pad = (struct fake_item){"pad", 0, py.none_addr};
			item.value_addr =
				fake_long_thread(&py, &pad, cases[i].nr_pads, idents[0], "worker");
			(void)fake_threading(&py, &item, 1);
			read_one(&py, &py.fake.memory, &hints, 0, &thread);
			cr_expect(eq(str, (char *)thread.name, (char *)cases[i].name), "3.%u",
				  py.minor);
			fake_python_done(&py);
		}
}

/* Keys with the hash of an ident, whose values are not Threads and have very many attributes. */
Test(thread_names, hostile_dict_is_bounded)
{
	enum { NR_KEYS = 1500, NR_ATTRIBUTES = 100000, MAX_READS = 5000 };

	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct thread_name_hints hints = {0};
		struct bounded_memory bounded;
		struct named_thread thread;
		struct fake_dict active;
		struct fake_python py;
		struct fake_item pad;

		fake_python_init(&py, fake_minors[v]);
		pad = (struct fake_item){"pad", 0, py.none_addr};
		pad.value_addr = fake_long_thread(&py, &pad, NR_ATTRIBUTES, idents[0], "x");
		pad = (struct fake_item){NULL, idents[0], pad.value_addr};
		(void)fake_threading(&py, NULL, 0);
		active = fake_long_dict(&py, &pad, NR_KEYS, NULL, 0);
		pad = (struct fake_item){"threading", 0, fake_threading_module(&py, &active)};
		active = fake_dict(&py, &pad, 1);
		fake_set_modules(&py, &active);

		py.fake.nr_ranges = 0;
		read_one(&py, &py.fake.memory, &hints, 0, &thread);
		cr_expect(lt(u64, MAX_READS, py.fake.nr_ranges),
			  "the unbounded search is too short for this test");
		cr_expect(lt(u64, py.fake.nr_ranges, NR_KEYS * (THREAD_MAX_ATTRIBUTES + 40)),
			  "3.%u: %zu reads for one name after the other", py.minor,
			  (size_t)py.fake.nr_ranges);

		py.fake.nr_ranges = 0;
		bounded_memory_init(&bounded, &py.fake.memory, MAX_READS, NULL, UINT64_MAX);
		read_one(&py, &bounded.memory, &hints, 0, &thread);
		cr_expect(le(u64, py.fake.nr_ranges, MAX_READS), "3.%u", py.minor);
		cr_expect(zero(sz, bounded.nr_left));
		cr_expect(eq(str, (char *)thread.name, (char *)""));
		fake_python_done(&py);
	}
}

/* A program without threading that imports it later. */
Test(thread_names, misses_are_remembered)
{
	enum { NR_MODULES = 3000, FEW = 8 };

	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_item items[NR_THREADS];
		struct thread_name_hints hints = {0};
		struct named_thread thread;
		struct fake_dict modules, active;
		struct fake_python py;
		struct fake_item pad;

		fake_python_init(&py, fake_minors[v]);
		make_items(&py, FAKE_NO_DICT, items);
		active = fake_dict(&py, items, NR_THREADS);
		pad = (struct fake_item){"pad", 0, py.none_addr};
		items[0] = (struct fake_item){"threading", 0, fake_threading_module(&py, &active)};
		modules = fake_long_dict(&py, &pad, NR_MODULES, items, 1);
		fake_set_modules(&py, &modules);
		fake_memory_write_u64(&py.fake,
				      modules.keys_addr + py.build.offsets.dict_keys.nr_entries,
				      NR_MODULES);
		for (int i = 0; i < 2; i++) {
			py.fake.nr_ranges = 0;
			read_one(&py, &py.fake.memory, &hints, -ENOENT, &thread);
			cr_expect(i ? py.fake.nr_ranges < FEW : py.fake.nr_ranges > NR_MODULES,
				  "3.%u: %zu reads", py.minor, (size_t)py.fake.nr_ranges);
		}
		/* A search ended by its bound proves nothing. */
		fake_memory_write_u64(&py.fake,
				      modules.keys_addr + py.build.offsets.dict_keys.nr_entries,
				      NR_MODULES + 1);
		for (size_t max_reads = 0; max_reads < NR_MODULES; max_reads += 500) {
			struct bounded_memory bounded;

			bounded_memory_init(&bounded, &py.fake.memory, max_reads, NULL, UINT64_MAX);
			read_one(&py, &bounded.memory, &hints, -ENOENT, &thread);
		}
		read_one(&py, &py.fake.memory, &hints, 0, &thread);
		cr_expect(eq(str, (char *)thread.name, (char *)"MainThread"), "3.%u", py.minor);
		fake_python_done(&py);
	}
}

/* Beyond the number of modules that are searched. */
Test(thread_names, are_found_among_a_limited_number_of_modules)
{
	for (size_t nr = THREAD_NAMES_MAX_KEYS - 1; nr <= THREAD_NAMES_MAX_KEYS; nr++) {
		struct fake_item items[NR_THREADS];
		struct thread_name_hints hints = {0};
		struct named_thread thread;
		struct fake_dict modules, active;
		struct fake_python py;
		struct fake_item pad;

		fake_python_init(&py, 14);
		make_items(&py, FAKE_NO_DICT, items);
		active = fake_dict(&py, items, NR_THREADS);
		pad = (struct fake_item){"pad", 0, py.none_addr};
		items[0] = (struct fake_item){"threading", 0, fake_threading_module(&py, &active)};
		modules = fake_long_dict(&py, &pad, nr, items, 1);
		fake_set_modules(&py, &modules);
		read_one(&py, &py.fake.memory, &hints, nr < THREAD_NAMES_MAX_KEYS ? 0 : -ENOENT,
			 &thread);
		fake_python_done(&py);
	}
}

/* Reading the names of threads that began one after the other does not visit all others. */
Test(thread_names, search_continues_after_the_last_one)
{
	enum { NR_OTHERS = 6000, MAX_READS = 70 };
	static const size_t order[] = {0, 1, 2, 0, 1, 0, 1, 2};

	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct thread_name_hints hints = {0};
		struct fake_item items[NR_THREADS];
		struct fake_item pad = {NULL, 77, 64};
		struct fake_dict active;
		struct fake_python py;

		fake_python_init(&py, fake_minors[v]);
		make_items(&py, FAKE_NO_DICT, items);
		active = fake_long_dict(&py, &pad, NR_OTHERS, items, NR_THREADS);
		pad = (struct fake_item){"threading", 0, fake_threading_module(&py, &active)};
		active = fake_dict(&py, &pad, 1);
		fake_set_modules(&py, &active);
		for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
			const char *const names[NR_THREADS] = {"MainThread", "worker", "a\nb"};
			struct named_thread thread = {.ident = idents[order[i]]};

			py.fake.nr_ranges = 0;
			cr_assert(zero(int, thread_names_read(&py.fake.memory, &py.build,
							      py.interp_addr, &hints, &thread, 1)));
			cr_expect(eq(str, (char *)thread.name, (char *)names[order[i]]));
			if (order[i] && order[i - 1] == order[i] - 1)
				cr_expect(lt(u64, py.fake.nr_ranges, MAX_READS), "3.%u: %zu reads",
					  py.minor, (size_t)py.fake.nr_ranges);
		}
		fake_python_done(&py);
	}
}
