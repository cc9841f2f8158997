/* SPDX-License-Identifier: MIT */
#include "sampler/native/native_stacks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_module.h"
#include "tests/support/fake_python.h"

#if defined(__x86_64__)

#define MODULE_ADDR 0x7f0000000000
#define STACK_ADDR  0x7ffe00000000

/* Code in no file, without unwind information. */
enum { BARE_ADDR = 0x60000, BARE_BYTES = 0x10000 };

/* Bytes from the loop's entry frame to the end of its C frame. */
enum { DISTANCE = 0xa0, NR_WORDS = 256, MAX_STACK = 16 };

/* The functions of the module. */
enum function_index { LEAF, LOOP, CALLER, OUTERMOST };

/* A leaf called by bare code. Outside of it are a loop and C functions up to the outermost one. */
struct bridged {
	struct fake_python py;
	struct sampler sampler; /* only its build is used */
	struct mapping mappings[2];
	struct maps maps;
	struct native_stacks stacks;
	uint64_t words[NR_WORDS];
	struct stack_window window;
	struct registers registers;
	struct loop_entry entries[3]; /* entries of the Python frames, outermost first */
};

static remote_addr code_addr(enum function_index function)
{
	return fake_module_code_addr(MODULE_ADDR, function);
}

/* The loop saves rbp 24 bytes below the end of its frame. Its caller has a frame pointer in rbp. */
static void map_functions(struct fake_memory *fake)
{
	static const uint8_t start[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	static const struct {
		uint8_t nr;
		uint8_t program[8];
	} functions[] = {
		[LEAF] = {0, {0}},
		[LOOP] = {5, {DW_CFA_def_cfa_offset, 0x80, 4, DW_CFA_offset | 6, 3}},
		[CALLER] = {5, {DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}},
		[OUTERMOST] = {2, {DW_CFA_undefined, 16}},
	};
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	const size_t common = cfi_bytes_common(&bytes, "", NULL, 0, start, sizeof(start));

	for (unsigned int i = LEAF; i <= OUTERMOST; i++)
		fake_module_function(&bytes, common, i, functions[i].program, functions[i].nr);
	cfi_bytes_put(&bytes, 0, 4);
	fake_module_map(fake, MODULE_ADDR, &bytes);
}

static void put(struct bridged *bridged, remote_addr addr, uint64_t value)
{
	memcpy((uint8_t *)bridged->words + (addr - STACK_ADDR), &value, sizeof(value));
}

/*
 * Put a loop with its entry frame at entry_addr. The caller's rbp is saved saved_words below the
 * end of its frame. Returns that end.
 */
static remote_addr put_loop(struct bridged *bridged, remote_addr entry_addr,
			    unsigned int saved_words, remote_addr caller_frame_pointer)
{
	const remote_addr cfa = entry_addr + DISTANCE;

	put(bridged, cfa - 8, code_addr(CALLER));
	put(bridged, cfa - 8 * (remote_addr)saved_words, caller_frame_pointer);
	return cfa;
}

/* Put the return address pc at the end of a frame with this frame pointer. */
static void put_caller(struct bridged *bridged, remote_addr frame_pointer, remote_addr pc)
{
	put(bridged, frame_pointer + 8, pc);
}

static const remote_addr entry_addr = STACK_ADDR + 0x200;
static const remote_addr caller_frame_addr = STACK_ADDR + 0x300;

static void bridged_init(struct bridged *bridged)
{
	struct native_stacks_options options;

	*bridged = (struct bridged){
		.mappings = {{.start = BARE_ADDR,
			      .end = BARE_ADDR + BARE_BYTES,
			      .readable = true,
			      .executable = true,
			      .path = ""},
			     {.start = MODULE_ADDR,
			      .end = MODULE_ADDR + FAKE_MODULE_BYTES,
			      .readable = true,
			      .executable = true,
			      .inode = 1,
			      .path = "/m"}},
		/* The last Python frame is in the same loop as the one before. */
		.entries = {{.is_entry = true}, {.is_entry = true, .c_addr = entry_addr}, {0}},
	};
	fake_python_init(&bridged->py, 14);
	bridged->py.build.traits.has_unnamed_executors = false;
	map_functions(&bridged->py.fake);
	bridged->sampler.build = &bridged->py.build;
	code_cache_init(&bridged->sampler.codes, &bridged->py.fake.memory, &bridged->py.build);
	bridged->maps = (struct maps){.mappings = bridged->mappings, .nr_mappings = 2};
	options = (struct native_stacks_options){.memory = &bridged->py.fake.memory,
						 .maps = &bridged->maps,
						 .sampler = &bridged->sampler,
						 .max_frames = MAX_STACK};
	cr_assert(zero(int, native_stacks_init(&bridged->stacks, &options)));
	bridged->stacks.loop.distance_bytes = DISTANCE;
	bridged->window = (struct stack_window){.start = STACK_ADDR,
						.bytes = (const uint8_t *)bridged->words,
						.nr_bytes = sizeof(bridged->words)};
	registers_set(&bridged->registers, REGISTER_SP, STACK_ADDR);
	registers_set(&bridged->registers, REGISTER_PC, code_addr(LEAF));
	bridged->registers.is_interrupted = true;
	put(bridged, STACK_ADDR, BARE_ADDR + 0x10);
	put_loop(bridged, entry_addr, 2, caller_frame_addr);
	put_caller(bridged, caller_frame_addr, code_addr(OUTERMOST));
}

static void bridged_done(struct bridged *bridged)
{
	native_stacks_done(&bridged->stacks);
	code_cache_done(&bridged->sampler.codes);
	fake_python_done(&bridged->py);
}

static void unwind(struct bridged *bridged)
{
	native_stacks_unwind(&bridged->stacks, &bridged->registers, &bridged->window,
			     bridged->stacks.options.max_frames);
}

static void cross(struct bridged *bridged)
{
	native_stacks_cross_gaps(&bridged->stacks, bridged->entries, 3, &bridged->window);
}

/*
 * Unwind, cross the gap, and describe the frames by letters, innermost first. "!" marks a gap
 * at the end.
 */
static const char *crossed(struct bridged *bridged)
{
	static char text[MAX_STACK + 2];
	const struct native_stacks *stacks = &bridged->stacks;
	size_t length = 0;

	unwind(bridged);
	cross(bridged);
	for (size_t i = 0; i < stacks->nr_frames; i++) {
		const struct unwind_frame *frame = &stacks->frames[i];
		const uint64_t offset = frame->lookup_addr - (MODULE_ADDR + FAKE_MODULE_CODE_VADDR);

		text[length++] = frame->is_gap	    ? '?'
				 : frame->is_anchor ? 'A'
				 : offset >> 8 < 4  ? "flco"[offset >> 8]
						    : 'b';
	}
	if (!stacks->is_whole)
		text[length++] = '!';
	text[length] = '\0';
	return text;
}

#define expect_crossed(bridged, wanted) \
	cr_expect(eq(str, (char *)crossed(bridged), (char *)(wanted)))

/* The call of the bare code and the end of the loop are known; between them is a gap. */
Test(native_stacks, crosses_bare_code_to_the_outermost_frame)
{
	struct bridged bridged;
	const struct unwind_frame *frames;

	bridged_init(&bridged);
	frames = bridged.stacks.frames;
	expect_crossed(&bridged, "fb?Aco");
	cr_expect(eq(u64, frames[1].cfa, STACK_ADDR + 8));
	cr_expect(eq(u64, frames[2].sp, STACK_ADDR + 8));
	cr_expect(eq(u64, frames[2].cfa, entry_addr));
	cr_expect(eq(u64, frames[3].sp, entry_addr));
	cr_expect(eq(u64, frames[3].cfa, entry_addr + DISTANCE));
	cr_expect(eq(u64, frames[4].sp, entry_addr + DISTANCE));
	cr_expect(eq(u64, frames[4].cfa, caller_frame_addr + 16));
	cr_expect(eq(u64, frames[5].sp, caller_frame_addr + 16));
	bridged_done(&bridged);
}

/* Make the bare code an executor's. */
static void put_executor(struct bridged *bridged)
{
	struct executor_range *range = malloc(sizeof(*range));

	cr_assert(ne(ptr, range, NULL));
	*range = (struct executor_range){BARE_ADDR, BARE_ADDR + BARE_BYTES};
	bridged->stacks.executors =
		(struct executor_list){.ranges = range, .nr_ranges = 1, .max_ranges = 1};
}

/* The loop itself called the executor, so there is no gap. */
Test(native_stacks, executor_leaves_no_gap)
{
	struct bridged bridged;

	bridged_init(&bridged);
	bridged.py.build.traits.has_unnamed_executors = true;
	expect_crossed(&bridged, "fb?Aco");
	put_executor(&bridged);
	expect_crossed(&bridged, "fbAco");
	cr_expect(eq(u64, bridged.stacks.frames[1].cfa, entry_addr));
	bridged_done(&bridged);
}

/*
 * Once an instruction of the loop is known, its unwind rule gives the place of the caller's
 * registers.
 */
Test(native_stacks, known_loop_instruction_restores_registers)
{
	struct bridged bridged;

	bridged_init(&bridged);
	put_loop(&bridged, entry_addr, 2, 0);
	put_loop(&bridged, entry_addr, 3, caller_frame_addr);
	expect_crossed(&bridged, "fb?Ac!");
	bridged.stacks.loop.lookup_addr = code_addr(LOOP);
	expect_crossed(&bridged, "fb?Aco");
	cr_expect(eq(u64, bridged.stacks.frames[3].lookup_addr, code_addr(LOOP)));
	bridged_done(&bridged);
}

Test(native_stacks, crosses_two_gaps)
{
	const remote_addr outer_entry_addr = STACK_ADDR + 0x400;
	const remote_addr outer_frame_addr = STACK_ADDR + 0x500;
	struct bridged bridged;

	bridged_init(&bridged);
	put_caller(&bridged, caller_frame_addr, BARE_ADDR + 0x20);
	expect_crossed(&bridged, "fb?Acb!");
	put_loop(&bridged, outer_entry_addr, 2, outer_frame_addr);
	put_caller(&bridged, outer_frame_addr, code_addr(OUTERMOST));
	expect_crossed(&bridged, "fb?Acb!");
	bridged.entries[0].c_addr = outer_entry_addr;
	expect_crossed(&bridged, "fb?Acb?Aco");
	bridged_done(&bridged);
}

/* Entries outside the C frames of the copy, or in the wrong place, are skipped. */
Test(native_stacks, invalid_entries_are_skipped)
{
	struct bridged bridged;

	bridged_init(&bridged);
	bridged.entries[0].c_addr = entry_addr;
	bridged.entries[1].c_addr = STACK_ADDR + 0x80;
	expect_crossed(&bridged, "fb?Aco");
	bridged.entries[1].c_addr = STACK_ADDR - 0x80;
	expect_crossed(&bridged, "fb?Aco");
	bridged.entries[1].c_addr = STACK_ADDR + 0x10000;
	expect_crossed(&bridged, "fb?Aco");
	bridged_done(&bridged);
}

/* A wrong distance; no loop; nothing missing; too few frames allowed. */
Test(native_stacks, incomplete_evidence_is_not_crossed)
{
	struct bridged bridged;

	bridged_init(&bridged);
	bridged.stacks.loop.distance_bytes = DISTANCE - 8;
	expect_crossed(&bridged, "fb!");
	bridged.stacks.loop.distance_bytes = DISTANCE;
	bridged.entries[1].c_addr = 0;
	expect_crossed(&bridged, "fb!");
	bridged_done(&bridged);

	bridged_init(&bridged);
	put(&bridged, STACK_ADDR, code_addr(OUTERMOST));
	expect_crossed(&bridged, "fo");
	bridged_done(&bridged);

	bridged_init(&bridged);
	bridged.stacks.options.max_frames = 4;
	expect_crossed(&bridged, "fb!");
	bridged.stacks.options.max_frames = 5;
	expect_crossed(&bridged, "fb?Ac!");
	bridged_done(&bridged);
}

/* The distance learned from this stack alone. */
static uint32_t learned_distance(struct bridged *bridged)
{
	bridged->stacks.loop = (struct native_loop){.distance_bytes = 0};
	unwind(bridged);
	cross(bridged);
	return bridged->stacks.loop.distance_bytes;
}

Test(native_stacks, searches_for_the_distance)
{
	struct bridged bridged;

	bridged_init(&bridged);
	cr_expect(eq(u32, learned_distance(&bridged), DISTANCE));
	cr_expect(bridged.stacks.is_whole);

	/* A stale return address from an earlier call by the loop. */
	put(&bridged, entry_addr + 0x58, code_addr(CALLER));
	put(&bridged, entry_addr + 0x50, 0x1234);
	cr_expect(eq(u32, learned_distance(&bridged), DISTANCE));

	/* After it, words that look like the end of a thread's stack. */
	put(&bridged, entry_addr + 0x50, entry_addr + 0x60);
	put(&bridged, entry_addr + 0x68, 0);
	cr_expect(eq(u32, learned_distance(&bridged), DISTANCE));
	bridged_done(&bridged);

	/* A return address from which the stack does not continue to the thread's start. */
	bridged_init(&bridged);
	put_caller(&bridged, caller_frame_addr, BARE_ADDR + 0x20);
	cr_expect(zero(u32, learned_distance(&bridged)));
	cr_expect(eq(sz, bridged.stacks.nr_frames, 2));
	cr_expect(zero(u64, bridged.stacks.frames[1].cfa));
	cr_expect(not(bridged.stacks.is_whole));
	bridged_done(&bridged);
}

/* An unwound loop gives both distance and instruction. */
Test(native_stacks, learns_from_a_complete_stack)
{
	struct bridged bridged;

	bridged_init(&bridged);
	put(&bridged, STACK_ADDR, code_addr(LOOP));
	/* The loop's frame is 0x200 bytes; see map_functions(). */
	put(&bridged, STACK_ADDR + 8 + 0x200 - 8, code_addr(CALLER));
	put(&bridged, STACK_ADDR + 8 + 0x200 - 24, caller_frame_addr);
	bridged.entries[1].c_addr = STACK_ADDR + 0x100;
	cr_expect(eq(u32, learned_distance(&bridged), 8 + 0x200 - 0x100));
	cr_expect(bridged.stacks.is_whole);
	cr_expect(eq(u64, bridged.stacks.loop.lookup_addr, code_addr(LOOP) - 1));
	bridged_done(&bridged);
}

#endif
