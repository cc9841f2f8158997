/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_loops.h"
#include "sampler/dumped_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler_state.h"
#include "support/fake_python.h"

#if defined(__x86_64__)

/* The copied stack; each C frame has FRAME_BYTES, and a loop its entry in the middle. */
enum { STACK_ADDR = 0x7ff000, FRAME_BYTES = 0x200, NR_FRAMES = 5, DISTANCE = 0x100 };
enum { INNER_LOOP = 1, OUTER_LOOP = 3 }; /* of the C frames, innermost first */
enum { DATA_ADDR = 0x500000 };

/* Two loops: the outer one runs f and g, which has called h through C. */
struct dumped {
	struct fake_python py;
	struct code_cache codes;
	struct code_clock clock;
	struct code *f, *g, *h;
	struct unwind_frame frames[NR_FRAMES];
	struct registers registers[NR_FRAMES];
	uint8_t bytes[NR_FRAMES * FRAME_BYTES];
	struct module_map map;
	struct sampler sampler; /* nothing but its build */
	struct native_stacks natives;
	struct stack_window window;
	struct loop_places places;
	struct code_index index;
	struct call_names names;
	struct frame_list late, list;
	struct steady_frames steady;
	struct code hole;
	struct dumped_stack stack;
	uint32_t nr_holes;
};

static remote_addr entry_addr(unsigned int frame)
{
	return STACK_ADDR + (frame + 1) * FRAME_BYTES - DISTANCE;
}

static struct code *make_code(struct dumped *dumped, const char *name)
{
	struct code *code = NULL;
	const remote_addr addr =
		fake_python_code(&dumped->py, &(struct fake_code){.name = name, .nr_units = 16});

	dumped->clock.next_version = dumped->py.next_version;
	cr_assert(zero(int, code_cache_get(&dumped->codes, addr, &dumped->clock, &code)));
	cr_assert(zero(int, code_index_add(&dumped->index, code)));
	return code;
}

static void put(struct dumped *dumped, remote_addr addr, uint64_t value)
{
	memcpy(dumped->bytes + (addr - STACK_ADDR), &value, sizeof(value));
}

static bool has_cframes(const struct dumped *dumped)
{
	return dumped->py.minor == 11;
}

/* A loop at a C frame, whose caller is previous and which runs the frame at frame_addr. */
static void put_loop(struct dumped *dumped, unsigned int frame, remote_addr previous,
		     remote_addr frame_addr, const struct code *code)
{
	const struct py_offsets *offsets = &dumped->py.build.offsets;

	registers_set(&dumped->registers[frame], REGISTER_RBX, frame_addr);
	registers_set(&dumped->registers[frame], REGISTER_R12, code->code_start_addr + 8);
	if (has_cframes(dumped)) {
		put(dumped, entry_addr(frame) + offsets->cframe.current_frame, frame_addr);
		put(dumped, entry_addr(frame) + offsets->cframe.previous,
		    frame == OUTER_LOOP ? dumped->stack.thread_addr : entry_addr(OUTER_LOOP));
		return;
	}
	put(dumped, entry_addr(frame) + offsets->frame.owner, FAKE_SHIM);
	put(dumped, entry_addr(frame) + offsets->frame.executable, dumped->py.none_addr);
	put(dumped, entry_addr(frame) + offsets->frame.previous, previous);
}

/* What the first Python frame of a loop names as its caller. */
static remote_addr caller_addr(const struct dumped *dumped, unsigned int frame,
			       remote_addr previous)
{
	return has_cframes(dumped) ? previous : entry_addr(frame);
}

static void append_late(struct dumped *dumped, remote_addr addr, remote_addr previous,
			struct code *code, bool is_entry)
{
	const struct walked_frame frame = {.addr = addr,
					   .previous = previous,
					   .executable = code->addr,
					   .instr_ptr = code->code_start_addr + 6,
					   .code = code,
					   .is_entry = is_entry};

	cr_assert(zero(int, frame_list_append(&dumped->late, &frame)));
}

/* A frame that the one at previous has called without C. */
static void put_late(struct dumped *dumped, remote_addr addr, remote_addr previous,
		     struct code *code)
{
	append_late(dumped, addr, previous, code, false);
}

/* The first one of a loop, which the one at previous has called. */
static void put_late_entry(struct dumped *dumped, remote_addr addr, unsigned int loop,
			   remote_addr previous, struct code *code)
{
	append_late(dumped, addr, caller_addr(dumped, loop, previous), code, has_cframes(dumped));
}

static remote_addr end_of(remote_addr addr, const struct code *code)
{
	return addr + code->frame_size_bytes;
}

static void learn(struct loop_votes *votes, uint32_t place)
{
	votes->votes[place] = 100;
	votes->best[0] = place;
}

static void dumped_init_minor(struct dumped *dumped, uint32_t minor)
{
	static const struct function hole = {.qualname = "[unknown]"};
	/* Where put_trampoline() puts them. */
	static struct mapping mapping = {
		.start = 0x40000, .end = 0x50000, .readable = true, .executable = true, .path = ""};
	static const struct maps maps = {.mappings = &mapping, .nr_mappings = 1};

	*dumped = (struct dumped){.clock = {.tick = 1, .has_next_version = true},
				  .hole = {.function = &hole, .foreign = true}};
	fake_python_init(&dumped->py, minor);
	dumped->clock.interp_addr = dumped->py.interp_addr;
	code_cache_init(&dumped->codes, &dumped->py.fake.memory, &dumped->py.build);
	dumped->codes.nothings[dumped->codes.nr_nothings++] = dumped->py.none_addr;
	dumped->f = make_code(dumped, "f");
	dumped->g = make_code(dumped, "g");
	dumped->h = make_code(dumped, "h");
	fake_python_code_names(&dumped->py, dumped->f->addr, dumped->g->addr);
	fake_python_code_names(&dumped->py, dumped->g->addr, dumped->h->addr);
	for (unsigned int i = 0; i < NR_FRAMES; i++)
		dumped->frames[i] = (struct unwind_frame){
			.sp = STACK_ADDR + i * FRAME_BYTES,
			.cfa = STACK_ADDR + (i + 1) * FRAME_BYTES,
		};
	dumped->natives = (struct native_stacks){
		.sampler = &dumped->sampler,
		.frames = dumped->frames,
		.registers = dumped->registers,
		.nr_frames = NR_FRAMES,
	};
	dumped->py.build.traits.has_unnamed_executors = false;
	dumped->sampler.build = &dumped->py.build;
	cr_assert(zero(int, module_map_init(&dumped->map, &maps)));
	dumped->natives.files = module_files_create();
	cr_assert(ne(ptr, dumped->natives.files, NULL));
	cr_assert(
		zero(int, unwind_modules_create(&dumped->py.fake.memory, &dumped->map, NULL,
						dumped->natives.files, &dumped->natives.modules)));
	dumped->window = (struct stack_window){
		.start = STACK_ADDR, .bytes = dumped->bytes, .nr_bytes = sizeof(dumped->bytes)};
	dumped->places.entry_distance_bytes = DISTANCE;
	learn(&dumped->places.frames[0], REGISTER_RBX);
	learn(&dumped->places.next_instrs[0], REGISTER_R12);
	dumped->stack = (struct dumped_stack){
		.natives = &dumped->natives,
		.window = &dumped->window,
		.places = &dumped->places,
		.index = &dumped->index,
		.names = &dumped->names,
		.codes = &dumped->codes,
		.thread_addr = fake_python_thread(&dumped->py, 1),
		.clock = &dumped->clock,
		.late = &dumped->late,
		.steady = &dumped->steady,
		.hole = &dumped->hole,
	};
}

static void dumped_init(struct dumped *dumped)
{
	dumped_init_minor(dumped, 14);
}

static void dumped_done(struct dumped *dumped)
{
	unwind_modules_destroy(dumped->natives.modules);
	module_files_destroy(dumped->natives.files);
	module_map_done(&dumped->map);
	code_index_done(&dumped->index);
	frame_list_done(&dumped->late);
	steady_frames_done(&dumped->steady);
	frame_list_done(&dumped->list);
	code_cache_done(&dumped->codes);
	fake_python_done(&dumped->py);
}

/* What both tests of f, g and h have in common; the later look is of f and, if has_g, of g. */
static void put_calls(struct dumped *dumped, bool has_g)
{
	const remote_addr f_addr = DATA_ADDR, g_addr = end_of(f_addr, dumped->f);

	put_loop(dumped, OUTER_LOOP, 0, g_addr, dumped->g);
	put_loop(dumped, INNER_LOOP, g_addr, end_of(g_addr, dumped->g), dumped->h);
	put_late_entry(dumped, f_addr, OUTER_LOOP, 0, dumped->f);
	if (has_g)
		put_late(dumped, g_addr, f_addr, dumped->g);
}

/* The names, outermost first, with a "|" where a loop begins. */
static char *shown(struct dumped *dumped)
{
	static char text[256];
	const struct frame_list *list = &dumped->list;

	text[0] = '\0';
	cr_assert(zero(int, dumped_stack_frames(&dumped->stack, &dumped->list, &dumped->nr_holes)));
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		if (!i || list->frames[i].previous != list->frames[i - 1].addr)
			(void)strncat(text, "|", sizeof(text) - strlen(text) - 1);
		(void)strncat(text, list->frames[i].code->function->qualname,
			      sizeof(text) - strlen(text) - 1);
		(void)strncat(text, " ", sizeof(text) - strlen(text) - 1);
	}
	return text;
}

/* g is gone by now, or runs still: it is known by its instruction, and that f lies before it. */
Test(dumped_stack, frames_that_lie_one_behind_the_other)
{
	for (int i = 0; i < 4; i++) {
		struct dumped dumped;

		dumped_init_minor(&dumped, i & 1 ? 11 : 14);
		put_calls(&dumped, i & 2);
		cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
		cr_expect(zero(u32, dumped.nr_holes));
		dumped_done(&dumped);
	}
}

Test(dumped_stack, what_is_not_proven_is_a_hole)
{
	struct dumped dumped;

	/* Nothing is known of the later stack. */
	dumped_init(&dumped);
	put_calls(&dumped, true);
	dumped.late.nr_frames = 0;
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |h "));
	cr_expect(eq(u32, dumped.nr_holes, 1));
	dumped_done(&dumped);

	/* Between f and g there is room for another frame, which is not there any more. */
	dumped_init(&dumped);
	put_calls(&dumped, false);
	put(&dumped, entry_addr(INNER_LOOP) + dumped.py.build.offsets.frame.previous,
	    end_of(DATA_ADDR, dumped.f) + 8);
	registers_set(&dumped.registers[OUTER_LOOP], REGISTER_RBX, end_of(DATA_ADDR, dumped.f) + 8);
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |[unknown] h "));
	cr_expect(eq(u32, dumped.nr_holes, 2));
	dumped_done(&dumped);

	/* C has called f for another loop (3.11). */
	dumped_init_minor(&dumped, 11);
	put_calls(&dumped, false);
	dumped.late.frames[0].is_entry = false;
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |h "));
	dumped.late.frames[0].is_entry = true;
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	put_late_entry(&dumped, end_of(end_of(DATA_ADDR, dumped.f), dumped.g), INNER_LOOP,
		       end_of(DATA_ADDR, dumped.f), dumped.g);
	dumped.late.frames[1].is_entry = false;
	put_loop(&dumped, INNER_LOOP, end_of(DATA_ADDR, dumped.f),
		 end_of(dumped.late.frames[1].addr, dumped.g), dumped.h);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] h "));
	dumped.late.frames[1].is_entry = true;
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |g h "));
	dumped_done(&dumped);

	/* The frame before g is called by another one than f. */
	dumped_init(&dumped);
	put_calls(&dumped, false);
	dumped.late.frames[0].previous = entry_addr(OUTER_LOOP) + 8;
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |h "));
	dumped_done(&dumped);

	/* f calls another one by now, and does not call g. */
	dumped_init(&dumped);
	put_calls(&dumped, false);
	fake_python_code_names(&dumped.py, dumped.f->addr, dumped.h->addr);
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |h "));
	dumped_done(&dumped);

	/* The next instruction is in no code object. */
	dumped_init(&dumped);
	put_calls(&dumped, true);
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_R12, 0x1234);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] "));
	dumped_done(&dumped);
}

static void make_steady(struct dumped *dumped)
{
	for (int i = 0; i < STEADY_FRAMES_LOOKS; i++)
		cr_assert(zero(int, steady_frames_look(&dumped->steady, 1, &dumped->late)));
}

/* What all of the last looks have found was there at the instant, too. */
Test(dumped_stack, steady_frames)
{
	struct dumped dumped;
	remote_addr g_addr, h_addr;

	/* f does not name g: where g is may be what an older call has left. */
	dumped_init(&dumped);
	put_calls(&dumped, false);
	fake_python_code_names(&dumped.py, dumped.f->addr, dumped.h->addr);
	make_steady(&dumped);
	cr_expect(eq(str, shown(&dumped), (char *)"|f [unknown] g |h "));
	cr_expect(eq(u32, dumped.nr_holes, 1));
	dumped_done(&dumped);

	/* There is room for another frame behind f. */
	dumped_init(&dumped);
	put_calls(&dumped, false);
	put(&dumped, entry_addr(INNER_LOOP) + dumped.py.build.offsets.frame.previous,
	    end_of(DATA_ADDR, dumped.f) + 8);
	make_steady(&dumped);
	cr_expect(eq(str, shown(&dumped), (char *)"|f [unknown] g |[unknown] h "));
	cr_expect(eq(u32, dumped.nr_holes, 2));
	dumped_done(&dumped);

	/* The inner loop has the frame of f, which is steady, and an instruction of h. */
	dumped_init(&dumped);
	put_calls(&dumped, true);
	g_addr = end_of(DATA_ADDR, dumped.f);
	h_addr = end_of(g_addr, dumped.g);
	put_late_entry(&dumped, h_addr, INNER_LOOP, g_addr, dumped.f);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] h "), "nothing is steady yet");
	make_steady(&dumped);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |f [unknown] h "));
	cr_expect(eq(u32, dumped.nr_holes, 1));
	fake_python_code_names(&dumped.py, dumped.f->addr, dumped.h->addr);
	dumped.names = (struct call_names){0};
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |f h "));
	cr_expect(zero(u32, dumped.nr_holes));
	/* It names what it has called, but calls another one all the time. */
	put_late(&dumped, end_of(h_addr, dumped.f), h_addr, dumped.g);
	make_steady(&dumped);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |f g [unknown] h "));
	dumped.late.nr_frames--;
	make_steady(&dumped);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |f h "));
	/* The outer one has called: where its frame is was told exactly. */
	put_loop(&dumped, INNER_LOOP, g_addr, h_addr, dumped.f);
	put_loop(&dumped, OUTER_LOOP, 0, g_addr, dumped.h);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |f "));
	cr_expect(zero(u32, dumped.nr_holes));
	dumped_done(&dumped);
}

/*
 * 3.11: the frame that runs is told, wherever it is; and of two loops that may be, as an older call
 * has left what the inner one has, the one is none that the other does not lead to.
 */
Test(dumped_stack, loops_by_cframes)
{
	struct dumped dumped;
	const struct py_offsets *offsets;
	remote_addr h_addr;

	dumped_init_minor(&dumped, 11);
	offsets = &dumped.py.build.offsets;
	put_calls(&dumped, true);
	h_addr = end_of(end_of(DATA_ADDR, dumped.f), dumped.g);
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_RBX, 0x1234);
	put(&dumped, entry_addr(INNER_LOOP + 1) + offsets->cframe.current_frame, h_addr);
	put(&dumped, entry_addr(INNER_LOOP + 1) + offsets->cframe.previous, entry_addr(OUTER_LOOP));
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	cr_expect(zero(u32, dumped.nr_holes));
	cr_expect(eq(u64, dumped.list.frames[2].addr, h_addr));
	cr_expect(eq(u64, dumped.list.frames[2].previous, entry_addr(INNER_LOOP)));
	cr_expect(eq(u64, dumped.list.frames[0].previous, entry_addr(OUTER_LOOP)));

	/* Nor is what lies further out than the outermost one. */
	put(&dumped, entry_addr(OUTER_LOOP + 1) + offsets->cframe.current_frame, h_addr);
	put(&dumped, entry_addr(OUTER_LOOP + 1) + offsets->cframe.previous,
	    dumped.stack.thread_addr);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));

	/* Of what is outside of the copy no frame can be told to hang on it. */
	dumped.window.nr_bytes = OUTER_LOOP * FRAME_BYTES;
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] h "));
	cr_expect(eq(u32, dumped.nr_holes, 1));
	dumped_done(&dumped);
}

enum { GENERATOR_ADDR = 0x900000, RETURN_ADDR = 0x123400 };

/* f calls the generator g through C, which runs itself or has called h, which lies behind f. */
static void put_generator(struct dumped *dumped, bool has_called)
{
	const remote_addr h_addr = end_of(DATA_ADDR, dumped->f);

	dumped->frames[INNER_LOOP + 1].pc = RETURN_ADDR;
	put_loop(dumped, OUTER_LOOP, 0, DATA_ADDR, dumped->f);
	put_loop(dumped, INNER_LOOP, DATA_ADDR, has_called ? h_addr : GENERATOR_ADDR,
		 has_called ? dumped->h : dumped->g);
	put_late_entry(dumped, DATA_ADDR, OUTER_LOOP, 0, dumped->f);
	put_late_entry(dumped, GENERATOR_ADDR, INNER_LOOP, DATA_ADDR, dumped->g);
	put_late(dumped, h_addr, GENERATOR_ADDR, dumped->h);
}

/*
 * What the later look has of the leaf is another function's frame, or one that has called others.
 */
Test(dumped_stack, places_that_others_have_by_now)
{
	struct dumped dumped;
	const remote_addr f_addr = DATA_ADDR;
	remote_addr g_addr;

	dumped_init(&dumped);
	g_addr = end_of(f_addr, dumped.f);
	put_calls(&dumped, false);
	put_late(&dumped, g_addr, f_addr, dumped.h);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	put_late(&dumped, DATA_ADDR + 0x1000, g_addr, dumped.h);
	cr_expect(eq(str, shown(&dumped), (char *)"|[unknown] g |h "));
	dumped_done(&dumped);
}

/* That h lies behind f does not say that f has called it: where the loop was called does. */
Test(dumped_stack, what_a_generator_calls)
{
	for (int i = 0; i < 2; i++) {
		struct dumped dumped;

		dumped_init_minor(&dumped, i ? 11 : 14);
		/* f may call h by its names. */
		fake_python_code_names(&dumped.py, dumped.f->addr, dumped.h->addr);
		put_generator(&dumped, true);
		cr_expect(eq(str, shown(&dumped), (char *)"|f |g h "));
		dumped.late.nr_frames = 1;
		cr_expect(eq(str, shown(&dumped), (char *)"|f |h "));
		put_generator(&dumped, false);
		for (int round = 0; round < 4; round++)
			cr_expect(eq(str, shown(&dumped), (char *)"|f |g "));
		put_generator(&dumped, true);
		dumped.late.nr_frames = 1;
		cr_expect(eq(str, shown(&dumped), (char *)"|f |[unknown] h "));
		dumped.frames[INNER_LOOP + 1].pc++;
		cr_expect(eq(str, shown(&dumped), (char *)"|f |h "));
		dumped_done(&dumped);
	}
}

/* 3.11 calls the loop for each generator, so nothing is between; what begins a chunk is none. */
Test(dumped_stack, generators_that_are_gone)
{
	struct dumped dumped;

	dumped_init_minor(&dumped, 11);
	put_generator(&dumped, false);
	dumped.late.nr_frames = 1;
	cr_expect(eq(str, shown(&dumped), (char *)"|f |g "));
	put_loop(&dumped, INNER_LOOP, DATA_ADDR, GENERATOR_ADDR + 24, dumped.g);
	cr_expect(eq(str, shown(&dumped), (char *)"|f |[unknown] g "));
	cr_expect(eq(u32, dumped.nr_holes, 1));
	dumped_done(&dumped);
}

/* Its own entry frame is what it runs: it is about to return, and has no frame of Python's. */
Test(dumped_stack, a_loop_that_returns)
{
	struct dumped dumped;

	dumped_init(&dumped);
	put_calls(&dumped, true);
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_RBX, entry_addr(INNER_LOOP));
	cr_expect(eq(str, shown(&dumped), (char *)"|f g "));
	cr_expect(zero(u32, dumped.nr_holes));
	dumped_done(&dumped);
}

/* Have the C frame that called a loop be in a trampoline. */
static void put_trampoline(struct dumped *dumped, unsigned int loop)
{
	static const uint8_t bytes[16] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
	const remote_addr addr = 0x40000 + 0x1000 * loop;

	fake_memory_map_bytes(&dumped->py.fake, addr, bytes, sizeof(bytes));
	dumped->frames[loop + 1].lookup_addr = addr + 5;
}

/* What trampolines have called is one frame: there is nothing between it and its loop. */
Test(dumped_stack, loops_that_trampolines_call)
{
	struct dumped dumped;

	dumped_init(&dumped);
	put_calls(&dumped, true);
	put_trampoline(&dumped, INNER_LOOP);
	put_trampoline(&dumped, OUTER_LOOP);
	dumped.late.nr_frames = 0;
	cr_expect(eq(str, shown(&dumped), (char *)"|g |h "));
	cr_expect(zero(u32, dumped.nr_holes));

	/* The innermost one has not begun: the trampoline tells it. */
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_R12, 0x1234);
	cr_expect(eq(str, shown(&dumped), (char *)"|g "));
	cr_expect(zero(u32, dumped.nr_holes));
	dumped_done(&dumped);
}

/* Let the C frame that a loop has called be an executor of the interpreter's JIT. */
static void put_executor(struct dumped *dumped, unsigned int loop)
{
	static struct mapping mapping = {
		.start = 0x60000, .end = 0x70000, .readable = true, .executable = true, .path = ""};
	static const struct maps maps = {.mappings = &mapping, .nr_mappings = 1};
	static struct executor_range range = {0x60000, 0x61000};

	dumped->natives.executors = (struct executor_list){
		.ranges = &range, .nr_ranges = 1, .pace = {.look_ns = UINT64_MAX}};
	dumped->py.build.traits.has_unnamed_executors = true;
	if (!dumped->natives.map.nr_ranges)
		cr_assert(zero(int, module_map_init(&dumped->natives.map, &maps)));
	dumped->frames[loop - 1].lookup_addr = 0x60000 + loop;
}

/* In the JIT there is no next instruction: what the later look says of the loop's frame counts. */
Test(dumped_stack, loops_in_the_jit)
{
	struct dumped dumped;
	const remote_addr f_addr = DATA_ADDR;
	remote_addr h_addr;

	dumped_init(&dumped);
	h_addr = end_of(end_of(f_addr, dumped.f), dumped.g);
	put_calls(&dumped, true);
	put_late_entry(&dumped, h_addr, INNER_LOOP, 0, dumped.h);
	put_executor(&dumped, INNER_LOOP);
	put_executor(&dumped, OUTER_LOOP);
	/* The executor has the frame in a register, which is not known yet. */
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] "));
	learn(&dumped.places.frames[LOOP_IN_JIT], REGISTER_R12);
	registers_set(&dumped.registers[INNER_LOOP - 1], REGISTER_R12, h_addr);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	cr_expect(zero(u32, dumped.nr_holes));
	registers_set(&dumped.registers[INNER_LOOP - 1], REGISTER_R12, h_addr + 8);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] "));
	module_map_done(&dumped.natives.map);
	dumped_done(&dumped);
}

/*
 * Its instruction is nowhere, but it is in the same call of C still: what Python says now counts.
 */
Test(dumped_stack, loops_that_stand_still)
{
	struct dumped dumped;
	uint8_t bytes_now[sizeof(dumped.bytes)];
	struct stack_window now = {
		.start = STACK_ADDR, .bytes = bytes_now, .nr_bytes = sizeof(bytes_now)};
	const remote_addr return_addr = entry_addr(INNER_LOOP) - 0x80;
	remote_addr h_addr;

	dumped_init(&dumped);
	h_addr = end_of(end_of(DATA_ADDR, dumped.f), dumped.g);
	put_calls(&dumped, true);
	put_late_entry(&dumped, h_addr, INNER_LOOP, 0, dumped.h);
	put_trampoline(&dumped, OUTER_LOOP);
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_R12, 0x1234);
	cr_expect(eq(str, shown(&dumped), (char *)"|g |[unknown] "));

	/* The only return address that is known as one is in the trampoline. */
	put(&dumped, return_addr, dumped.frames[OUTER_LOOP + 1].lookup_addr + 1);
	memcpy(bytes_now, dumped.bytes, sizeof(bytes_now));
	dumped.stack.now = &now;
	cr_expect(eq(str, shown(&dumped), (char *)"|g |h "));
	cr_expect(zero(u32, dumped.nr_holes));
	bytes_now[return_addr - STACK_ADDR] ^= 8;
	cr_expect(eq(str, shown(&dumped), (char *)"|g |[unknown] "));
	dumped_done(&dumped);
}

/* The first instruction comes next; what is before it is no instruction. */
Test(dumped_stack, a_frame_that_has_just_begun)
{
	struct dumped dumped;

	dumped_init(&dumped);
	put_calls(&dumped, true);
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_R12, dumped.h->code_start_addr);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	registers_set(&dumped.registers[INNER_LOOP], REGISTER_R12, dumped.h->code_start_addr - 1);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] "));
	dumped_done(&dumped);
}

/* The innermost loop has not used a register yet that is as its caller had it. */
Test(dumped_stack, a_loop_that_is_being_called)
{
	struct dumped dumped;

	dumped_init(&dumped);
	put_calls(&dumped, true);
	dumped.natives.frames += INNER_LOOP;
	dumped.natives.registers += INNER_LOOP;
	dumped.natives.nr_frames -= INNER_LOOP;
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
	registers_set(&dumped.registers[INNER_LOOP + 1], REGISTER_R12,
		      dumped.h->code_start_addr + 8);
	cr_expect(eq(str, shown(&dumped), (char *)"|f g |[unknown] "));
	dumped_done(&dumped);
}

/* What the thread's cframes tell by now. */
static void put_memory(struct dumped *dumped)
{
	const struct py_offsets *offsets = &dumped->py.build.offsets;
	struct fake_memory *fake = &dumped->py.fake;

	fake_memory_map_bytes(fake, STACK_ADDR, dumped->bytes, sizeof(dumped->bytes));
	fake_memory_write_u64(fake, dumped->stack.thread_addr + offsets->thread.cframe,
			      entry_addr(INNER_LOOP));
}

Test(dumped_stack, nothing_learnt)
{
	for (int i = 0; i < 2; i++) {
		struct dumped dumped;
		uint32_t nr_holes;

		dumped_init_minor(&dumped, i ? 11 : 14);
		put_calls(&dumped, true);
		put_late_entry(&dumped, end_of(end_of(DATA_ADDR, dumped.f), dumped.g), INNER_LOOP,
			       end_of(DATA_ADDR, dumped.f), dumped.h);
		if (has_cframes(&dumped))
			put_memory(&dumped);
		memset(&dumped.places, 0, sizeof(dumped.places));
		cr_expect(eq(int, dumped_stack_frames(&dumped.stack, &dumped.list, &nr_holes),
			     -EAGAIN));
		for (int round = 0; round < 20; round++)
			dumped_loops_learn(&dumped.stack);
		cr_expect(eq(u32, dumped.places.entry_distance_bytes, DISTANCE));
		cr_expect(eq(str, shown(&dumped), (char *)"|f g |h "));
		dumped_done(&dumped);
	}
}

/* What an older loop has left in a C function tells of no loop: that is as long as all others. */
Test(dumped_stack, c_functions_of_another_length)
{
	for (int i = 0; i < 2; i++) {
		struct dumped dumped;

		dumped_init(&dumped);
		put_calls(&dumped, true);
		put_loop(&dumped, INNER_LOOP + 1, DATA_ADDR, DATA_ADDR, dumped.g);
		dumped.frames[INNER_LOOP + 1].sp = entry_addr(INNER_LOOP + 1);
		dumped.places.frame_bytes = i ? FRAME_BYTES : 0;
		cr_expect(eq(int, strcmp(shown(&dumped), "|f g |h ") == 0, i));
		dumped_done(&dumped);
	}
}

/* Any bytes end in frames that hang together, and in no more than there are loops. */
static void check_hostile(uint32_t minor)
{
	struct dumped dumped;

	dumped_init_minor(&dumped, minor);
	put_calls(&dumped, true);
	for (int round = 0; round < 20000; round++) {
		const uint64_t values[] = {(uint64_t)rand(),
					   entry_addr((unsigned int)rand() % NR_FRAMES),
					   dumped.late.frames[rand() % 2].addr,
					   dumped.g->code_start_addr + (uint64_t)(rand() % 64),
					   dumped.py.none_addr,
					   UINT64_MAX - (uint64_t)(rand() % 64)};
		const uint64_t value = values[rand() % 6];
		const unsigned int frame = (unsigned int)rand() % NR_FRAMES;

		put(&dumped, STACK_ADDR + (uint64_t)(rand() % (NR_FRAMES * FRAME_BYTES / 8)) * 8,
		    value);
		put(&dumped, entry_addr(frame) + dumped.py.build.offsets.frame.previous, value);
		registers_set(&dumped.registers[frame], rand() % 2 ? REGISTER_RBX : REGISTER_R12,
			      values[rand() % 6]);
		dumped.late.frames[rand() % 2].previous = values[rand() % 6];
		dumped_loops_learn(&dumped.stack);
		cr_assert(zero(int,
			       dumped_stack_frames(&dumped.stack, &dumped.list, &dumped.nr_holes)));
		cr_assert(le(u32, dumped.list.nr_frames, 4 * NR_FRAMES));
	}
	dumped_done(&dumped);
}

Test(dumped_stack, hostile)
{
	srand(1);
	check_hostile(14);
	check_hostile(11);
}

#endif
