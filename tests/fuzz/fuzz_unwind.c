/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a section of call frame information, and as a loaded module with a stack that
 * leads through it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/unwind/cfi_expression.h"
#include "symbols/unwind/unwind.h"
#include "tests/support/fake_memory.h"

#define IMAGE_ADDR 0x7f0000000000
#define STACK_ADDR 0x7ffe00000000
#define NR_WORDS   256
#define MAX_FRAMES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

/* Let all registers but the pc point into the stack. */
static struct registers make_registers(remote_addr pc)
{
	struct registers registers = {.is_interrupted = true};

	for (unsigned int i = 0; i < NR_REGISTERS; i++)
		registers_set(&registers, i, STACK_ADDR + 8 * i);
	registers_set(&registers, REGISTER_SP, STACK_ADDR);
	registers_set(&registers, REGISTER_PC, pc);
	return registers;
}

/* Fill the stack with return addresses of all places in the module, and stack addresses. */
static void fill_stack(uint64_t words[NR_WORDS], size_t size)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		words[i] = i % 3 ? IMAGE_ADDR + i * 37 % (size + 1) : STACK_ADDR + 8 * i;
}

static void use_rule(const struct unwind_rule *rule, const struct cfi_section *section,
		     struct stack_window *window)
{
	const struct registers registers = make_registers(IMAGE_ADDR);
	const uint64_t cfa = STACK_ADDR + 16;
	uint64_t value;

	require(rule->nr_saves <= NR_REGISTERS && rule->return_register < NR_REGISTERS &&
		rule->cfa_register < NR_REGISTERS);
	for (unsigned int i = 0; i < rule->nr_saves; i++)
		if (rule->saves[i].kind >= CFI_AT_EXPRESSION)
			(void)cfi_expression_value(section, (uint32_t)rule->saves[i].value,
						   &registers, window, &cfa, &value);
}

static void use_section(const uint8_t *data, size_t size, enum cfi_kind kind,
			struct stack_window *window)
{
	struct cfi_section section = {
		.bytes = malloc(size), .nr_bytes = size, .vaddr = 0x1000, .kind = kind};
	struct cfi_function function = {.nr_bytes = 0};
	struct unwind_table *table = NULL;
	uint64_t offset = 0;

	memcpy((void *)section.bytes, data, size);
	if (unwind_table_create(&section, 0, &table))
		return;
	while (!cfi_next_function(&section, offset, &function.common, &function, &offset)) {
		const uint64_t vaddrs[] = {function.start_vaddr,
					   function.start_vaddr + function.nr_bytes / 2,
					   function.start_vaddr + function.nr_bytes - 1};

		for (size_t i = 0; i < sizeof(vaddrs) / sizeof(vaddrs[0]); i++) {
			const struct unwind_rule *rule = unwind_table_find(table, vaddrs[i]);

			if (rule)
				use_rule(rule, &section, window);
		}
	}
	unwind_table_destroy(table);
}

static void use_module(struct fake_memory *fake, size_t size, struct stack_window *window)
{
	struct mapping mapping = {.start = IMAGE_ADDR,
				  .end = IMAGE_ADDR + size,
				  .executable = true,
				  .inode = size & 1,
				  .path = ""};
	const struct maps maps = {.mappings = &mapping, .nr_mappings = 1};
	struct unwind_frame frames[MAX_FRAMES];
	struct module_files *files = module_files_create();
	struct unwind_modules *modules = NULL;
	struct module_map map;

	require(files && !module_map_init(&map, &maps) &&
		!unwind_modules_create(&fake->memory, &map, NULL, files, &modules));
	for (size_t i = 0; i <= 64; i++) {
		const struct registers registers = make_registers(IMAGE_ADDR + size * i / 64);
		struct unwound unwound = {.frames = frames, .max_frames = MAX_FRAMES};

		(void)unwind_stack(modules, window, &registers, &unwound);
		require(unwound.nr_frames >= 1 && unwound.nr_frames <= MAX_FRAMES);
		for (size_t frame = 0; frame + 1 < unwound.nr_frames; frame++)
			require(frames[frame].cfa != 0);
	}
	unwind_modules_destroy(modules);
	module_files_destroy(files);
	module_map_done(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack_window window;
	struct fake_memory fake;
	uint64_t words[NR_WORDS];

	if (!size)
		return 0;
	fake_memory_init(&fake);
	fill_stack(words, size);
	fake_memory_map_bytes(&fake, IMAGE_ADDR, data, size);
	fake_memory_map_bytes(&fake, STACK_ADDR, words, sizeof(words));
	if (!stack_window_init(&window, &fake.memory)) {
		use_section(data, size, CFI_EH_FRAME, &window);
		use_section(data, size, CFI_DEBUG_FRAME, &window);
		use_module(&fake, size, &window);
		stack_window_done(&window);
	}
	fake_memory_done(&fake);
	return 0;
}
