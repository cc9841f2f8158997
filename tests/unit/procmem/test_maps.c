/* SPDX-License-Identifier: MIT */
#include "procmem/maps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

Test(maps, parses_lines)
{
	static const struct {
		const char *line;
		struct mapping expected;
	} cases[] = {
		{"564b8ba4b000-564b8ba51000 r-xp 00002000 fe:00 247498            /usr/bin/head\n",
		 {0x564b8ba4b000, 0x564b8ba51000, 0x2000, 247498, 0xfe, 0, true, false, true, false,
		  "/usr/bin/head"}},
		{"7ff1aa19f000-7ff1aa1ac000 rw-p 00000000 00:00 0 \n",
		 {0x7ff1aa19f000, 0x7ff1aa1ac000, 0, 0, 0, 0, true, true, false, false, ""}},
		{"1000-2000 ---s 00000000 00:00 0\n",
		 {0x1000, 0x2000, 0, 0, 0, 0, false, false, false, false, ""}},
		{"1000-2000 rw-p 00000000 00:00 0                          [heap]\n",
		 {0x1000, 0x2000, 0, 0, 0, 0, true, true, false, false, "[heap]"}},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]",
		 {0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, false, false, true, false,
		  "[vsyscall]"}},
		{"1000-2000 r--p 7fffffff000 103:1f 18446744073709551615 /a b/c\n",
		 {0x1000, 0x2000, 0x7fffffff000, UINT64_MAX, 0x103, 0x1f, true, false, false, false,
		  "/a b/c"}},
		{"1000-2000 r--p 00000000 00:01 7 /memfd:x (deleted)\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, true, "/memfd:x"}},
		{"1000-2000 r--p 00000000 00:01 7 /x (deleted) (deleted)\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, true, "/x (deleted)"}},
		{"1000-2000 r--p 00000000 00:01 7 /x (deleted)y\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, false, "/x (deleted)y"}},
		{"1000-2000 r--p 00000000 00:01 7 /new\\012line\\012\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, false, "/new\nline\n"}},
		{"1000-2000 r--p 00000000 00:01 7 /back\\134slash\\01\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, false, "/back\\134slash\\01"}},
		{"1000-2000 r--p 00000000 00:01 7 /\\012 (deleted)\n",
		 {0x1000, 0x2000, 0, 7, 0, 1, true, false, false, true, "/\n"}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mapping *want = &cases[i].expected;
		struct maps maps = {0};

		cr_assert(zero(int, maps_parse(cases[i].line, strlen(cases[i].line), &maps)), "%s",
			  cases[i].line);
		cr_assert(eq(sz, maps.nr_mappings, 1));
		const struct mapping *got = &maps.mappings[0];

		cr_expect(eq(u64, got->start, want->start), "%s", cases[i].line);
		cr_expect(eq(u64, got->end, want->end), "%s", cases[i].line);
		cr_expect(eq(u64, got->file_offset, want->file_offset), "%s", cases[i].line);
		cr_expect(eq(u64, got->inode, want->inode), "%s", cases[i].line);
		cr_expect(eq(u32, got->dev_major, want->dev_major), "%s", cases[i].line);
		cr_expect(eq(u32, got->dev_minor, want->dev_minor), "%s", cases[i].line);
		cr_expect(eq(int, got->readable, want->readable), "%s", cases[i].line);
		cr_expect(eq(int, got->writable, want->writable), "%s", cases[i].line);
		cr_expect(eq(int, got->executable, want->executable), "%s", cases[i].line);
		cr_expect(eq(int, got->deleted, want->deleted), "%s", cases[i].line);
		cr_expect(eq(str, (char *)got->path, (char *)want->path), "%s", cases[i].line);
		maps_done(&maps);
	}
}

#define GOOD "1000-2000 r--p 00000000 00:01 7 /x\n"

Test(maps, malformed_text_is_refused)
{
	static const struct {
		const char *text;
		size_t size; /* 0: all */
	} cases[] = {
		{"\n", 0},
		{GOOD "\n", 0},
		{"x\n", 0},
		{"1000\n", 0},
		{"1000-2000\n", 0},
		{"1000-2000 \n", 0},
		{"1000-2000 r--\n", 0},
		{"1000-2000 r--p\n", 0},
		{"1000-2000 rwxp 0\n", 0},
		{"1000-2000 rwxp 0 00\n", 0},
		{"1000-2000 rwxp 0 00:00\n", 0},
		{"1000-2000 rwxp 0 00:00 \n", 0},
		{"1000-2000 rwxp 0 00:00 x\n", 0},
		{"1000-2000 rwxp 0 00:00 7x\n", 0},
		{"1000-2000 rwxp 0 00:00 7a /x\n", 0},
		{"1000-2000 rwxq 0 00:00 7 /x\n", 0},
		{"1000-2000 xwrp 0 00:00 7 /x\n", 0},
		{"1000-2000 rwxp 0 100000000:00 7 /x\n", 0},
		{"1000-2000 rwxp 0 00:100000000 7 /x\n", 0},
		{"1000-2000 rwxp 0 00:00 18446744073709551616 /x\n", 0},
		{"1000-10000000000002000 rwxp 0 00:00 7 /x\n", 0},
		{"0x1000-0x2000 rwxp 0 00:00 7 /x\n", 0},
		{"-1000-2000 rwxp 0 00:00 7 /x\n", 0},
		{"1000-1000 rwxp 0 00:00 7 /x\n", 0},
		{"2000-1000 rwxp 0 00:00 7 /x\n", 0},
		{GOOD GOOD, 0},
		{GOOD "1fff-3000 r--p 00000000 00:01 7 /x\n", 0},
		{GOOD "2000-3000 r--p 00000000 00:01 7 /x\ntail", 0},
		{"1000-2000 r--p 0 00:00 7 /x\0y\n", 30},
		{"1000-2000\0r--p 0 00:00 7 /x\n", 28},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
		struct maps maps = {0};

		cr_expect(eq(int, maps_parse(cases[i].text, size, &maps), -EBADMSG), "%s",
			  cases[i].text);
		maps_done(&maps);
	}
}

Test(maps, truncated_lines_are_read_in_bounds)
{
	static const char text[] =
		"564b8ba4b000-564b8ba51000 r-xp 00002000 fe:00 247498    /usr/a\\012b (deleted)\n";

	for (size_t size = 0; size < sizeof(text); size++) {
		char *exact = malloc(size + !size); /* exact: a sanitizer sees overreads */
		struct maps maps = {0};

		memcpy(exact, text, size);
		int err = maps_parse(exact, size, &maps);

		cr_expect(eq(int, err, size == 0 || size >= 47 ? 0 : -EBADMSG), "%zu", size);
		maps_done(&maps);
		free(exact);
	}
}

Test(maps, number_of_lines_is_limited)
{
	size_t nr_lines = MAPS_MAX_MAPPINGS + 1;
	char *text = malloc(nr_lines);
	struct maps maps = {0};

	memset(text, '\n', nr_lines);
	cr_expect(eq(int, maps_parse(text, nr_lines, &maps), -E2BIG));
	cr_expect(eq(int, maps_parse(text, nr_lines - 1, &maps), -EBADMSG));
	free(text);
	maps_done(&maps);
	maps_done(NULL);
}

Test(maps, compares_maps)
{
	static const char base[] =
		"1000-2000 r-xp 00000000 fe:00 7 /a\n3000-4000 rw-p 00000000 00:00 0\n";
	static const struct {
		const char *text;
		bool same;
	} cases[] = {
		{base, true},
		{"1000-2000 r-xp 00000000 fe:00 7 /b\n3000-4000 rw-p 00000000 00:00 0\n", true},
		{"1000-2000 r-xp 00000000 fe:00 7 /a\n", false},
		{"1000-2000 r-xp 00000000 fe:00 7 /a\n3000-5000 rw-p 00000000 00:00 0\n", false},
		{"0800-2000 r-xp 00000000 fe:00 7 /a\n3000-4000 rw-p 00000000 00:00 0\n", false},
		{"1000-2000 r-xp 00000000 fe:00 8 /a\n3000-4000 rw-p 00000000 00:00 0\n", false},
		{"1000-2000 r-xp 00000000 fe:01 7 /a\n3000-4000 rw-p 00000000 00:00 0\n", false},
		{"1000-2000 r-xp 00001000 fe:00 7 /a\n3000-4000 rw-p 00000000 00:00 0\n", false},
		{"1000-2000 r--p 00000000 fe:00 7 /a\n3000-4000 rw-p 00000000 00:00 0\n", false},
		{"1000-2000 r-xp 00000000 fe:00 7 /a\n3000-4000 r--p 00000000 00:00 0\n", false},
		{"1000-2000 r-xp 00000000 fe:00 7 /a\n3000-4000 -w-p 00000000 00:00 0\n", false},
	};
	struct maps first;

	cr_assert(zero(int, maps_parse(base, strlen(base), &first)));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maps second;

		cr_assert(zero(int, maps_parse(cases[i].text, strlen(cases[i].text), &second)));
		cr_expect(eq(int, maps_same(&first, &second), cases[i].same), "%s", cases[i].text);
		maps_done(&second);
	}
	maps_done(&first);
}

Test(maps, finds_the_end_of_a_module)
{
	static const char text[] = "1000-2000 r--p 00000000 08:01 7 /lib/a\n"  /* 0 */
				   "2000-3000 r-xp 00001000 08:01 7 /lib/a\n"  /* 1 */
				   "3000-4000 rw-p 00000000 00:00 0 \n"	       /* 2 */
				   "4000-5000 rw-p 00002000 08:01 7 /lib/a\n"  /* 3 */
				   "5000-6000 rw-p 00000000 00:00 0 \n"	       /* 4 */
				   "7000-8000 r--p 00000000 08:02 7 /lib/b\n"  /* 5 */
				   "8000-9000 r--p 00000000 08:02 8 /lib/c\n"  /* 6 */
				   "9000-a000 r--p 00000000 08:02 7 /lib/b\n"; /* 7 */
	static const size_t ends[] = {4, 4, 3, 4, 5, 6, 7, 8};
	struct maps maps;

	cr_assert(zero(int, maps_parse(text, sizeof(text) - 1, &maps)));
	cr_assert(eq(sz, maps.nr_mappings, 8));
	for (size_t i = 0; i < 8; i++)
		cr_expect(eq(sz, maps_module_end(&maps, i), ends[i]), "%zu", i);
	maps_done(&maps);
	cr_expect(zero(sz, maps.nr_mappings));
	maps_done(&maps);
}

/* Every segment known to the loader is in a mapping with its permissions. */
static int check_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct maps *maps = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		remote_addr addr = info->dlpi_addr + segment->p_vaddr;
		const struct mapping *mapping = maps_find(maps, addr);

		cr_assert(ne(ptr, (void *)mapping, NULL), "%s", info->dlpi_name);
		cr_expect(mapping->executable);
		if (info->dlpi_name[0] != '/')
			continue;
		cr_expect(
			eq(u64, mapping->file_offset + (addr - mapping->start), segment->p_offset));
		char *real = realpath(info->dlpi_name, NULL);

		cr_expect(eq(str, (char *)mapping->path, real));
		free(real);
	}
	return 0;
}

Test(maps, agree_with_the_loader)
{
	struct process process = PROCESS_CLOSED;
	struct maps maps;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	dl_iterate_phdr(check_object, &maps);
	maps_done(&maps);
	process_close(&process);
}

Test(maps, are_read_in_several_calls)
{
	enum { NR_PAGES = 2000 };
	char *pages = mmap(NULL, NR_PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct process process = PROCESS_CLOSED;
	struct maps maps;

	cr_assert(ne(ptr, pages, MAP_FAILED));
	for (int i = 0; i < NR_PAGES; i += 2)
		cr_assert(zero(int, mprotect(pages + i * 4096, 4096, PROT_NONE)));
	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	for (int i = 0; i < NR_PAGES; i++) {
		const struct mapping *mapping = maps_find(&maps, (uintptr_t)pages + i * 4096 + 1);

		cr_assert(ne(ptr, (void *)mapping, NULL));
		cr_expect(eq(int, mapping->readable, i % 2));
	}
	maps_done(&maps);
	process_close(&process);
}

Test(maps, finds_the_mapping_of_an_address)
{
	static const char text[] = "1000-2000 r--p 00000000 00:00 0 a\n"
				   "2000-3000 r--p 00000000 00:00 0 b\n"
				   "5000-6000 r--p 00000000 00:00 0 c\n";
	static const struct {
		remote_addr addr;
		size_t index;
		bool is_inside;
	} cases[] = {
		{0, 0, false},	   {0xfff, 0, false},  {0x1000, 0, true},
		{0x1fff, 0, true}, {0x2000, 1, true},  {0x3000, 2, false},
		{0x5abc, 2, true}, {0x6000, 3, false}, {UINT64_MAX, 3, false},
	};
	struct maps empty = {0};
	struct maps maps;

	cr_assert(zero(int, maps_parse(text, sizeof(text) - 1, &maps)));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mapping *expected =
			cases[i].is_inside ? &maps.mappings[cases[i].index] : NULL;

		cr_expect(eq(sz, maps_search(&maps, cases[i].addr), cases[i].index), "case %zu", i);
		cr_expect(eq(int, maps_find(&maps, cases[i].addr) == expected, 1), "case %zu", i);
	}
	cr_expect(eq(sz, maps_search(&empty, 1), 0));
	maps_done(&maps);
}
