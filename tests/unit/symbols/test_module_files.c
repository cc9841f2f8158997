/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static const Elf64_Phdr small[] = {{.p_type = PT_LOAD, .p_memsz = 0x1000}};
static const Elf64_Phdr large[] = {{.p_type = PT_LOAD, .p_memsz = 0x2000}};

static struct module_file_id make_id(unsigned int number, const Elf64_Phdr *segments)
{
	return (struct module_file_id){
		.build_id = {(uint8_t)number, (uint8_t)(number >> 8)},
		.build_id_bytes = 20,
		.segments = segments,
		.nr_segments = segments != NULL,
	};
}

static struct module_file *get(struct module_files *files, struct module_file_id id)
{
	struct module_file *file = module_files_get(files, &id);

	cr_assert(ne(ptr, file, NULL));
	return file;
}

Test(module_files, files_are_shared_by_build_id_and_segments)
{
	struct module_files *files = module_files_create();
	Elf64_Phdr copy[] = {large[0]};
	struct module_file *file = get(files, make_id(1, copy));

	cr_expect(not(file->has_read_memory));
	file->has_read_memory = true;
	module_files_put(files, file);
	cr_expect(eq(ptr, file, get(files, make_id(1, large))));
	copy[0].p_memsz++; /* the table has its own copy */
	cr_expect(eq(ptr, file, get(files, make_id(1, large))));
	cr_expect(file->has_read_memory);
	cr_expect(ne(ptr, file, get(files, make_id(2, large))));
	cr_expect(ne(ptr, file, get(files, make_id(1, small))));
	module_files_destroy(files);
}

/* Files without identification are never shared. Each is freed when it is put back. */
Test(module_files, unidentified_files_are_not_shared)
{
	static const struct module_file_id nothing;
	const struct module_file_id cases[] = {
		nothing, make_id(1, NULL), {.segments = small, .nr_segments = 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct module_files *files = module_files_create();
		struct module_file *first = get(files, cases[i]);
		struct module_file *second = get(files, cases[i]);

		cr_expect(ne(ptr, first, second), "%zu", i);
		module_files_put(files, first);
		module_files_put(files, second);
		module_files_put(files, NULL);
		module_files_destroy(files);
	}
}

/* Files in use stay, however many there are. */
Test(module_files, unused_files_are_limited)
{
	struct module_files *files = module_files_create();
	struct module_file *used = get(files, make_id(0, small));

	used->has_read_symbols = true;
	for (unsigned int i = 1; i < MODULE_FILES_KEPT; i++) {
		struct module_file *file = get(files, make_id(i, small));

		file->has_read_symbols = true;
		module_files_put(files, file);
	}
	for (unsigned int i = 1; i < MODULE_FILES_KEPT; i++) {
		struct module_file *file = get(files, make_id(i, small));

		cr_expect(file->has_read_symbols, "%u", i);
		module_files_put(files, file);
	}
	module_files_put(files, get(files, make_id(MODULE_FILES_KEPT, small)));
	cr_expect(not(get(files, make_id(1, small))->has_read_symbols));
	cr_expect(eq(ptr, used, get(files, make_id(0, small))));
	cr_expect(used->has_read_symbols);
	module_files_destroy(files);
}

/* The bytes read from all files are limited, summed; a forgotten file makes room. */
Test(module_files, counts_bytes_of_unwind_information)
{
	enum { NR_BYTES = 16 };
	struct module_files *files = module_files_create();
	struct module_file *file = get(files, (struct module_file_id){.build_id_bytes = 0});
	const struct cfi_section section = {.bytes = calloc(1, NR_BYTES), .nr_bytes = NR_BYTES};

	cr_expect(eq(u64, module_files_bytes_left(files), MODULE_FILES_MAX_UNWIND_BYTES));
	file->eh_frame = module_files_table(files, &section, 0);
	cr_expect(ne(ptr, file->eh_frame, NULL));
	cr_expect(
		eq(u64, module_files_bytes_left(files), MODULE_FILES_MAX_UNWIND_BYTES - NR_BYTES));
	module_files_put(files, file);
	cr_expect(eq(u64, module_files_bytes_left(files), MODULE_FILES_MAX_UNWIND_BYTES));
	module_files_destroy(files);
}
