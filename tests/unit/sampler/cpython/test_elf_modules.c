/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/elf_modules.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "procmem/process.h"
#include "tests/support/fake_memory.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

/* Parse lines of maps without their end address: each mapping has one page. */
static int parse(struct maps *ret_maps, const char *const lines[], size_t nr_lines)
{
	char text[4096];
	size_t used = 0;

	for (size_t i = 0; i < nr_lines && lines[i]; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", lines[i]);
	return maps_parse(text, used, ret_maps);
}

enum { MAX_LINES = 12, MAX_EXPECTED = 4 };

struct expected_module {
	enum module_kind kind;
	size_t code; /* all are indices of mappings */
	size_t header;
	size_t first;
	size_t end;
};

static void expect_module(const char *name, const struct maps *maps,
			  const struct elf_module *module, const struct expected_module *expected)
{
	cr_expect(eq(int, module->kind, expected->kind), "%s", name);
	cr_expect(eq(sz, (size_t)(module->code - maps->mappings), expected->code), "%s", name);
	cr_expect(eq(sz, (size_t)(module->header - maps->mappings), expected->header), "%s", name);
	cr_expect(eq(sz, module->first, expected->first), "%s", name);
	cr_expect(eq(sz, module->end, expected->end), "%s", name);
}

Test(elf_modules, lists_what_is_loaded)
{
	static const struct {
		const char *name;
		const char *lines[MAX_LINES];
		struct expected_module expected[MAX_EXPECTED];
		size_t nr_expected;
	} cases[] = {
		{"a library with .bss",
		 {"1000-2000 r--p 00000000 08:01 7 /lib/liba.so",
		  "2000-3000 r-xp 00001000 08:01 7 /lib/liba.so",
		  "3000-4000 rw-p 00002000 08:01 7 /lib/liba.so", "4000-5000 rw-p 00000000 00:00 0",
		  "5000-6000 rw-p 00000000 00:00 0 [heap]"},
		 {{MODULE_OTHER, 1, 0, 0, 4}},
		 1},
		{"libpython first, no data files",
		 {"1000-2000 r-xp 00000000 08:01 7 /lib/liba.so",
		  "2000-3000 rw-s 00000000 08:01 8 /var/data",
		  "3000-4000 r--p 00000000 08:01 9 /lib/libpython3.so",
		  "4000-5000 r-xp 00001000 08:01 9 /lib/libpython3.so"},
		 {{MODULE_LIBPYTHON, 3, 2, 2, 4}, {MODULE_OTHER, 0, 0, 0, 1}},
		 2},
		{"a libpython whose code is separate",
		 {"1000-2000 r--p 00000000 08:01 9 /lib/libpython3.so",
		  "2000-3000 rwxp 00000000 00:00 0"},
		 {{MODULE_LIBPYTHON, 0, 0, 0, 2}},
		 1},
		{"loaded twice",
		 {"1000-2000 r--p 00000000 08:01 7 /lib/liba.so",
		  "2000-3000 r-xp 00001000 08:01 7 /lib/liba.so",
		  "4000-5000 r--p 00000000 08:01 7 /lib/liba.so",
		  "5000-6000 r-xp 00001000 08:01 7 /lib/liba.so"},
		 {{MODULE_OTHER, 1, 0, 0, 4}, {MODULE_OTHER, 3, 2, 3, 4}},
		 2},
		{"code in two pieces",
		 {"1000-2000 r-xp 00000000 08:01 7 /lib/liba.so",
		  "2000-3000 rwxp 00001000 08:01 7 /lib/liba.so"},
		 {{MODULE_OTHER, 0, 0, 0, 2}},
		 1},
		{"no mapping", {NULL}, {{0}}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_modules modules = {0};
		struct maps maps = {0};

		cr_assert(zero(int, parse(&maps, cases[i].lines, MAX_LINES)), "%s", cases[i].name);
		cr_assert(zero(int, elf_modules_list(&maps, "", &modules)));
		cr_assert(eq(sz, modules.nr_modules, cases[i].nr_expected), "%s", cases[i].name);
		for (size_t j = 0; j < modules.nr_modules; j++)
			expect_module(cases[i].name, &maps, &modules.modules[j],
				      &cases[i].expected[j]);
		elf_modules_done(&modules);
		maps_done(&maps);
	}
	elf_modules_done(NULL);
}

Test(elf_modules, executable_comes_first)
{
	struct process process = PROCESS_CLOSED;
	struct elf_modules modules;
	struct maps maps;
	char exe[PATH_MAX];

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	process_executable(&process, exe);
	cr_assert(zero(int, elf_modules_list(&maps, exe, &modules)));
	cr_assert(lt(sz, 1, modules.nr_modules));
	cr_expect(eq(int, modules.modules[0].kind, MODULE_EXECUTABLE));
	cr_expect(zero(int, strcmp(modules.modules[0].code->path, exe)));
	cr_expect(eq(int, modules.modules[1].kind, MODULE_OTHER));
	elf_modules_done(&modules);
	maps_done(&maps);
	process_close(&process);
}

/* Every word of the data is visited, and nothing else. Unmapped memory is skipped. */
Test(elf_modules, data_is_visited_once)
{
	static const char *const lines[] = {
		"1000-2000 r-xp 00000000 08:01 7 /lib/liba.so",
		"2000-100000 rw-p 00001000 08:01 7 /lib/liba.so",
		"100000-200000 rw-p 00000000 00:00 0",
		"200000-300000 rw-p 00000000 08:01 8 /lib/libb.so",
	};
	struct elf_module module = {.first = 0, .end = 3};
	uint64_t next = 0x2000;
	struct module_data data;
	struct fake_memory fake;
	struct maps maps;

	cr_assert(zero(int, parse(&maps, lines, 4)));
	fake_memory_init(&fake);
	(void)fake_memory_map(&fake, 0x1000, 0x2ff000);
	for (uint64_t addr = 0x1000; addr < 0x300000; addr += 8)
		fake_memory_write_u64(&fake, addr, addr);
	for (module_data_init(&data, &fake.memory, &maps, &module); module_data_next(&data);) {
		cr_expect(le(u64, data.addr, next));
		cr_expect(zero(u64, data.addr % 8 + data.size % 8));
		for (size_t i = 0; i < data.size; i += 8)
			cr_assert(eq(u64, field_u64(data.block, i), data.addr + i));
		if (data.addr > 0x2000)
			cr_expect(eq(u64, next - data.addr, MODULE_DATA_OVERLAP_BYTES));
		next = data.addr + data.size;
	}
	cr_expect(eq(u64, next, 0x200000));
	module_data_done(&data);
	fake_memory_done(&fake);
	maps_done(&maps);
}

/* A file mapped thousands of times does not hide a libpython after it. */
Test(elf_modules, libpython_is_found_after_the_limit)
{
	enum { NR = 3 * ELF_MODULES_MAX };
	struct mapping *mappings = calloc(NR + 1, sizeof(*mappings));
	struct maps maps = {.mappings = mappings, .nr_mappings = NR + 1};
	struct elf_modules modules;

	for (size_t i = 0; i <= NR; i++)
		mappings[i] = (struct mapping){.start = 0x10000 + i * 0x1000,
					       .end = 0x11000 + i * 0x1000,
					       .inode = i == NR ? 2 : 1,
					       .readable = true,
					       .executable = true,
					       .path = i == NR ? "/libpython3.so" : "/x"};
	cr_assert(zero(int, elf_modules_list(&maps, "", &modules)));
	cr_expect(eq(sz, modules.nr_modules, ELF_MODULES_MAX + 1));
	cr_expect(eq(int, modules.modules[0].kind, MODULE_LIBPYTHON));
	cr_expect(eq(ptr, (void *)modules.modules[1].code, mappings));
	elf_modules_done(&modules);
	free(mappings);
}
