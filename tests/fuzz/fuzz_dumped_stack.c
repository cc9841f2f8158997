/* SPDX-License-Identifier: MIT */
/*
 * A copied stack that the input changes, unwound, led over its holes and told of its Python frames.
 * The input is the version (1 byte), what is known beforehand (1), then changes of 12 bytes: of
 * what (1), what kind of value comes there (1), where (2), the value (8). The stack is looked at
 * after each.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/dumped_loops.h"
#include "sampler/dumped_stack.h"
#include "sampler/sampler_state.h"
#include "sampler/stack_bridge.h"
#include "tests/support/fake_module.h"
#include "tests/support/fake_python.h"

enum { CHANGE_BYTES = 12, MAX_CHANGES = 128, MAX_STACK = 64 };

#define MODULE_ADDR 0x7f0000000000
#define STACK_ADDR  0x7ffe00000000
#define DATA_ADDR   0x500000 /* of the Python frames */

/* Code of no file: the first page has a trampoline. */
enum { BARE_ADDR = 0x60000, BARE_BYTES = 0x10000 };

/* Loops have frames of LOOP_BYTES, with their entry so far from the end. */
enum { LOOP_BYTES = 0x200, DISTANCE = 0x100, STACK_BYTES = 0x800 };

/* What is known before anything is learnt: bits of the second byte. */
enum { KNOWS_PLACES = 1, KNOWS_NOW = 2, HAS_EXECUTORS = 4, KNOWS_LOOKUP = 8, KNOWS_VERSION = 16 };

/* The functions of the module. */
enum function_index { LEAF, LOOP, BY_FRAME_POINTER, OUTERMOST };

/* Two loops: the outer one runs f and g, which has called h through C. */
enum { NR_CODES = 3 };

struct world {
	struct fake_python py;
	struct code_cache cache;
	struct code_clock clock;
	struct code *codes[NR_CODES];
	struct code_index index;
	struct call_names names;
	struct sampler sampler; /* nothing but its build */
	struct mapping mappings[2];
	struct maps maps;
	struct native_stacks natives;
	uint8_t *stack, *stack_now; /* STACK_BYTES each, so that all beyond is seen */
	struct stack_window window, now;
	struct registers registers;
	struct loop_places places;
	struct frame_list late, list;
	struct steady_frames steady;
	bool is_steady; /* all that the later look has was there before */
	struct code hole;
	struct dumped_stack dumped;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static remote_addr code_addr(enum function_index function)
{
	return fake_module_code_addr(MODULE_ADDR, function);
}

/* The loop keeps the frame in rbx and the next instruction in r12, and saves its caller's. */
static void map_functions(struct fake_memory *fake)
{
	static const uint8_t start[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	static const struct {
		uint8_t nr;
		uint8_t program[8];
	} functions[] = {
		[LEAF] = {0, {0}},
		[LOOP] = {7,
			  {DW_CFA_def_cfa_offset, 0x80, LOOP_BYTES >> 7, DW_CFA_offset | 3, 2,
			   DW_CFA_offset | 12, 3}},
		[BY_FRAME_POINTER] = {5, {DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}},
		[OUTERMOST] = {2, {DW_CFA_undefined, 16}},
	};
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	const size_t common = cfi_bytes_common(&bytes, "", NULL, 0, start, sizeof(start));

	for (unsigned int i = LEAF; i <= OUTERMOST; i++)
		fake_module_function(&bytes, common, i, functions[i].program, functions[i].nr);
	cfi_bytes_put(&bytes, 0, 4);
	fake_module_map(fake, MODULE_ADDR, &bytes);
}

static void map_trampoline(struct fake_memory *fake)
{
	static const uint8_t bytes[16] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};

	fake_memory_map_bytes(fake, BARE_ADDR, bytes, sizeof(bytes));
}

/* Python's side. */

static void make_codes(struct world *world)
{
	static const char *const names[NR_CODES] = {"f", "g", "h"};

	for (unsigned int i = 0; i < NR_CODES; i++) {
		const struct fake_code code = {.name = names[i], .nr_units = 16};
		const remote_addr addr = fake_python_code(&world->py, &code);

		world->clock = fake_python_clock(&world->py, 1);
		require(!code_cache_get(&world->cache, addr, &world->clock, &world->codes[i]));
		require(!code_index_add(&world->index, world->codes[i]));
		if (i)
			fake_python_code_names(&world->py, world->codes[i - 1]->addr, addr);
	}
}

static remote_addr frame_addr(const struct world *world, unsigned int index)
{
	remote_addr addr = DATA_ADDR;

	for (unsigned int i = 0; i < index; i++)
		addr += world->codes[i]->frame_size_bytes;
	return addr;
}

static void put(struct world *world, remote_addr addr, uint64_t value)
{
	memcpy(world->stack + (addr - STACK_ADDR), &value, sizeof(value));
}

static bool has_cframes(const struct world *world)
{
	return world->py.minor == 11;
}

/* What a loop calls that runs the frame at index is known of by previous, or by outer_addr. */
static void put_entry(struct world *world, remote_addr addr, remote_addr previous,
		      remote_addr outer_addr, unsigned int index)
{
	const struct py_offsets *offsets = &world->py.build.offsets;

	if (has_cframes(world)) {
		put(world, addr + offsets->cframe.current_frame, frame_addr(world, index));
		put(world, addr + offsets->cframe.previous, outer_addr);
		return;
	}
	put(world, addr + offsets->frame.owner, world->py.build.traits.shim_owner);
	put(world, addr + offsets->frame.executable, world->py.none_addr);
	put(world, addr + offsets->frame.previous, previous);
}

/* The end of a loop's C frame: what its caller had in its registers is of the frame at index. */
static void put_saved(struct world *world, remote_addr cfa, remote_addr ret, unsigned int index)
{
	put(world, cfa - 8, ret);
	put(world, cfa - 16, frame_addr(world, index));
	put(world, cfa - 24, world->codes[index]->code_start_addr + 8);
}

static void put_late(struct world *world, unsigned int index, remote_addr previous)
{
	struct code *code = world->codes[index];
	const struct walked_frame frame = {.addr = frame_addr(world, index),
					   .previous = previous,
					   .executable = code->addr,
					   .instr_ptr = code->code_start_addr + 6,
					   .code = code,
					   .is_entry = has_cframes(world) && index != 1};

	require(!frame_list_append(&world->late, &frame));
}

/* What the thread's cframes tell by now. */
static void put_memory(struct world *world, remote_addr inner_addr)
{
	struct fake_memory *fake = &world->py.fake;

	fake_memory_map_bytes(fake, STACK_ADDR, world->stack, STACK_BYTES);
	fake_memory_write_u64(fake,
			      world->dumped.thread_addr + world->py.build.offsets.thread.cframe,
			      inner_addr);
}

/* A leaf, a loop, a C function, a loop, and the thread's first function. */
static void put_stack(struct world *world)
{
	const remote_addr inner_sp = STACK_ADDR + 8, outer_sp = inner_sp + LOOP_BYTES + 8;
	const remote_addr end = outer_sp + LOOP_BYTES;

	const remote_addr inner_addr = inner_sp + LOOP_BYTES - DISTANCE;
	const remote_addr outer_addr = end - DISTANCE;

	put(world, STACK_ADDR, code_addr(LOOP));
	put_entry(world, inner_addr, frame_addr(world, 1), outer_addr, 2);
	put_saved(world, inner_sp + LOOP_BYTES, code_addr(LEAF), 1);
	put(world, outer_sp - 8, code_addr(LOOP));
	put_entry(world, outer_addr, 0, world->dumped.thread_addr, 1);
	put_saved(world, end, code_addr(OUTERMOST), 0);
	put_late(world, 0, has_cframes(world) ? 0 : outer_addr);
	put_late(world, 1, frame_addr(world, 0));
	put_late(world, 2, has_cframes(world) ? frame_addr(world, 1) : inner_addr);
	if (has_cframes(world))
		put_memory(world, inner_addr);
	world->registers.is_interrupted = true;
	for (unsigned int i = 0; i < NR_REGISTERS; i++)
		registers_set(&world->registers, i, STACK_ADDR + 8 * i);
	registers_set(&world->registers, REGISTER_SP, STACK_ADDR);
	registers_set(&world->registers, REGISTER_PC, code_addr(LEAF));
	registers_set(&world->registers, 3, frame_addr(world, 2));
	registers_set(&world->registers, 12, world->codes[2]->code_start_addr + 8);
	memcpy(world->stack_now, world->stack, STACK_BYTES);
}

/* The world. */

static void know(struct world *world, uint8_t known)
{
	struct loop_places *places = &world->places;

	if (known & KNOWS_PLACES) {
		places->entry_distance_bytes = DISTANCE;
		for (unsigned int i = 0; i < NR_LOOP_KINDS; i++) {
			places->frames[i].votes[3] = places->next_instrs[i].votes[12] = 100;
			places->frames[i].best[0] = 3;
			places->next_instrs[i].best[0] = 12;
		}
	}
	if (known & KNOWS_LOOKUP)
		places->lookup_addr = code_addr(LOOP);
	if (known & KNOWS_NOW)
		world->dumped.now = &world->now;
	if (!(known & KNOWS_VERSION))
		world->clock.has_next_version = false;
	world->py.build.traits.has_unnamed_executors = known & HAS_EXECUTORS;
	world->natives.executors.nr_ranges = known & HAS_EXECUTORS ? 1 : 0;
}

/* The first half of the bare code is an executor's, and it is not asked again. */
static void init_executors(struct executor_list *executors)
{
	struct executor_range *range = malloc(sizeof(*range));

	require(range);
	*range = (struct executor_range){BARE_ADDR, BARE_ADDR + BARE_BYTES / 2};
	*executors = (struct executor_list){
		.ranges = range, .max_ranges = 1, .pace = {.look_ns = UINT64_MAX}};
}

static void init_natives(struct world *world)
{
	struct native_stacks_options options = {.memory = &world->py.fake.memory,
						.maps = &world->maps,
						.sampler = &world->sampler,
						.max_frames = MAX_STACK,
						.keeps_registers = true};

	world->mappings[0] = (struct mapping){.start = BARE_ADDR,
					      .end = BARE_ADDR + BARE_BYTES,
					      .readable = true,
					      .executable = true,
					      .path = ""};
	world->mappings[1] = (struct mapping){.start = MODULE_ADDR,
					      .end = MODULE_ADDR + FAKE_MODULE_BYTES,
					      .readable = true,
					      .executable = true,
					      .inode = 1,
					      .path = "/m"};
	world->maps = (struct maps){.mappings = world->mappings, .nr_mappings = 2};
	world->sampler.build = &world->py.build;
	require(!native_stacks_init(&world->natives, &options));
	init_executors(&world->natives.executors);
}

static void init_windows(struct world *world)
{
	world->stack = calloc(1, STACK_BYTES);
	world->stack_now = calloc(1, STACK_BYTES);
	require(world->stack && world->stack_now);
	world->window = (struct stack_window){
		.start = STACK_ADDR, .bytes = world->stack, .nr_bytes = STACK_BYTES};
	world->now = (struct stack_window){
		.start = STACK_ADDR, .bytes = world->stack_now, .nr_bytes = STACK_BYTES};
}

static void world_init(struct world *world, uint32_t minor)
{
	static const struct function hole = {.qualname = "[unknown]"};

	*world = (struct world){.hole = {.function = &hole, .foreign = true}};
	fake_python_init(&world->py, minor);
	map_functions(&world->py.fake);
	map_trampoline(&world->py.fake);
	code_cache_init(&world->cache, &world->py.fake.memory, &world->py.build);
	world->cache.nothings[world->cache.nr_nothings++] = world->py.none_addr;
	make_codes(world);
	init_natives(world);
	init_windows(world);
	world->dumped = (struct dumped_stack){.natives = &world->natives,
					      .window = &world->window,
					      .places = &world->places,
					      .index = &world->index,
					      .names = &world->names,
					      .codes = &world->cache,
					      .thread_addr = fake_python_thread(&world->py, 1),
					      .clock = &world->clock,
					      .late = &world->late,
					      .steady = &world->steady,
					      .hole = &world->hole};
	put_stack(world);
}

static void world_done(struct world *world)
{
	native_stacks_done(&world->natives);
	free(world->stack);
	free(world->stack_now);
	code_index_done(&world->index);
	frame_list_done(&world->late);
	steady_frames_done(&world->steady);
	frame_list_done(&world->list);
	code_cache_done(&world->cache);
	fake_python_done(&world->py);
}

/* Changes. */

/* A number, or an address of something that there is. */
static uint64_t value_of(const struct world *world, uint8_t kind, uint64_t number)
{
	switch (kind % 9) {
	case 1:
		return STACK_ADDR + number % (STACK_BYTES + 64);
	case 2:
		return code_addr((enum function_index)(number % 4));
	case 3:
		return MODULE_ADDR + number % FAKE_MODULE_BYTES;
	case 4:
		return BARE_ADDR + number % BARE_BYTES;
	case 5:
		return BARE_ADDR + number % 16;
	case 6:
		return frame_addr(world, (unsigned int)(number % NR_CODES)) + number / 256 % 3 * 8;
	case 7:
		return world->codes[number % NR_CODES]->code_start_addr + number / 256 % 64;
	case 8:
		return world->py.none_addr;
	default:
		return number;
	}
}

static void change_late(struct world *world, uint16_t where, uint64_t value)
{
	struct walked_frame *frame = &world->late.frames[where % NR_CODES];

	switch (where / NR_CODES % 6) {
	case 0:
		frame->addr = value;
		break;
	case 1:
		frame->previous = value;
		break;
	case 2:
		frame->instr_ptr = value;
		break;
	case 3:
		frame->executable = value;
		break;
	case 4:
		frame->is_entry = value & 1;
		break;
	default:
		world->late.nr_frames = (uint32_t)(value % (NR_CODES + 1));
	}
}

static void change(struct world *world, const uint8_t *bytes)
{
	const uint16_t where = field_u16(bytes, 2);
	const uint64_t value = value_of(world, bytes[1], field_u64(bytes, 4));

	switch (bytes[0] % 5) {
	case 0:
		memcpy(world->stack + where % (STACK_BYTES - 7), &value, sizeof(value));
		break;
	case 1:
		memcpy(world->stack_now + where % (STACK_BYTES - 7), &value, sizeof(value));
		break;
	case 2:
		registers_set(&world->registers, where % NR_REGISTERS, value);
		break;
	case 3:
		change_late(world, where, value);
		break;
	default:
		world->window.nr_bytes = value % (STACK_BYTES + 1);
	}
}

/* Looks. */

/* Frames hang together: nothing is told of one but of the last what the hole has hidden. */
static void check_natives(const struct world *world)
{
	const struct native_stacks *natives = &world->natives;

	require(natives->nr_frames >= 1 && natives->nr_frames <= MAX_STACK);
	for (size_t i = 0; i + 1 < natives->nr_frames; i++)
		require(natives->frames[i].cfa != 0);
}

static void use_loops(struct world *world)
{
	struct dumped_loops loops;

	dumped_loops_find(&world->dumped, &loops);
	require(loops.nr <= world->natives.nr_frames && loops.nr <= DUMPED_STACK_MAX_LOOPS);
	for (uint32_t i = 0; i < loops.nr; i++) {
		require(loops.loops[i].frame.nr_others <= NR_REGISTERS + 1);
		(void)dumped_loops_is_still(&world->dumped, &loops.loops[i]);
	}
}

/* Each Python frame is there once and in order, and no native one is there twice. */
static void check_merged(const struct merged_frame *merged, uint32_t nr_merged, uint32_t nr_python,
			 uint32_t nr_natives)
{
	uint32_t next_python = 0, next_native = nr_natives;

	require(nr_merged <= 3 * nr_python + nr_natives + 1);
	for (uint32_t i = 0; i < nr_merged; i++) {
		if (merged[i].kind == MERGED_PYTHON) {
			require(merged[i].index == next_python++);
		} else if (merged[i].kind != MERGED_HOLE) {
			require(merged[i].index < next_native);
			next_native = merged[i].index;
		}
	}
	require(next_python == nr_python);
}

static void merge(const struct native_stacks *natives, const struct frame_list *list)
{
	static const struct function function = {.qualname = "f", .path = ""};
	cleanup_free struct frame *frames = calloc(list->nr_frames + 1ull, sizeof(*frames));
	cleanup_free struct frame_detail *details =
		calloc(list->nr_frames + 1ull, sizeof(*details));
	cleanup_free struct merged_frame *merged = NULL;
	struct native_frame native_frames[MAX_STACK];
	struct sample sample = {.frames = frames, .details = details, .nr_frames = list->nr_frames};
	uint32_t nr_merged;

	require(frames && details);
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		frames[i].function = list->frames[i].code->function;
		details[i].is_entry = !i || list->frames[i].previous != list->frames[i - 1].addr;
		details[i].entry_addr = details[i].is_entry ? list->frames[i].previous : 0;
	}
	for (size_t i = 0; i < natives->nr_frames; i++)
		native_frames[i] = (struct native_frame){.sp_addr = natives->frames[i].sp,
							 .cfa_addr = natives->frames[i].cfa,
							 .function = &function};
	require(!merged_stack_make(&sample, native_frames, (uint32_t)natives->nr_frames,
				   natives->is_whole, &merged, &nr_merged));
	check_merged(merged, nr_merged, list->nr_frames, (uint32_t)natives->nr_frames);
}

static void look(struct world *world)
{
	uint32_t nr_holes = 0;
	int err;

	native_stacks_unwind(&world->natives, &world->registers, &world->window, MAX_STACK);
	check_natives(world);
	stack_bridge_learn(&world->dumped);
	check_natives(world);
	stack_bridge_cross(&world->dumped);
	check_natives(world);
	merge(&world->natives, &world->late);
	use_loops(world);
	dumped_loops_learn(&world->dumped);
	for (int i = 0; i < STEADY_FRAMES_LOOKS && world->is_steady; i++)
		require(!steady_frames_look(&world->steady, 1, &world->late));
	err = dumped_stack_frames(&world->dumped, &world->list, &nr_holes);
	require(err == (world->places.entry_distance_bytes ? 0 : -EAGAIN));
	if (err)
		return;
	/*
	 * What lies between two loops is of the later look, and one more is told by its
	 * instruction.
	 */
	require(world->list.nr_frames <= (NR_CODES + 2) * world->natives.nr_frames);
	require(nr_holes <= world->natives.nr_frames);
	merge(&world->natives, &world->list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t minors[] = {12, 13, 14, 15, 11};
	struct world *world = malloc(sizeof(*world));

	if (size < 2 || (size - 2) / CHANGE_BYTES > MAX_CHANGES || !world) {
		free(world);
		return 0;
	}
	world_init(world, minors[data[0] % 5]);
	know(world, data[1]);
	world->is_steady = data[0] & 0x80;
	look(world);
	for (size_t i = 0; i < (size - 2) / CHANGE_BYTES; i++) {
		change(world, data + 2 + i * CHANGE_BYTES);
		look(world);
	}
	world_done(world);
	free(world);
	return 0;
}
