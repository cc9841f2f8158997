/* SPDX-License-Identifier: MIT */
/* When a sampler reads the names of threads, and how many reads that takes. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_objects.h"

enum { MS = 1000000, IDENT = 4096, NR_MANY = 40 };

/* A sink that counts renamed threads. */
struct renaming_sink {
	struct sample_sink sink;
	char name[THREAD_NAME_MAX_BYTES];
	size_t nr_renamed;
};

static int renaming_sample(struct sample_sink *sink, const struct sample *sample)
{
	(void)sink;
	(void)sample;
	return 0;
}

static void renaming_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct renaming_sink *renaming = (struct renaming_sink *)sink;

	memcpy(renaming->name, thread->name, sizeof(renaming->name));
	renaming->nr_renamed++;
}

static const struct sample_sink_ops renaming_ops = {
	.sample = renaming_sample,
	.renamed = renaming_renamed,
};

/* Add nr threads to the interpreter, with idents from first on, oldest first. */
static void begin_threads(struct fake_python *py, uint64_t first, size_t nr)
{
	for (uint64_t ident = first; ident < first + nr; ident++) {
		remote_addr addr = fake_python_thread(py, FAKE_NATIVE_ID(ident));

		fake_memory_write_u64(&py->fake, addr + py->build.offsets.thread.thread_id, ident);
	}
}

/* Make a threading module with these threads, named PREFIX and a number. */
static void name_threads(struct fake_python *py, uint64_t first, size_t nr, const char *prefix)
{
	struct fake_item items[NR_MANY];

	cr_assert(le(sz, nr, NR_MANY));
	for (size_t i = 0; i < nr; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%s%zu", prefix, i);
		items[i] = (struct fake_item){
			NULL, first + i, fake_thread_object(py, FAKE_OWN_DICT, first + i, name)};
	}
	(void)fake_threading(py, items, nr);
}

static struct sampler *begin_sampler(struct fake_python *py)
{
	struct sampler *sampler;

	cr_assert(zero(int, sampler_create(NULL, &py->fake.memory, &py->build, py->runtime_addr,
					   &sampler)));
	return sampler;
}

Test(sampler_identity, name_is_read_for_a_new_thread_and_once_more)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct renaming_sink sink = {.sink.ops = &renaming_ops};
		struct fake_python py;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		begin_threads(&py, IDENT, 1);
		name_threads(&py, IDENT, 1, "first");
		sampler = begin_sampler(&py);
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1000 * MS)));
		cr_expect(eq(str, sink.name, (char *)"first0"), "3.%u", py.minor);
		name_threads(&py, IDENT, 1, "second");
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1050 * MS)));
		cr_expect(eq(sz, sink.nr_renamed, 1), "the name is not read again so soon");
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1101 * MS)));
		cr_expect(eq(str, sink.name, (char *)"second0"));
		name_threads(&py, IDENT, 1, "third");
		for (uint64_t ms = 1200; ms < 2000; ms += 100)
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, ms * MS)));
		cr_expect(eq(sz, sink.nr_renamed, 2), "the name is not read a third time");
		cr_assert(zero(int, sampler_names_read(sampler, &sink.sink, true)));
		cr_expect(eq(str, sink.name, (char *)"third0"), "the name is read at the end");
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

Test(sampler_identity, many_names_are_read_over_several_ticks)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct renaming_sink sink = {.sink.ops = &renaming_ops};
		struct fake_python py;
		struct sampler *sampler;
		uint64_t ms;

		fake_python_init(&py, fake_stack_minors[v]);
		begin_threads(&py, IDENT, NR_MANY);
		name_threads(&py, IDENT, NR_MANY, "a");
		sampler = begin_sampler(&py);
		for (ms = 1000; ms < 1005; ms++) {
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, ms * MS)));
			cr_expect(eq(sz, sink.nr_renamed,
				     min_size((ms - 999) * MAX_NAMES_PER_TICK, NR_MANY)),
				  "3.%u after %zu ms", py.minor, (size_t)ms);
		}
		/* The second reading of names is limited, too. */
		name_threads(&py, IDENT, NR_MANY, "b");
		for (ms = 1150; ms < 1155; ms++) {
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, ms * MS)));
			cr_expect(eq(sz, sink.nr_renamed,
				     NR_MANY + min_size((ms - 1149) * MAX_NAMES_PER_TICK, NR_MANY)),
				  "3.%u after %zu ms", py.minor, (size_t)ms);
		}
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

Test(sampler_identity, remaining_names_are_read_at_the_end)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct renaming_sink sink = {.sink.ops = &renaming_ops};
		struct fake_python py;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		begin_threads(&py, IDENT, NR_MANY);
		name_threads(&py, IDENT, NR_MANY, "a");
		sampler = begin_sampler(&py);
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1000 * MS)));
		py.fake.nr_ranges = 0;
		name_threads(&py, IDENT, NR_MANY, "b");
		cr_assert(zero(int, sampler_names_read(sampler, &sink.sink, true)));
		cr_expect(eq(sz, sink.nr_renamed, MAX_NAMES_PER_TICK + NR_MANY), "3.%u", py.minor);
		cr_expect(eq(str, sink.name, (char *)"b15"), "threads without a name come first");
		py.fake.nr_ranges = 0;
		cr_assert(zero(int, sampler_names_read(sampler, &sink.sink, true)));
		cr_expect(zero(u64, py.fake.nr_ranges), "no name is read twice");
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

/* A dict with the same ident thousands of times, for objects with thousands of attributes. */
static void make_hostile(struct fake_python *py)
{
	enum { NR_KEYS = 3000, NR_ATTRIBUTES = 5000 };
	const struct fake_item attribute = {"pad", 0, py->none_addr};
	const struct fake_item key = {NULL, IDENT,
				      fake_long_thread(py, &attribute, NR_ATTRIBUTES, IDENT, "x")};
	const struct fake_dict active = fake_long_dict(py, &key, NR_KEYS, NULL, 0);
	const struct fake_item item = {"threading", 0, fake_threading_module(py, &active)};
	const struct fake_dict modules = fake_dict(py, &item, 1);

	fake_set_modules(py, &modules);
}

Test(sampler_identity, reads_of_a_hostile_target_are_bounded)
{
	enum { MAX_READS = NAMES_BASE_READS + MAX_NAMES_PER_TICK * READS_PER_NAME, REST = 200 };

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct renaming_sink sink = {.sink.ops = &renaming_ops};
		volatile sig_atomic_t stop = 1;
		struct fake_python py;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		begin_threads(&py, IDENT, 1);
		make_hostile(&py);
		sampler = begin_sampler(&py);
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1000 * MS)));
		cr_expect(lt(u64, NAMES_BASE_READS, py.fake.nr_ranges),
			  "the unbounded search is too short for this test");
		cr_expect(lt(u64, py.fake.nr_ranges, MAX_READS + REST), "3.%u", py.minor);
		py.fake.nr_ranges = 0;
		sampler->snapshot.stop = &stop;
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1200 * MS)));
		cr_expect(lt(u64, py.fake.nr_ranges, REST), "3.%u: a stop ends the reads",
			  py.minor);
		sampler_destroy(sampler);

		sampler = begin_sampler(&py);
		sampler->tick.cut_ns = 1;
		py.fake.nr_ranges = 0;
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1000 * MS)));
		cr_expect(lt(u64, py.fake.nr_ranges, REST), "3.%u: the deadline ends the reads",
			  py.minor);
		py.fake.nr_ranges = 0;
		cr_assert(zero(int, sampler_names_read(sampler, &sink.sink, true)));
		cr_expect(lt(u64, py.fake.nr_ranges, MAX_READS), "3.%u", py.minor);
		sampler_destroy(sampler);

		sampler = begin_sampler(&py);
		py.fake.nr_ranges = 0;
		cr_assert(zero(int, sampler_dump(sampler, &sink.sink)));
		cr_expect(lt(u64, py.fake.nr_ranges, MAX_READS + REST), "3.%u", py.minor);
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

/* Add an interpreter at the end of the list, and make it the current one. */
static void add_interpreter(struct fake_python *py)
{
	enum { INTERP_BYTES = 32768 };
	remote_addr addr = fake_python_alloc(py, INTERP_BYTES);

	fake_memory_write_u64(&py->fake, py->interp_addr + py->build.offsets.interpreter.next,
			      addr);
	py->interp_addr = addr;
}

/* Interpreters that imported threading at different times. */
Test(sampler_identity, hints_are_kept_for_each_interpreter)
{
	enum { NR_INTERPRETERS = 2, NR_MODULES = 2000, NR_NEW = 3, FEW = 400 };

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct renaming_sink sink = {.sink.ops = &renaming_ops};
		remote_addr interpreters[NR_INTERPRETERS];
		struct fake_python py;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		for (uint64_t i = 0; i < NR_INTERPRETERS; i++) {
			const struct fake_item pad = {"pad", 0, py.none_addr};
			struct fake_item item = {"threading", 0, 0};
			struct fake_item threads[NR_NEW];
			struct fake_dict dict;

			if (i)
				add_interpreter(&py);
			interpreters[i] = py.interp_addr;
			for (uint64_t n = 0; n < NR_NEW; n++)
				threads[n] = (struct fake_item){
					NULL, IDENT + n,
					fake_thread_object(&py, FAKE_OWN_DICT, IDENT + n, "a")};
			dict = fake_dict(&py, threads, NR_NEW);
			item.value_addr = fake_threading_module(&py, &dict);
			dict = fake_long_dict(&py, &pad, NR_MODULES + i, &item, 1);
			fake_set_modules(&py, &dict);
		}
		sampler = begin_sampler(&py);
		for (uint64_t n = 0; n < NR_NEW; n++) {
			for (size_t i = 0; i < NR_INTERPRETERS; i++) {
				py.interp_addr = interpreters[i];
				begin_threads(&py, IDENT + n, 1);
			}
			sampler->snapshot.is_stale = true;
			py.fake.nr_ranges = 0;
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, (1000 + n) * MS)));
			cr_expect(eq(sz, sink.nr_renamed, (n + 1) * NR_INTERPRETERS), "3.%u",
				  py.minor);
			if (n)
				cr_expect(lt(u64, py.fake.nr_ranges, FEW), "3.%u: %zu", py.minor,
					  (size_t)py.fake.nr_ranges);
		}
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}
