/* SPDX-License-Identifier: MIT */
#include "symbols/elf/symtab.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "tests/support/image_file.h"

/* Symbols to look up. They are not static, so the linker keeps them. */
int symtab_test_data[3];
int symtab_test_function(void);

int symtab_test_function(void)
{
	return symtab_test_data[1];
}

/* A local symbol, only in .symtab. */
static int symtab_test_local[5];

Test(symtab, reads_symbols_of_this_program)
{
	struct image *image = open_path("/proc/self/exe");
	uint64_t load_bias = ((struct link_map *)dlopen(NULL, RTLD_LAZY))->l_addr;
	uint64_t vaddr = 0;
	uint64_t size = 0;
	struct {
		char name[32];
		uint64_t addr;
		uint64_t size; /* 0: any */
	} symbols[] = {
		{"symtab_test_data", (uintptr_t)symtab_test_data, sizeof(symtab_test_data)},
		{"symtab_test_local", (uintptr_t)symtab_test_local, sizeof(symtab_test_local)},
		{"symtab_test_function", (uintptr_t)symtab_test_function, 0},
	};

	symtab_test_local[0] = 1;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		cr_expect(zero(int, symtab_find(image, symbols[i].name, &vaddr, &size)), "%s",
			  symbols[i].name);
		cr_expect(eq(u64, vaddr + load_bias, symbols[i].addr), "%s", symbols[i].name);
		cr_expect(eq(u64, size, symbols[i].size ? symbols[i].size : size), "%s",
			  symbols[i].name);
	}
	cr_expect(eq(int, symtab_find(image, "symtab_test", &vaddr, &size), -ENOENT));
	cr_expect(eq(int, symtab_find(image, "", &vaddr, &size), -ENOENT));
	cr_expect(eq(int, symtab_find(image, "getppid_", &vaddr, &size), -ENOENT));
	image_close(image);
}

Test(symtab, reads_dynamic_symbols_without_section_headers)
{
	struct library library = find_library();
	uint64_t vaddr = 0;
	uint64_t symbol_size = 0;
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	Elf64_Ehdr header;

	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = 0;
	header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	struct image *image = open_bytes(bytes, size);

	cr_expect(eq(int, image_section(image, ".text", &vaddr, &symbol_size), -ENOENT));
	cr_expect(zero(int, symtab_find(image, "getppid", &vaddr, &symbol_size)));
	cr_expect(eq(u64, vaddr + library.load_bias, library.symbol_addr));
	cr_expect(lt(u64, 0, symbol_size));
	cr_expect(eq(int, symtab_find(image, "getppi", &vaddr, &symbol_size), -ENOENT));
	image_close(image);
}

/* The entry with this tag in the dynamic segment, or NULL. */
static Elf64_Dyn *dynamic_entry(char *bytes, int64_t tag)
{
	const Elf64_Ehdr *header = (void *)bytes;
	const Elf64_Phdr *segments = (void *)(bytes + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++) {
		Elf64_Dyn *entry = (void *)(bytes + segments[i].p_offset);

		for (; segments[i].p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == tag)
				return entry;
	}
	return NULL;
}

/* Find symbols of the C library by the hash table with this tag, without the other one. */
static void find_by_hash(int64_t kept, int64_t other)
{
	struct library library = find_library();
	uint64_t vaddr = 0;
	uint64_t symbol_size;
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	Elf64_Dyn *hidden = dynamic_entry(bytes, other);

	if (!dynamic_entry(bytes, kept))
		cr_skip("the C library has no such hash table");
	if (hidden)
		hidden->d_tag = DT_DEBUG;
	((Elf64_Ehdr *)(void *)bytes)->e_shoff = 0;
	struct image *image = open_bytes(bytes, size);

	cr_expect(zero(int, symtab_find(image, "getppid", &vaddr, &symbol_size)));
	cr_expect(eq(u64, vaddr + library.load_bias, library.symbol_addr));
	cr_expect(eq(int, symtab_find(image, "getppid_", &vaddr, &symbol_size), -ENOENT));
	image_close(image);
}

Test(symtab, finds_dynamic_symbols_by_the_hash_table)
{
	find_by_hash(DT_HASH, DT_GNU_HASH);
}

Test(symtab, finds_dynamic_symbols_by_the_gnu_hash_table)
{
	find_by_hash(DT_GNU_HASH, DT_HASH);
}
