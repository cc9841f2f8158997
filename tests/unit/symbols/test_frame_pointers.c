/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/frame_pointers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_module.h"

#if defined(__x86_64__)

#define MODULE_ADDR 0x7f0000000000
#define STACK_ADDR  0x7ffe00000000

/* A function of gcc 12 -O2 -fno-omit-frame-pointer; test_stack_depth.c has more. */
static const uint8_t code[] = {
	0x55,			      /*  0: push %rbp */
	0x48, 0x89, 0xe5,	      /*  1: mov %rsp,%rbp */
	0x48, 0x83, 0xec, 0x30,	      /*  4: sub $0x30,%rsp */
	0xe8, 0x00, 0x00, 0x00, 0x00, /*  8: call */
	0xc9,			      /*  d: leave */
	0xc3,			      /*  e: ret */
};
enum { AFTER_CALL = 0xd };

Test(frame_pointers, failed_reads_are_repeated)
{
	static const int errors[] = {-ENOMEM, -ESRCH, -EPERM};
	static const uint8_t start[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	static const uint8_t program[] = {
		DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,	 16, DW_CFA_offset | 6, 2,
		DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, 6};
	const remote_addr code_addr = MODULE_ADDR + FAKE_MODULE_CODE_VADDR;
	struct mapping mapping = {.start = MODULE_ADDR,
				  .end = MODULE_ADDR + FAKE_MODULE_BYTES,
				  .inode = 1,
				  .path = "/m"};
	const struct maps maps = {.mappings = &mapping, .nr_mappings = 1};
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	struct module_files *files = module_files_create();
	struct unwind_modules *modules;
	struct registers frame = {.known = 0};
	const struct cfi_section *section;
	struct fake_memory fake;
	struct module_map map;

	fake_module_function(&bytes, cfi_bytes_common(&bytes, "", NULL, 0, start, sizeof(start)), 0,
			     program, sizeof(program));
	cfi_bytes_put(&bytes, 0, 4);
	fake_memory_init(&fake);
	fake_module_map(&fake, MODULE_ADDR, &bytes);
	fake_memory_write(&fake, code_addr, code, sizeof(code));
	cr_assert(ne(ptr, files, NULL));
	cr_assert(zero(int, module_map_init(&map, &maps)));
	cr_assert(zero(int, unwind_modules_create(&fake.memory, &map, NULL, files, &modules)));
	registers_set(&frame, REGISTER_PC, code_addr + AFTER_CALL);
	registers_set(&frame, REGISTER_SP, STACK_ADDR);
	cr_assert(ne(ptr,
		     (void *)unwind_modules_find(modules, registers_lookup_addr(&frame), &section),
		     NULL));
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct frame_pointers pointers;
		uint64_t value = 0;

		frame_pointers_init(&pointers, &fake.memory, modules);
		fake.error = errors[i];
		cr_expect(eq(int, frame_pointers_find(&pointers, &frame, &value), errors[i]));
		fake.error = 0;
		cr_expect(zero(int, frame_pointers_find(&pointers, &frame, &value)), "error %d",
			  errors[i]);
		cr_expect(eq(u64, value, STACK_ADDR + 0x30), "error %d", errors[i]);
		/* What was found is kept. */
		fake.error = errors[i];
		cr_expect(zero(int, frame_pointers_find(&pointers, &frame, &value)));
	}
	unwind_modules_destroy(modules);
	module_files_destroy(files);
	module_map_done(&map);
	fake_memory_done(&fake);
}

#endif
