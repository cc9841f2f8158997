/* SPDX-License-Identifier: MIT */
#include "symbols/elf/function_symbols.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <link.h>

#include "tests/support/image_file.h"

/* Functions to look up. Written in assembler, so that their symbols are exactly these. */
__asm__(".text\n"
	".p2align 4\n"
	".globl function_global\n"
	".weak function_weak\n"
	".type function_global, @function\n"
	".type function_weak, @function\n"
	".type function_static, @function\n"
	"function_global:\n"
	"function_weak:\n"
	"function_static: .fill 32, 1, 0x90\n"
	"function_label: .fill 32, 1, 0x90\n"
	".size function_global, 64\n"
	".size function_weak, 64\n"
	".size function_static, 64\n"
	"function_bare: .fill 8, 1, 0x90\n"
	"\"$d.of_the_data\": .fill 4, 1, 0x90\n"
	"\"$x\": .fill 4, 1, 0x90\n"
	".size function_bare, 0\n");

extern const char function_global[];

static uint64_t own_bias(void)
{
	return ((struct link_map *)dlopen(NULL, RTLD_LAZY))->l_addr;
}

static struct function_symbols *symbols_of(const char *path)
{
	struct function_symbols *symbols = function_symbols_create();

	cr_assert(ne(ptr, symbols, NULL));
	cr_assert(zero(int, function_symbols_add(symbols, open_path(path))));
	return symbols;
}

static char *find(struct function_symbols *symbols, uint64_t vaddr)
{
	const char *name = function_symbols_find(symbols, vaddr);

	return (char *)(name ? name : "none");
}

Test(function_symbols, lists_functions_of_this_program)
{
	struct function_symbols *symbols = symbols_of("/proc/self/exe");
	const uint64_t start = (uintptr_t)function_global - own_bias();

	cr_expect(eq(str, find(symbols, start), (char *)"function_global"));
	cr_expect(eq(str, find(symbols, start + 31), (char *)"function_global"));
	/* A label inside the function does not hide it. */
	cr_expect(eq(str, find(symbols, start + 32), (char *)"function_global"));
	cr_expect(eq(str, find(symbols, start + 63), (char *)"function_global"));
	cr_expect(eq(str, find(symbols, start + 64), (char *)"function_bare"));
	/* What marks code and data for other tools is no function. */
	cr_expect(eq(str, find(symbols, start + 72), (char *)"function_bare"));
	cr_expect(eq(str, find(symbols, start + 76), (char *)"function_bare"));
	cr_expect(eq(str, find(symbols, 0), (char *)"none"));
	cr_expect(eq(str, find(symbols, UINT64_MAX), (char *)"none"));
	function_symbols_destroy(symbols);
}

/* A second image with the same vaddrs, such as a debug file, adds its symbols. */
Test(function_symbols, second_image_adds_its_symbols)
{
	struct library library = find_library();
	struct function_symbols *symbols = symbols_of(library.path);
	const uint64_t vaddr = library.symbol_addr - library.load_bias;

	cr_expect(eq(str, find(symbols, vaddr), (char *)"getppid"));
	cr_assert(zero(int, function_symbols_add(symbols, open_path(library.path))));
	cr_expect(eq(str, find(symbols, vaddr + 1), (char *)"getppid"));
	cr_expect(lt(int, function_symbols_add(symbols, open_path(library.path)), 0));
	function_symbols_destroy(symbols);
}

Test(function_symbols, empty_set_finds_no_function)
{
	struct function_symbols *symbols = function_symbols_create();

	cr_expect(eq(str, find(symbols, 0x1000), (char *)"none"));
	function_symbols_destroy(symbols);
	function_symbols_destroy(NULL);
}
