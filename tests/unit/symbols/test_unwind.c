/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/unwind.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_module.h"

#define MODULE_ADDR 0x7f0000000000
#define STACK_ADDR  0x7ffe00000000
#define CODE_VADDR  FAKE_MODULE_CODE_VADDR

/* A module with call frame information written by hand, and a stack. */
struct target {
	struct fake_memory fake;
	struct mapping mapping;
	struct maps maps;
	struct module_files *files;
	struct unwind_modules *modules;
	struct stack_window window;
	struct registers registers;
	struct unwind_frame frames[16];
	struct registers outermost;
	size_t max_frames;
	struct module_map map;
	size_t nr_frames;
};

/*
 * Write functions of 0x100 bytes each from CODE_VADDR on, which have their return address below
 * the CFA. 0 saves nothing else; 1 saves the frame pointer, as its rules say up to its end; 2 is
 * where a signal handler returns to; 3 is outermost; 4 has a frame pointer; 5 has a CFA that
 * depends on register 0; 6 puts its caller's sp below its own.
 */
static void write_functions(struct cfi_bytes *bytes)
{
	static const uint8_t start[] = {DW_CFA_def_cfa, CFI_SP, 8, DW_CFA_offset | CFI_RETURN, 1};
	static const struct {
		uint8_t nr;
		uint8_t program[24];
	} functions[] = {
		{0, {0}},
		{4, {DW_CFA_def_cfa_offset, 16, DW_CFA_offset | CFI_FRAME_POINTER, 2}},
		/* The saved pc and sp are 32 and 40 bytes above sp, CFI_KEPT 48. */
		{22,
		 {DW_CFA_def_cfa_expression,
		  3,
		  DW_OP_breg0 + CFI_SP,
		  40,
		  DW_OP_deref,
		  DW_CFA_expression,
		  CFI_RETURN,
		  2,
		  DW_OP_breg0 + CFI_SP,
		  32,
		  DW_CFA_expression,
		  CFI_SP,
		  2,
		  DW_OP_breg0 + CFI_SP,
		  40,
		  DW_CFA_expression,
		  CFI_KEPT,
		  2,
		  DW_OP_breg0 + CFI_SP,
		  48,
		  DW_CFA_nop,
		  DW_CFA_nop}},
		{2, {DW_CFA_undefined, CFI_RETURN}},
		{5, {DW_CFA_def_cfa, CFI_FRAME_POINTER, 16, DW_CFA_offset | CFI_FRAME_POINTER, 2}},
		{3, {DW_CFA_def_cfa, 0, 8}},
		{3, {DW_CFA_val_offset_sf, CFI_SP, 2}},
	};
	size_t common = cfi_bytes_common(bytes, "", NULL, 0, start, sizeof(start));
	size_t signal = cfi_bytes_common(bytes, "zRS", "\0", 1, start, sizeof(start));

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const size_t entry =
			cfi_bytes_begin(bytes, cfi_bytes_id(bytes, i == 2 ? signal : common));

		cfi_bytes_put(bytes, CODE_VADDR + 0x100 * i, 8);
		cfi_bytes_put(bytes, 0x100, 8);
		if (i == 2)
			cfi_bytes_put(bytes, 0, 1);
		cfi_bytes_append(bytes, functions[i].program, functions[i].nr);
		cfi_bytes_end(bytes, entry);
	}
	cfi_bytes_put(bytes, 0, 4);
}

/* The address at offset in a function. */
static remote_addr code_addr(unsigned int function, unsigned int offset)
{
	return MODULE_ADDR + CODE_VADDR + 0x100 * function + offset;
}

/* Make a stack of these words. The thread is at pc, with sp at word sp_word. */
static void target_init(struct target *target, const uint64_t *words, size_t nr_words,
			remote_addr pc, size_t sp_word)
{
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};

	*target = (struct target){.registers = {.is_interrupted = true},
				  .max_frames = sizeof(target->frames) / sizeof(target->frames[0])};
	fake_memory_init(&target->fake);
	write_functions(&bytes);
	fake_module_map(&target->fake, MODULE_ADDR, &bytes);
	fake_memory_map_bytes(&target->fake, STACK_ADDR, words, nr_words * sizeof(words[0]));
	target->mapping = (struct mapping){.start = MODULE_ADDR,
					   .end = MODULE_ADDR + FAKE_MODULE_BYTES,
					   .inode = 1,
					   .path = "/m"};
	target->maps = (struct maps){.mappings = &target->mapping, .nr_mappings = 1};
	for (unsigned int i = 1; i < NR_REGISTERS; i++)
		registers_set(&target->registers, i, 0x1000 * i);
	registers_set(&target->registers, REGISTER_SP, STACK_ADDR + 8 * sp_word);
	registers_set(&target->registers, REGISTER_PC, pc);
	cr_assert(zero(int, module_map_init(&target->map, &target->maps)));
	target->files = module_files_create();
	cr_assert(ne(ptr, target->files, NULL));
	cr_assert(zero(int, unwind_modules_create(&target->fake.memory, &target->map, NULL,
						  target->files, &target->modules)));
	cr_assert(zero(int, stack_window_init(&target->window, &target->fake.memory)));
}

static void target_done(struct target *target)
{
	stack_window_done(&target->window);
	unwind_modules_destroy(target->modules);
	module_files_destroy(target->files);
	module_map_done(&target->map);
	fake_memory_done(&target->fake);
}

static int unwind(struct target *target)
{
	struct unwound unwound = {
		.frames = target->frames,
		.max_frames = target->max_frames,
	};
	int err = unwind_stack(target->modules, &target->window, &target->registers, &unwound);

	target->nr_frames = unwound.nr_frames;
	target->outermost = unwound.registers;
	return err;
}

/* Take one step from the innermost frame, to the caller's registers. */
static int step(struct target *target, remote_addr *ret_cfa)
{
	return unwind_step(target->modules, &target->window, &target->registers, ret_cfa);
}

Test(unwind, unwinds_from_a_leaf_to_the_outermost_frame)
{
	const uint64_t words[] = {code_addr(1, 0x20), 0xbbbb, code_addr(3, 0x10), 0};
	struct target target;

	target_init(&target, words, 4, code_addr(0, 0), 0);
	cr_assert(zero(int, unwind(&target)));
	cr_assert(eq(sz, target.nr_frames, 3));
	cr_expect(eq(u64, target.frames[0].pc, code_addr(0, 0)));
	cr_expect(eq(u64, target.frames[0].lookup_addr, code_addr(0, 0)));
	cr_expect(eq(u64, target.frames[0].sp, STACK_ADDR));
	cr_expect(eq(u64, target.frames[0].cfa, STACK_ADDR + 8));
	cr_expect(eq(u64, target.frames[1].lookup_addr, code_addr(1, 0x1f)));
	cr_expect(eq(u64, target.frames[1].sp, STACK_ADDR + 8));
	cr_expect(eq(u64, target.frames[1].cfa, STACK_ADDR + 24));
	cr_expect(eq(u64, target.frames[2].pc, code_addr(3, 0x10)));
	cr_expect(eq(u64, target.frames[2].sp, STACK_ADDR + 24));
	/* The registers of the outermost frame: function 1 had saved the frame pointer. */
	cr_expect(eq(u64, target.outermost.values[CFI_FRAME_POINTER], 0xbbbb));
	cr_expect(eq(u64, target.outermost.values[REGISTER_SP], STACK_ADDR + 24));
	target.max_frames = 2;
	cr_assert(eq(int, unwind(&target), -E2BIG));
	cr_expect(eq(u64, target.outermost.values[CFI_FRAME_POINTER], 0x1000 * CFI_FRAME_POINTER));
	target_done(&target);
}

/*
 * A call that does not return may be a function's last instruction; its return address then
 * belongs to the next function.
 */
Test(unwind, return_address_after_a_function_belongs_to_it)
{
	const uint64_t words[] = {code_addr(2, 0), 0xbbbb, code_addr(3, 0x10), 0};
	struct target target;

	target_init(&target, words, 4, code_addr(0, 0), 0);
	cr_assert(zero(int, unwind(&target)));
	cr_assert(eq(sz, target.nr_frames, 3));
	cr_expect(eq(u64, target.frames[1].cfa, STACK_ADDR + 24)); /* the CFA of function 1 */
	target_done(&target);
}

Test(unwind, restores_registers_of_the_caller)
{
	const uint64_t words[] = {0xbbbb, code_addr(3, 1)};
	struct target target;
	remote_addr cfa = 0;

	target_init(&target, words, 2, code_addr(1, 0), 0);
	cr_assert(zero(int, step(&target, &cfa)));
	cr_expect(eq(u64, cfa, STACK_ADDR + 16));
	cr_expect(eq(u64, target.registers.values[CFI_FRAME_POINTER], 0xbbbb));
	cr_expect(eq(u64, target.registers.values[REGISTER_SP], cfa));
	cr_expect(eq(u64, target.registers.values[CFI_KEPT], 0x1000 * CFI_KEPT));
	cr_expect(not(registers_know(&target.registers, 1))); /* not callee-saved */
	cr_expect(not(target.registers.is_interrupted));
	target_done(&target);
}

/* At its return a function has popped the frame pointer, but the rules still have it saved. */
Test(unwind, saves_below_the_stack_pointer_are_ignored)
{
	const uint64_t words[] = {0xdead, code_addr(3, 1)};
	struct target target;
	remote_addr cfa = 0;

	target_init(&target, words, 2, code_addr(4, 0xff), 1);
	registers_set(&target.registers, CFI_FRAME_POINTER, STACK_ADDR);
	cr_assert(zero(int, step(&target, &cfa)));
	cr_expect(eq(u64, cfa, STACK_ADDR + 16));
	cr_expect(eq(u64, target.registers.values[CFI_FRAME_POINTER], STACK_ADDR));
	target_done(&target);
}

/* At a signal the interrupted pc is exact, all registers are restored, and sp may be anywhere. */
Test(unwind, unwinds_through_a_signal_frame)
{
	const uint64_t words[] = {code_addr(3, 1), code_addr(2, 1), 0,	   0, 0, 0,
				  code_addr(0, 0), STACK_ADDR,	    0xabcd};
	struct target target;

	target_init(&target, words, 9, code_addr(0, 0x80), 1);
	cr_assert(zero(int, unwind(&target)));
	cr_assert(eq(sz, target.nr_frames, 4));
	cr_expect(eq(u64, target.frames[1].lookup_addr, code_addr(2, 0)));
	cr_expect(eq(u64, target.frames[2].lookup_addr, code_addr(0, 0)));
	cr_expect(eq(u64, target.frames[2].sp, STACK_ADDR));
	cr_expect(eq(u64, target.frames[3].pc, code_addr(3, 1)));
	target_done(&target);
}

Test(unwind, unwinds_out_of_a_call_to_an_unmapped_address)
{
	const uint64_t words[] = {code_addr(3, 1)};
	struct target target;

	target_init(&target, words, 1, 0, 0);
#if defined(__aarch64__)
	registers_set(&target.registers, REGISTER_LR, words[0]);
#endif
	cr_assert(zero(int, unwind(&target)));
	cr_assert(eq(sz, target.nr_frames, 2));
	cr_expect(eq(u64, target.frames[1].pc, code_addr(3, 1)));
	target_done(&target);

	/* A mapped place without information is different: unwinding stops. */
	target_init(&target, words, 1, code_addr(9, 0), 0);
	cr_expect(eq(int, unwind(&target), -ENOENT));
	cr_expect(eq(sz, target.nr_frames, 1));
	cr_expect(eq(u64, target.frames[0].cfa, 0));
	target_done(&target);
}

/* Only the end of the frame is known. The function has saved its caller's registers there. */
Test(unwind, leaves_a_frame_by_its_end)
{
	const uint64_t words[] = {1, 2, 0xbbbb, code_addr(3, 0x10), 0};
	struct target target;
	struct registers *registers = &target.registers;

	target_init(&target, words, 5, 0, 0);
	registers->known = 0;
	registers_set(registers, REGISTER_SP, STACK_ADDR + 8);
	cr_assert(zero(int, unwind_leave(target.modules, &target.window, code_addr(1, 0x20),
					 STACK_ADDR + 32, registers)));
	cr_expect(eq(u64, registers->values[REGISTER_PC], code_addr(3, 0x10)));
	cr_expect(eq(u64, registers->values[REGISTER_SP], STACK_ADDR + 32));
	cr_expect(eq(u64, registers->values[CFI_FRAME_POINTER], 0xbbbb));
	cr_expect(not(registers_know(registers, CFI_KEPT)));

	/* A frame without bytes; a function without information. */
	registers_set(registers, REGISTER_SP, STACK_ADDR + 32);
	cr_expect(eq(int, -EBADMSG,
		     unwind_leave(target.modules, &target.window, code_addr(1, 0x20),
				  STACK_ADDR + 32, registers)));
	cr_expect(eq(int, -ENOENT,
		     unwind_leave(target.modules, &target.window, MODULE_ADDR + 0x8000,
				  STACK_ADDR + 40, registers)));
	target_done(&target);
}

/* Two modules of one file, also after the maps are read again: the file is read once. */
Test(unwind, file_of_several_modules_is_read_once)
{
	static const uint8_t id[20] = {1}, other_id[20] = {2};
	enum { ONE, SAME, OTHER, NR_MODULES };
	const struct unwind_rule *rules[NR_MODULES];
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	struct mapping mappings[NR_MODULES];
	const struct maps maps = {.mappings = mappings, .nr_mappings = NR_MODULES};
	struct module_map map;
	struct target target;

	target_init(&target, (uint64_t[]){0}, 1, 0, 0);
	write_functions(&bytes);
	for (unsigned int m = 0; m < NR_MODULES; m++) {
		mappings[m] = target.mapping;
		mappings[m].inode = 1 + m;
		mappings[m].start += 2ull * FAKE_MODULE_BYTES * m;
		mappings[m].end += 2ull * FAKE_MODULE_BYTES * m;
		if (m)
			fake_module_map(&target.fake, mappings[m].start, &bytes);
		fake_module_set_build_id(&target.fake, mappings[m].start,
					 m == OTHER ? other_id : id);
	}
	cr_assert(zero(int, module_map_init(&map, &maps)));
	for (unsigned int turn = 0; turn < 2; turn++) {
		struct unwind_modules *modules;

		cr_assert(zero(int, unwind_modules_create(&target.fake.memory, &map, NULL,
							  target.files, &modules)));
		for (unsigned int m = 0; m < NR_MODULES; m++) {
			const remote_addr addr = mappings[m].start + CODE_VADDR;
			const struct cfi_section *section;
			const struct unwind_rule *rule =
				unwind_modules_find(modules, addr, &section);
			uint64_t nr_bytes;
			remote_addr start;

			cr_assert(ne(ptr, (void *)rule, NULL));
			if (!turn)
				rules[m] = rule;
			cr_expect(eq(ptr, (void *)rule, (void *)rules[m]), "%u", m);
			cr_expect(zero(int, unwind_modules_function(modules, addr + 1, &start,
								    &nr_bytes)));
			cr_expect(eq(u64, start, addr));
		}
		cr_expect(eq(ptr, (void *)rules[ONE], (void *)rules[SAME]));
		cr_expect(ne(ptr, (void *)rules[ONE], (void *)rules[OTHER]));
		unwind_modules_destroy(modules);
	}
	module_map_done(&map);
	target_done(&target);
}

/*
 * More instructions than the cache can hold: entries are replaced, and none is mistaken for
 * another.
 */
Test(unwind, cached_rules_are_not_confused)
{
	enum { NR = 0x700, NR_MODULES = 2, NR_TURNS = 3 };
	const struct unwind_rule *first[NR_MODULES][NR];
	const struct cfi_section *sections[NR_MODULES], *section;
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	struct mapping mappings[NR_MODULES];
	struct module_map map;
	struct unwind_modules *modules;
	struct target target;

	target_init(&target, (uint64_t[]){0}, 1, 0, 0);
	write_functions(&bytes);
	fake_module_map(&target.fake, MODULE_ADDR + FAKE_MODULE_BYTES, &bytes);
	for (unsigned int m = 0; m < NR_MODULES; m++) {
		mappings[m] = target.mapping;
		mappings[m].inode = 1 + m;
		mappings[m].start += (remote_addr)FAKE_MODULE_BYTES * m;
		mappings[m].end += (remote_addr)FAKE_MODULE_BYTES * m;
	}
	cr_assert(zero(int, module_map_init(&map, &(struct maps){.mappings = mappings,
								 .nr_mappings = NR_MODULES})));
	cr_assert(zero(int, unwind_modules_create(&target.fake.memory, &map, NULL, target.files,
						  &modules)));
	for (unsigned int turn = 0; turn < NR_TURNS; turn++)
		for (unsigned int i = 0; i < NR * NR_MODULES; i++) {
			const unsigned int m = i / NR;
			const remote_addr addr = mappings[m].start + CODE_VADDR + i % NR;
			const struct unwind_rule *rule =
				unwind_modules_find(modules, addr, &section);

			if (!turn) {
				first[m][i % NR] = rule;
				sections[m] = section;
			}
			cr_expect(ne(ptr, (void *)rule, NULL));
			cr_expect(eq(ptr, (void *)rule, (void *)first[m][i % NR]), "%#x", i);
			cr_expect(eq(ptr, (void *)section, (void *)sections[m]), "%#x", i);
			if (m)
				cr_expect(ne(ptr, (void *)rule, (void *)first[0][i % NR]));
		}
	unwind_modules_destroy(modules);
	module_map_done(&map);
	target_done(&target);
}

Test(unwind, stops_at_a_gap)
{
	static const struct {
		uint64_t words[2];
		remote_addr pc;
		int err;
		size_t nr_frames;
	} cases[] = {
		{{0x1234, 0}, MODULE_ADDR + CODE_VADDR, -ENOENT, 2},
		{{0, 0}, MODULE_ADDR + CODE_VADDR, 0, 1}, /* outermost: no return address */
		{{0, 0}, MODULE_ADDR + CODE_VADDR + 0x500, -ENOENT, 1}, /* register 0 is unknown */
		{{0, 0},
		 MODULE_ADDR + CODE_VADDR + 0x400,
		 -EBADMSG,
		 1}, /* the frame pointer is below sp */
		{{MODULE_ADDR + CODE_VADDR + 0x601, 0},
		 MODULE_ADDR + CODE_VADDR + 0x600,
		 -EBADMSG,
		 1},
		{{MODULE_ADDR + CODE_VADDR + 0x101, 0}, MODULE_ADDR + CODE_VADDR, -EFAULT, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;

		target_init(&target, cases[i].words, 2, cases[i].pc, 0);
		cr_expect(eq(int, unwind(&target), cases[i].err), "%zu", i);
		cr_expect(eq(sz, target.nr_frames, cases[i].nr_frames), "%zu", i);
		target_done(&target);
	}
}

Test(unwind, stops_at_the_frame_limit)
{
	uint64_t words[64];
	struct target target;

	for (size_t i = 0; i < 64; i++)
		words[i] = code_addr(0, 1);
	target_init(&target, words, 64, code_addr(0, 0), 0);
	cr_expect(eq(int, unwind(&target), -E2BIG));
	cr_expect(eq(sz, target.nr_frames, 16));
	target_done(&target);
}

/* A signal frame whose context is itself. */
Test(unwind, nested_signal_frames_are_bounded)
{
	const uint64_t words[] = {0, 0, 0, 0, code_addr(2, 0), STACK_ADDR, 0};
	struct unwind_frame frames[UNWIND_MAX_SIGNAL_FRAMES + 9];
	struct target target;
	struct unwound unwound = {.frames = frames,
				  .max_frames = sizeof(frames) / sizeof(frames[0])};

	target_init(&target, words, 7, code_addr(2, 0), 0);
	cr_expect(eq(int, unwind_stack(target.modules, &target.window, &target.registers, &unwound),
		     -E2BIG));
	cr_expect(eq(sz, unwound.nr_frames, UNWIND_MAX_SIGNAL_FRAMES + 1));
	target_done(&target);
}

/* The kernel's register words that are kept. Each word's value is its index. */
Test(unwind, converts_kernel_register_words)
{
	uint64_t words[REGISTERS_USER_WORDS];
	struct registers registers;

	for (unsigned int i = 0; i < REGISTERS_USER_WORDS; i++)
		words[i] = i;
	registers = registers_of_user(words);
#if defined(__x86_64__)
	cr_expect(eq(u64, registers.values[REGISTER_RBX], 5));
	cr_expect(eq(u64, registers.values[REGISTER_RBP], 4));
	cr_expect(eq(u64, registers.values[REGISTER_SP], 19));
	cr_expect(eq(u64, registers.values[REGISTER_PC], 16));
	cr_expect(eq(u64, registers.values[REGISTER_R12], 3));
	cr_expect(eq(u64, registers.values[REGISTER_R12 + 3], 0));
#elif defined(__aarch64__)
	/* struct user_pt_regs: x0 to x30, sp, pc, pstate. */
	cr_expect(eq(u64, registers.values[REGISTER_X19], 19));
	cr_expect(eq(u64, registers.values[REGISTER_FRAME_POINTER], 29));
	cr_expect(eq(u64, registers.values[REGISTER_LR], 30));
	cr_expect(eq(u64, registers.values[REGISTER_SP], 31));
	cr_expect(eq(u64, registers.values[REGISTER_PC], 32));
#endif
	cr_expect(registers.is_interrupted);
}
