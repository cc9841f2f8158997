/* SPDX-License-Identifier: MIT */
#include "symbols/elf/kernel_names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse bytes, which may contain NUL. */
static int parse_bytes(const char *bytes, size_t nr_bytes, struct kernel_names **ret_names)
{
	char *text = malloc(nr_bytes + 1);

	cr_assert(ne(ptr, text, NULL));
	memcpy(text, bytes, nr_bytes);
	text[nr_bytes] = '\0';
	return kernel_names_parse(text, nr_bytes, ret_names);
}

static int parse(const char *text, struct kernel_names **ret_names)
{
	return parse_bytes(text, strlen(text), ret_names);
}

/* Expect "name module" at an address, or "" for none. */
static void expect_at(const struct kernel_names *names, uint64_t addr, const char *expected)
{
	const char *name = "", *module = "";
	char found[256] = "";

	if (kernel_names_find(names, addr, &name, &module))
		(void)snprintf(found, sizeof(found), "%s %s", name, module);
	cr_expect(zero(int, strcmp(found, expected)), "%#llx: \"%s\", not \"%s\"",
		  (unsigned long long)addr, found, expected);
}

/* Unsorted symbols of kernel and modules, aliases, and data between functions. */
Test(kernel_names, finds_the_symbol_of_an_address)
{
	static const char text[] = "ffffffff81000200 t second\n"
				   "ffffffffc0201000 t read_block\t[ext4]\n"
				   "ffffffff81000100 D data_too\n"
				   "ffffffff81000100 T first\n"
				   "ffffffff81000100 t first_alias\n"
				   "ffffffff81000300 d table\n"
				   "0000000000000000 A per_cpu\n"
				   "ffffffff81000400 W weak\n"
				   "ffffffffffffff00 t last";
	static const struct {
		uint64_t addr;
		const char *expected;
	} cases[] = {
		{0, ""},
		{0xffffffff810000ff, ""},
		{0xffffffff81000100, "first "},
		{0xffffffff810001ff, "first "},
		{0xffffffff81000200, "second "},
		{0xffffffff810002ff, "second "},
		{0xffffffff81000300, ""},
		{0xffffffff810003ff, ""},
		{0xffffffff81000400, "weak "},
		{0xffffffff811003ff, "weak "},
		{0xffffffff81100400, ""},
		{0xffffffffc0201234, "read_block [ext4]"},
		{UINT64_MAX, "last "},
	};
	struct kernel_names *names;

	cr_assert(zero(int, parse(text, &names)));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_at(names, cases[i].addr, cases[i].expected);
	kernel_names_destroy(names);
}

Test(kernel_names, finds_the_address_of_a_symbol)
{
	static const char text[] = "ffffffff81000100 T first\n"
				   "ffffffffc0201000 t of_module\t[ext4]\n"
				   "ffffffff81000200 D data\n"
				   "ffffffff81000300 t last";
	struct kernel_names *names;
	uint64_t addr = 0;

	cr_assert(zero(int, parse(text, &names)));
	cr_expect(kernel_names_addr(names, "last", &addr));
	cr_expect(eq(u64, addr, 0xffffffff81000300));
	cr_expect(kernel_names_addr(names, "first", &addr));
	cr_expect(eq(u64, addr, 0xffffffff81000100));
	cr_expect(not(kernel_names_addr(names, "of_module", &addr)));
	cr_expect(not(kernel_names_addr(names, "data", &addr)));
	cr_expect(not(kernel_names_addr(names, "fir", &addr)));
	cr_expect(not(kernel_names_addr(names, "", &addr)));
	cr_expect(eq(u64, addr, 0xffffffff81000100));
	kernel_names_destroy(names);
}

/* Malformed lines are skipped; the others count. */
Test(kernel_names, malformed_lines_are_skipped)
{
	static const char *const lines[] = {
		"",
		" ",
		"1000",
		"1000 ",
		"1000 t",
		"1000 t ",
		"1000 t\n",
		"1000 tt name",
		"1000t name",
		"-1000 t name",
		" 1000 t name",
		"+1000 t name",
		"xyz t name",
		"1000 . name",
		"11111111111111111000 t name",
		"1000 t two words",
		"1000 t bell\a",
		"1000 t \xc3\xa9t\xc3\xa9",
		"1000 t name\t",
		"1000 t name\t[a b]",
		"1000 t name\t[a]\t[b]",
		"1000 t \t[module]",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct kernel_names *names;
		char text[256];

		(void)snprintf(text, sizeof(text), "%s\n2000 t good\n", lines[i]);
		cr_assert(zero(int, parse(text, &names)), "line %zu", i);
		expect_at(names, 0x1000, "");
		expect_at(names, 0x2000, "good ");
		kernel_names_destroy(names);
	}
}

Test(kernel_names, nul_bytes_cut_a_line)
{
	static const char text[] = "1000\0 t cut\n\0\0\n2000 t go\0od\n3000 t whole\n\0";
	struct kernel_names *names;

	cr_assert(zero(int, parse_bytes(text, sizeof(text), &names)));
	expect_at(names, 0x1000, "");
	expect_at(names, 0x2000, "go ");
	expect_at(names, 0x3000, "whole ");
	kernel_names_destroy(names);
}

/* What the kernel shows to users who may not see addresses, and files of another kind. */
Test(kernel_names, hidden_addresses_are_refused)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{"0000000000000000 T one\n0000000000000000 t two\t[ext4]\n", -EPERM},
		{"", -EBADMSG},
		{"\n\n", -EBADMSG},
		{"nothing of that kind\n", -EBADMSG},
		{"ffffffff81000300 d table\n", -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kernel_names *names = NULL;

		cr_expect(eq(int, parse(cases[i].text, &names), cases[i].err), "case %zu", i);
		cr_expect(zero(ptr, names), "case %zu", i);
	}
}

/*
 * The running kernel: the functions of /proc/kallsyms are found at their addresses, unless an
 * alias is found there.
 */
Test(kernel_names, reads_this_kernels_symbols)
{
	struct kernel_names *names;
	char line[512], symbol[256], type;
	unsigned long long addr;
	unsigned int nr_found = 0;
	int err = kernel_names_read(&names);
	FILE *file;

	if (err)
		cr_skip_test("/proc/kallsyms: %s", strerror(-err));
	file = fopen("/proc/kallsyms", "re");
	cr_assert(ne(ptr, file, NULL));
	while (fgets(line, sizeof(line), file)) {
		const char *name, *module;

		if (sscanf(line, "%llx %c %255s", &addr, &type, symbol) == 3 && type == 'T' &&
		    kernel_names_find(names, addr, &name, &module))
			nr_found += strcmp(name, symbol) == 0;
	}
	(void)fclose(file);
	cr_expect(nr_found > 1000, "%u", nr_found);
	kernel_names_destroy(names);
}
