/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/runtime.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/fake_python.h"
#include "tests/support/no_files.h"

static int gone(struct remote_memory *memory)
{
	(void)memory;
	return -ESRCH;
}

static int still_there(struct remote_memory *memory)
{
	(void)memory;
	return 0;
}

/* Make every later read fail as if the process had ended. */
static void end_now(struct fake_memory *fake, size_t range_index)
{
	(void)range_index;
	fake->error = -ESRCH;
}

/*
 * Mappings without files, so that nothing is opened: one of no Python, and two whose names are a
 * Python's.
 */
static struct mapping no_python = {.start = 0x1000, .end = 0x2000, .readable = true, .path = ""};
static struct mapping old_python = {
	.start = 0x1000,
	.end = 0x2000,
	.readable = true,
	.executable = true,
	.path = "/usr/bin/python2.7",
};
static struct mapping python = {
	.start = 0x1000,
	.end = 0x2000,
	.readable = true,
	.executable = true,
	.path = "/usr/lib/libpython3.6m.so.1.0",
};

static struct program program_of(const struct maps *maps, struct remote_memory *memory)
{
	static struct image_source no_images = {.ops = &no_files_ops};

	return (struct program){
		.name = "process 1",
		.is_alive = true,
		.exe_path = "",
		.maps = maps,
		.memory = memory,
		.images = &no_images,
	};
}

/* If the process has ended meanwhile, that is the answer, whatever else is wrong. */
Test(runtime, reports_the_end_before_anything_else)
{
	static const struct {
		const char *name;
		struct maps maps;
		int (*check)(struct remote_memory *memory);
		void (*before_range)(struct fake_memory *fake, size_t range_index);
		int expected;
	} cases[] = {
		{"no Python",
		 {.mappings = &no_python, .nr_mappings = 1},
		 still_there,
		 NULL,
		 -ENOENT},
		{"idle", {.mappings = &python, .nr_mappings = 1}, still_there, NULL, -EAGAIN},
		{"idle, gone", {.mappings = &python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"old", {.mappings = &old_python, .nr_mappings = 1}, still_there, NULL, -ENOTSUP},
		{"no check", {.mappings = &old_python, .nr_mappings = 1}, NULL, NULL, -ENOTSUP},
		{"gone", {.mappings = &no_python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"old, gone", {.mappings = &old_python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"ends", {.mappings = &no_python, .nr_mappings = 1}, still_there, end_now, -ESRCH},
		{"old, ends", {.mappings = &old_python, .nr_mappings = 1}, NULL, end_now, -ESRCH},
		{"ended before its maps were read", {.nr_mappings = 0}, still_there, NULL, -ESRCH},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message message = {0};
		struct runtime runtime;
		struct fake_memory fake;

		fake_memory_init(&fake);
		struct remote_memory_ops ops = *fake.memory.ops;

		ops.check = cases[i].check;
		fake.memory.ops = &ops;
		fake.before_range = cases[i].before_range;
		const struct program program = program_of(&cases[i].maps, &fake.memory);

		cr_expect(eq(int, runtime_find(&program, NULL, &runtime, &message),
			     cases[i].expected),
			  "%s", cases[i].name);
		cr_expect(eq(int, message.text[0] != '\0', cases[i].expected != -ESRCH), "%s",
			  cases[i].name);
		fake_memory_done(&fake);
	}
}

/*
 * A library that cannot be opened, with a CPython 3.minor in its variables: code and data of a
 * file, then .bss with the text of sys.version. It has no symbols.
 */
struct library {
	struct fake_python py;
	struct mapping mappings[5];
	struct maps maps;
	remote_addr text_addr;
};

enum { TEXT_BYTES = 0x1000 };

static struct mapping mapping_of(remote_addr start, remote_addr end, uint64_t inode,
				 const char *path)
{
	return (struct mapping){.start = start,
				.end = end,
				.inode = inode,
				.readable = true,
				.writable = true,
				.path = path};
}

static void library_init(struct library *library, uint32_t minor, const char *text)
{
	struct fake_python *py = &library->py;

	fake_python_init(py, minor);
	(void)fake_python_thread(py, 7);
	remote_addr data_addr = py->runtime_addr & ~0xfffull;
	remote_addr bss_addr = (py->runtime_addr + 0x8000) & ~0xfffull;

	library->text_addr = bss_addr + 0x800;
	library->mappings[0] = mapping_of(data_addr - 0x1000, data_addr, 5, "/app/plugin.so");
	library->mappings[0].executable = true;
	library->mappings[0].writable = false;
	library->mappings[1] = mapping_of(data_addr, bss_addr, 5, "/app/plugin.so");
	library->mappings[2] = mapping_of(bss_addr, bss_addr + TEXT_BYTES, 0, "");
	library->mappings[3] =
		mapping_of(py->interp_addr & ~0xfffull, py->interp_addr + 0x100000, 0, "[heap]");
	library->mappings[4] = mapping_of(0x5700000000, 0x5800000000, 0, "");
	library->maps = (struct maps){.mappings = library->mappings, .nr_mappings = 5};
	(void)fake_memory_map(&py->fake, data_addr - 0x1000, 0x1000);
	(void)fake_memory_map(&py->fake, py->runtime_addr + 4096,
			      bss_addr + TEXT_BYTES - py->runtime_addr - 4096);
	fake_memory_write(&py->fake, library->text_addr, text, strlen(text));
	fake_memory_write_u64(&py->fake,
			      py->runtime_addr + py->build.offsets.runtime.interpreters_head + 8,
			      py->interp_addr);
}

/* No interpreter: not yet begun, or ended. */
static void library_end(struct library *library)
{
	uint32_t head = library->py.build.offsets.runtime.interpreters_head;

	fake_memory_write_u64(&library->py.fake, library->py.runtime_addr + head, 0);
	fake_memory_write_u64(&library->py.fake, library->py.runtime_addr + head + 8, 0);
}

static int find(struct library *library, struct runtime *ret_runtime, struct message *reterr)
{
	const struct program program = program_of(&library->maps, &library->py.fake.memory);

	return runtime_find(&program, NULL, ret_runtime, reterr);
}

#define TEXT_OF(version) version " (main, May  9 2026, 10:00:00) \n[GCC 12.2.0]"

Test(runtime, is_found_without_symbols)
{
	static const struct {
		uint32_t minor;
		const char *text;
		bool ended;
		int err;
		const char *found_by;
		const char *in_message;
	} cases[] = {
		{11, TEXT_OF("3.11.2"), false, 0, "scan", ""},
		{12, TEXT_OF("3.12.2"), false, 0, "scan", ""},
		{13, "", false, 0, "cookie", ""},
		{14, TEXT_OF("2.7.18"), false, 0, "cookie", ""},
		{15, TEXT_OF("3.15.2"), false, 0, "cookie", ""},
		{11, TEXT_OF("3.11.2"), true, -EAGAIN, "", "/app/plugin.so"},
		{14, "", true, -EAGAIN, "", "/app/plugin.so"},
		{11, "", false, -ENOENT, "", "no CPython"},
		{11, TEXT_OF("2.7.18"), false, -ENOTSUP, "", "2.7.18"},
		{11, TEXT_OF("3.5.10"), false, -ENOTSUP, "", "3.5.10"},
		{11, "3.11.2 (feeb267ead3e, Dec 29 2022, 14:23:21)\n[PyPy 7.3.11]", false, -ENOTSUP,
		 "", "PyPy"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message message = {0};
		struct runtime runtime = {.found_by = ""};
		struct library library;

		library_init(&library, cases[i].minor, cases[i].text);
		if (cases[i].ended)
			library_end(&library);
		cr_expect(eq(int, find(&library, &runtime, &message), cases[i].err), "%zu: %s", i,
			  message.text);
		cr_expect(eq(str, (char *)runtime.found_by, (char *)cases[i].found_by), "%zu", i);
		cr_expect(ne(ptr, (void *)strstr(message.text, cases[i].in_message), NULL),
			  "%zu: %s", i, message.text);
		if (!cases[i].err) {
			cr_expect(eq(u64, runtime.addr, library.py.runtime_addr));
			cr_expect(
				eq(u32, runtime.build.version_hex >> 16, 0x0300 + cases[i].minor));
			cr_expect(zero(int, strcmp(runtime.image_path, "/app/plugin.so")));
		}
		fake_python_done(&library.py);
	}
}

/* Long lists that are valid up to their end, with many words that lead to them. */
static void add_long_lists(struct library *library)
{
	enum { NR_THREADS = 20000, THREAD_BYTES = 512, NR_WORDS = 100 };
	struct fake_python *py = &library->py;
	const struct py_offsets *offsets = &py->build.offsets;
	const remote_addr first_addr = 0x5780000000;
	uint8_t *bytes = fake_memory_map(&py->fake, first_addr, NR_THREADS * THREAD_BYTES);

	for (uint64_t i = 0; i < NR_THREADS; i++) {
		uint64_t next_addr = i + 1 < NR_THREADS ? first_addr + (i + 1) * THREAD_BYTES : 0;

		memcpy(bytes + i * THREAD_BYTES + offsets->thread.next, &next_addr, 8);
		memcpy(bytes + i * THREAD_BYTES + offsets->thread.interp, &py->interp_addr, 8);
	}
	fake_memory_write_u64(&py->fake, py->interp_addr + offsets->interpreter.threads_head,
			      first_addr);
	/* Not the first interpreter, so that no word is the head of the list. */
	fake_memory_write_u64(&py->fake, py->interp_addr + offsets->interpreter.id, 1);
	for (uint64_t i = 0; i < NR_WORDS; i++)
		fake_memory_write_u64(&py->fake, library->text_addr + 0x100 + 8 * i,
				      py->interp_addr);
}

Test(runtime, number_of_reads_is_bounded)
{
	struct message message = {0};
	struct runtime runtime;
	struct library library;

	library_init(&library, 11, TEXT_OF("3.11.2"));
	add_long_lists(&library);
	cr_expect(eq(int, find(&library, &runtime, &message), -ENOENT));
	cr_expect(ne(ptr, strstr(message.text, "given up"), NULL), "%s", message.text);
	cr_expect(lt(u64, 100000, library.py.fake.nr_calls), "the lists are walked");
	cr_expect(lt(u64, library.py.fake.nr_calls, 600000));
	fake_python_done(&library.py);
}

Test(runtime, signal_stops_the_search)
{
	const volatile sig_atomic_t stop = 1;
	struct message message = {0};
	struct runtime runtime;
	struct library library;

	library_init(&library, 11, TEXT_OF("3.11.2"));
	const struct program program = program_of(&library.maps, &library.py.fake.memory);

	cr_expect(eq(int, runtime_find(&program, &stop, &runtime, &message), -EINTR));
	cr_expect(lt(u64, library.py.fake.nr_calls, 10));
	fake_python_done(&library.py);
}

/* If a core has lost its list of files, the interpreter may be in any memory. */
Test(runtime, core_without_files_is_searched_whole)
{
	static const uint32_t minors[] = {11, 14};

	for (size_t i = 0; i < sizeof(minors) / sizeof(*minors); i++) {
		struct message message = {0};
		struct runtime runtime;
		struct library library;

		library_init(&library, minors[i], minors[i] == 11 ? TEXT_OF("3.11.2") : "");
		for (size_t k = 0; k < library.maps.nr_mappings; k++) {
			library.mappings[k].inode = 0;
			library.mappings[k].path = "";
		}
		struct program program = program_of(&library.maps, &library.py.fake.memory);

		cr_expect(lt(int, runtime_find(&program, NULL, &runtime, &message), 0));
		program.is_alive = false;
		cr_assert(zero(int, runtime_find(&program, NULL, &runtime, &message)), "%s",
			  message.text);
		cr_expect(eq(u64, runtime.addr, library.py.runtime_addr));
		cr_expect(zero(uint, runtime.nr_others));
		fake_python_done(&library.py);
	}
}
