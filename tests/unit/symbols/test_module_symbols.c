/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_symbols.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <unistd.h>

#include "procmem/live.h"
#include "procmem/process.h"
#include "tests/support/image_file.h"
#include "tests/support/machine_offers.h"
#include "tests/support/no_files.h"
#include "tests/support/own_process.h"

/* The memory of this process, of which one read fails. */
struct failing_memory {
	struct remote_memory memory;
	struct live_memory live;
	size_t nr_before; /* reads before the one that fails */
	int error;	  /* 0: none fails */
};

static int read_ranges(struct remote_memory *memory, struct remote_range *ranges, size_t nr_ranges)
{
	struct failing_memory *failing = (struct failing_memory *)memory;

	if (failing->error && failing->nr_before-- == 0)
		return failing->error;
	return remote_memory_read_ranges(&failing->live.memory, ranges, nr_ranges);
}

static int open_without_memory(struct image_source *source, const struct mapping *mapping,
			       struct image **ret_image)
{
	(void)source, (void)mapping, (void)ret_image;
	return -ENOMEM;
}

static const struct image_source_ops no_memory = {.open = open_without_memory};

/* The C library in this process, and a search for its symbols. */
struct search {
	struct process process;
	struct failing_memory failing;
	struct maps all;
	struct maps maps; /* of the library; borrows from all */
	struct library library;
	struct image_source source;
	struct module_symbols *symbols;
};

static void search_init(struct search *search)
{
	static const struct remote_memory_ops ops = {.read_ranges = read_ranges};
	static const char *const names[] = {"getppid", "no such symbol", "getpid"};
	size_t first;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	*search = (struct search){.process = PROCESS_CLOSED,
				  .failing.memory.ops = &ops,
				  .source.ops = &no_files_ops,
				  .library = find_library()};
	search->process = own_process_open();
	live_memory_init(&search->failing.live, &search->process);
	cr_assert(zero(int, maps_read(&search->process, &search->all)));
	first = maps_search(&search->all, search->library.load_bias);
	search->maps = (struct maps){.mappings = &search->all.mappings[first],
				     .nr_mappings = maps_module_end(&search->all, first) - first};
	search->symbols = module_symbols_create(&search->failing.memory, names, 3);
	cr_assert(ne(ptr, search->symbols, NULL));
}

static void search_done(struct search *search)
{
	module_symbols_destroy(search->symbols);
	maps_done(&search->all);
	process_close(&search->process);
}

static int find(struct search *search)
{
	return module_symbols_find(search->symbols, &search->maps, &search->source);
}

static uint32_t count_places(const struct search *search, uint32_t name_index)
{
	uint32_t nr_places;

	(void)module_symbols_places(search->symbols, name_index, &nr_places);
	return nr_places;
}

static void expect_found(struct search *search, const char *what, size_t number)
{
	uint32_t nr_places;
	const remote_addr *places;

	cr_expect(zero(int, find(search)), "%s %zu", what, number);
	places = module_symbols_places(search->symbols, 0, &nr_places);
	cr_assert(eq(u32, nr_places, 1), "%s %zu", what, number);
	cr_expect(eq(u64, places[0], search->library.symbol_addr));
	cr_expect(zero(u32, count_places(search, 1)), "%s %zu", what, number);
	cr_expect(eq(u32, count_places(search, 2), 1), "%s %zu", what, number);
}

Test(module_symbols, finds_symbols_of_a_loaded_library)
{
	struct search search;

	search_init(&search);
	expect_found(&search, "call", 0);
	expect_found(&search, "call", 1);
	search_done(&search);
}

/* A search that lacks memory adds nothing, and the next one finds what it would have found. */
Test(module_symbols, search_without_memory_is_repeated)
{
	size_t nr_before = 0;
	int err;

	do {
		struct search search;

		search_init(&search);
		search.failing.nr_before = nr_before;
		search.failing.error = -ENOMEM;
		err = find(&search);
		if (err) {
			cr_expect(eq(int, err, -ENOMEM), "read %zu", nr_before);
			cr_expect(zero(u32, count_places(&search, 0)), "read %zu", nr_before);
		}
		search.failing.error = 0;
		expect_found(&search, "read", nr_before);
		search_done(&search);
		nr_before++;
	} while (err);
	cr_expect(lt(sz, 10, nr_before), "reads");
}

/* Memory that may not be read has no symbols, which is no error: other sources may have some. */
Test(module_symbols, unreadable_memory_has_no_symbols)
{
	static const int errors[] = {-EPERM, -ESRCH, -EFAULT};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct search search;

		search_init(&search);
		search.failing.error = errors[i];
		cr_expect(zero(int, find(&search)), "error %d", errors[i]);
		cr_expect(zero(u32, count_places(&search, 0)), "error %d", errors[i]);
		search_done(&search);
	}
}

Test(module_symbols, files_are_opened_again)
{
	struct search search;

	search_init(&search);
	search.source.ops = &no_memory;
	cr_expect(eq(int, find(&search), -ENOMEM));
	search.source.ops = &no_files_ops;
	expect_found(&search, "call", 1);
	search_done(&search);
}
