/* SPDX-License-Identifier: MIT */
#include "sampler/loop_places.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { CFA = 0x8000, SP = 0x7f00, NR_WORDS = (CFA - SP) / 8 };

#if defined(__x86_64__)
enum { KEPT_REGISTER = REGISTER_RBX };
#else
enum { KEPT_REGISTER = REGISTER_X19 };
#endif

enum { FRAME = 0x500000, CODE = 0x600000, CODE_END = 0x600100 };

/* A C frame of a loop, all of whose words and registers are 0. */
struct made_frame {
	uint64_t words[NR_WORDS];
	struct registers registers;
	struct stack_window window;
	struct loop_frame frame;
};

static void make_frame(struct made_frame *made, bool is_innermost)
{
	*made = (struct made_frame){.registers = {.known = REGISTERS_KEPT}};
	made->window = (struct stack_window){
		.start = SP,
		.bytes = (const uint8_t *)made->words,
		.nr_bytes = sizeof(made->words),
	};
	made->frame = (struct loop_frame){
		.registers = &made->registers,
		.window = &made->window,
		.sp = SP,
		.cfa = CFA,
		.kind = is_innermost ? LOOP_RUNS : LOOP_CALLS,
	};
}

/* Let each C frame be at another instruction: what is known of one is no matter then. */
static void move_on(struct made_frame *made)
{
	static remote_addr pc_addr = 0x400000;

	made->frame.pc_addr = pc_addr += 4;
}

/* Put a word so many bytes below the CFA. */
static void put(struct made_frame *made, size_t distance_bytes, uint64_t value)
{
	made->words[NR_WORDS - distance_bytes / 8] = value;
}

/* At the instruction that it is at. */
static void vote_there(struct loop_places *places, const struct made_frame *made)
{
	static const struct loop_candidate candidate = {
		.frame_addr = FRAME, .code_start_addr = CODE, .code_end_addr = CODE_END};

	loop_places_vote(places, &made->frame, &candidate, 1);
}

static void vote(struct loop_places *places, struct made_frame *made)
{
	move_on(made);
	vote_there(places, made);
}

Test(loop_places, an_entry_needs_many_votes)
{
	struct loop_places places = {0};

	/* As many distances of chance as there are, and one more each time. */
	for (uint32_t i = 1; i <= 30; i++)
		loop_places_vote_entry(&places, 8 * i);
	cr_expect(zero(u32, places.entry_distance_bytes));
	for (uint32_t i = 0; i < 4; i++)
		loop_places_vote_entry(&places, 144);
	cr_expect(eq(u32, places.entry_distance_bytes, 144));
}

/* That with the most votes wins, also if another one has had enough of them before. */
Test(loop_places, lengths)
{
	struct loop_places places = {0};

	cr_expect(loop_places_is_length(&places, 8));
	for (int i = 0; i < 4; i++)
		loop_places_vote_length(&places, 160);
	cr_expect(loop_places_is_length(&places, 160));
	for (int i = 0; i < 5; i++)
		loop_places_vote_length(&places, 528);
	cr_expect(not(loop_places_is_length(&places, 160)));
	cr_expect(not(loop_places_is_length(&places, UINT64_MAX)));
	/* It may have pushed what a function takes. */
	cr_expect(loop_places_is_length(&places, 528));
	cr_expect(loop_places_is_length(&places, 528 + 64));
	cr_expect(not(loop_places_is_length(&places, 528 + 72)));
}

Test(loop_places, entries_are_wanted_until_both_are_known)
{
	struct loop_places places = {0};

	for (int i = 0; i < 4; i++)
		loop_places_vote_entry(&places, 144);
	cr_expect(loop_places_wants_entries(&places));
	for (int i = 0; i < 64; i++)
		loop_places_vote_length(&places, 528);
	cr_expect(not(loop_places_wants_entries(&places)));
}

Test(loop_places, places_in_registers_and_slots)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	registers_set(&made.registers, KEPT_REGISTER, FRAME);
	put(&made, 104, CODE + 8);
	for (int i = 0; i < 5; i++)
		vote(&places, &made);
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
	vote(&places, &made);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME));
	cr_assert(loop_places_next_instr(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, CODE + 8));
	cr_expect(not(loop_places_frame(&places, &made.frame, 1, &addr)));

	/*
	 * What is there in another frame, of the innermost kind too as long as that is not known.
	 */
	make_frame(&made, true);
	move_on(&made);
	registers_set(&made.registers, KEPT_REGISTER, FRAME + 0x100);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME + 0x100));
	made.registers.known = 0;
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
}

/* Without the frame an instruction has no vote: its place may be an older call's. */
Test(loop_places, instructions_need_their_frame)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	put(&made, 104, CODE + 8);
	for (int i = 0; i < 50; i++)
		vote(&places, &made);
	cr_expect(not(loop_places_next_instr(&places, &made.frame, 0, &addr)));
}

/* Where the code begins no instruction has been run; where it ends the last one has. */
Test(loop_places, where_code_begins_and_ends)
{
	static const struct {
		remote_addr addr;
		bool counts;
	} cases[] = {{CODE - 1, false},	   {CODE, false},    {CODE + 2, true},
		     {CODE_END - 2, true}, {CODE_END, true}, {CODE_END + 2, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loop_places places = {0};
		struct made_frame made;
		remote_addr addr;

		make_frame(&made, false);
		registers_set(&made.registers, KEPT_REGISTER, FRAME);
		put(&made, 104, cases[i].addr);
		for (int n = 0; n < 50; n++)
			vote(&places, &made);
		cr_expect(eq(int, loop_places_next_instr(&places, &made.frame, 0, &addr),
			     cases[i].counts),
			  "case %zu", i);
	}
}

/* The place with the most votes comes first, however they came; those of chance do not come. */
Test(loop_places, ranks)
{
	static const struct {
		size_t distance_bytes;
		int nr;
	} slots[] = {{16, 10}, {24, 40}, {32, 20}, {40, 3}};
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		make_frame(&made, false);
		put(&made, slots[i].distance_bytes, FRAME);
		for (int k = 0; k < slots[i].nr; k++)
			vote(&places, &made);
	}
	make_frame(&made, false);
	move_on(&made);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		put(&made, slots[i].distance_bytes, slots[i].distance_bytes);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, 24));
	cr_assert(loop_places_frame(&places, &made.frame, 1, &addr));
	cr_expect(eq(u64, addr, 32));
	cr_assert(loop_places_frame(&places, &made.frame, 2, &addr));
	cr_expect(eq(u64, addr, 16));
	cr_expect(not(loop_places_frame(&places, &made.frame, 3, &addr)));
}

/* A slot outside of the C frame, or of what was copied, is none. */
Test(loop_places, short_frames)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	put(&made, 104, FRAME);
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	made.frame.sp = CFA - 96;
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
	made.frame.sp = SP;
	made.window.nr_bytes = NR_WORDS * 8 - 104;
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
	made.window.nr_bytes += 8;
	cr_expect(loop_places_frame(&places, &made.frame, 0, &addr));
}

/*
 * At an instruction where it was found elsewhere it is looked for there first, if that is no
 * chance: of as many findings as make a place that is often the right one known.
 */
Test(loop_places, places_of_an_instruction)
{
	struct loop_places places = {0};
	struct made_frame made, other;
	remote_addr addr;

	make_frame(&other, false);
	registers_set(&other.registers, KEPT_REGISTER, FRAME);
	for (int i = 0; i < 100; i++)
		vote(&places, &other);
	make_frame(&made, false);
	move_on(&made);
	put(&made, 104, FRAME);
	for (int i = 0; i < 15; i++)
		vote_there(&places, &made);
	registers_set(&made.registers, KEPT_REGISTER, 0x1234);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, 0x1234));
	registers_set(&made.registers, KEPT_REGISTER, 0);
	vote_there(&places, &made);
	registers_set(&made.registers, KEPT_REGISTER, 0x1234);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME));
	cr_assert(loop_places_frame(&places, &made.frame, 1, &addr));
	cr_expect(eq(u64, addr, 0x1234));
	cr_assert(loop_places_frame(&places, &other.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME));
}

/* Of two that have it as often, three findings say which one it is at an instruction. */
Test(loop_places, places_of_an_instruction_that_are_common)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	registers_set(&made.registers, KEPT_REGISTER, FRAME);
	for (int i = 0; i < 100; i++)
		vote(&places, &made);
	registers_set(&made.registers, KEPT_REGISTER, 0x1234);
	put(&made, 104, FRAME);
	for (int i = 0; i < 80; i++)
		vote(&places, &made);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, 0x1234));
	for (int i = 0; i < 2; i++)
		vote_there(&places, &made);
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME));
}

/* Of an innermost loop, which may be being called: what an older one has left is not its own. */
Test(loop_places, loops_that_begin)
{
	struct loop_places places = {0};
	struct registers caller = {.known = REGISTERS_KEPT};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, true);
	registers_set(&made.registers, KEPT_REGISTER, FRAME);
	put(&made, 104, FRAME);
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	move_on(&made);
	made.frame.caller = &caller;
	cr_assert(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(eq(u64, addr, FRAME));
	cr_expect(not(loop_places_frame(&places, &made.frame, 1, &addr)));
	registers_set(&caller, KEPT_REGISTER, FRAME);
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
	made.frame.kind = LOOP_CALLS;
	cr_expect(loop_places_frame(&places, &made.frame, 0, &addr));
}

/* Words of the C frame that hold other things are no places. */
Test(loop_places, words_that_are_no_place)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	put(&made, 24, FRAME);
	made.frame.other_addrs[made.frame.nr_others++] = CFA - 24;
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	cr_expect(not(loop_places_frame(&places, &made.frame, 0, &addr)));
	made.frame.nr_others = 0;
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	cr_expect(loop_places_frame(&places, &made.frame, 0, &addr));
}

/* Nor is what is the next instruction of the loop around: one that calls itself is in that code. */
Test(loop_places, instructions_of_the_loop_around)
{
	struct loop_places places = {0};
	struct made_frame made;
	remote_addr addr;

	make_frame(&made, false);
	put(&made, 24, FRAME);
	put(&made, 32, CODE + 8);
	made.frame.outer_instr_addr = CODE + 8;
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	cr_expect(loop_places_frame(&places, &made.frame, 0, &addr));
	cr_expect(not(loop_places_next_instr(&places, &made.frame, 0, &addr)));
	made.frame.outer_instr_addr = 0;
	for (int i = 0; i < 10; i++)
		vote(&places, &made);
	cr_expect(loop_places_next_instr(&places, &made.frame, 0, &addr));
	made.frame.outer_instr_addr = CODE + 8;
	cr_expect(not(loop_places_next_instr(&places, &made.frame, 0, &addr)));
}
