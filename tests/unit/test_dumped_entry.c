/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_entry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "support/fake_python.h"

enum { STACK_ADDR = 0x7ff000, NR_WORDS = 1024, THREAD_ADDR = 0x6000 };

struct copy {
	struct fake_python py;
	struct code_cache codes;
	uint64_t words[NR_WORDS];
	struct stack_window window;
	struct dumped_stack stack;
};

static void copy_init(struct copy *copy, uint32_t minor)
{
	*copy = (struct copy){.words = {0}};
	fake_python_init(&copy->py, minor);
	code_cache_init(&copy->codes, &copy->py.fake.memory, &copy->py.build);
	copy->codes.nothings[copy->codes.nr_nothings++] = copy->py.none_addr;
	copy->window = (struct stack_window){.start = STACK_ADDR,
					     .bytes = (const uint8_t *)copy->words,
					     .nr_bytes = sizeof(copy->words)};
	copy->stack = (struct dumped_stack){
		.window = &copy->window, .codes = &copy->codes, .thread_addr = THREAD_ADDR};
}

static void copy_done(struct copy *copy)
{
	code_cache_done(&copy->codes);
	fake_python_done(&copy->py);
}

static void put(struct copy *copy, remote_addr addr, uint64_t value)
{
	memcpy((uint8_t *)copy->words + (addr - STACK_ADDR), &value, sizeof(value));
}

static void put_entry(struct copy *copy, remote_addr addr, uint64_t executable, uint8_t owner)
{
	const struct py_offsets *offsets = &copy->py.build.offsets;

	put(copy, addr + offsets->frame.owner, owner);
	put(copy, addr + offsets->frame.executable, executable);
	put(copy, addr + offsets->frame.previous, 0x500000);
}

/* What it executes is None, with a tag or without, and its owner is the C stack. */
Test(dumped_entry, frames)
{
	const remote_addr addr = STACK_ADDR + 0x400;
	struct dumped_entry entry = {0};
	struct copy copy;

	copy_init(&copy, 14);
	cr_expect(not(dumped_entry_read(&copy.stack, addr, &entry)));
	put_entry(&copy, addr, copy.py.none_addr | 1, FAKE_SHIM);
	cr_assert(dumped_entry_read(&copy.stack, addr, &entry));
	cr_expect(eq(u64, entry.previous, 0x500000));
	cr_expect(eq(u64, entry.caller_addr, addr));
	cr_expect(eq(u64, entry.link_addr, addr + copy.py.build.offsets.frame.previous));
	cr_expect(zero(u64, entry.leaf_addr));
	cr_expect(zero(u64, entry.outer_addr));
	put_entry(&copy, addr, copy.py.none_addr, 0);
	cr_expect(not(dumped_entry_read(&copy.stack, addr, &entry)));
	put_entry(&copy, addr, copy.py.none_addr + 16, FAKE_SHIM);
	cr_expect(not(dumped_entry_read(&copy.stack, addr, &entry)));
	copy_done(&copy);
}

static void put_cframe(struct copy *copy, remote_addr addr, remote_addr current_frame,
		       remote_addr previous)
{
	const struct py_offsets *offsets = &copy->py.build.offsets;

	put(copy, addr + offsets->cframe.current_frame, current_frame);
	put(copy, addr + offsets->cframe.previous, previous);
}

/* One names the frame that runs, and the next one, whose frame has called into C. */
Test(dumped_entry, cframes)
{
	const remote_addr inner = STACK_ADDR + 0x400, outer = STACK_ADDR + 0x800;
	const remote_addr root = THREAD_ADDR + 0x100;
	struct dumped_entry entry = {0};
	struct copy copy;

	copy_init(&copy, 11);
	put_cframe(&copy, inner, 0x500100, outer);
	put_cframe(&copy, outer, 0x500000, root);
	cr_assert(dumped_entry_read(&copy.stack, inner, &entry));
	cr_expect(eq(u64, entry.leaf_addr, 0x500100));
	cr_expect(eq(u64, entry.previous, 0x500000));
	cr_expect(eq(u64, entry.caller_addr, 0x500000));
	cr_expect(eq(u64, entry.outer_addr, outer));
	cr_expect(eq(u64, entry.link_addr, inner + copy.py.build.offsets.cframe.previous));
	cr_assert(dumped_entry_read(&copy.stack, outer, &entry));
	cr_expect(eq(u64, entry.leaf_addr, 0x500000));
	cr_expect(zero(u64, entry.previous));
	cr_expect(zero(u64, entry.caller_addr));
	cr_expect(eq(u64, entry.outer_addr, root));

	/* The copy ends before the next one: no frame's caller is known then. */
	copy.window.nr_bytes = 0x800;
	cr_assert(dumped_entry_read(&copy.stack, inner, &entry));
	cr_expect(zero(u64, entry.previous));
	cr_expect(eq(u64, entry.caller_addr, inner));
	cr_expect(eq(u64, entry.outer_addr, outer));
	copy_done(&copy);
}

Test(dumped_entry, no_cframes)
{
	const remote_addr inner = STACK_ADDR + 0x400, outer = STACK_ADDR + 0x800;
	static const struct {
		remote_addr current_frame, previous, outer_frame, outermost;
	} cases[] = {
		{0, outer, 0x500000, THREAD_ADDR},		    /* no frame */
		{0x500104, outer, 0x500000, THREAD_ADDR},	    /* in the middle of a word */
		{0x500100, outer + 4, 0x500000, THREAD_ADDR},	    /* so is the next one */
		{0x500100, outer + 16, 0x500000, THREAD_ADDR},	    /* there is none */
		{0x500100, outer, 0, THREAD_ADDR},		    /* which runs no frame */
		{0x500100, inner, 0x500000, THREAD_ADDR},	    /* a circle */
		{0x500100, inner - 8, 0x500000, THREAD_ADDR},	    /* downwards */
		{0x500100, inner + 0x8000, 0x500000, THREAD_ADDR},  /* too far away */
		{0x500100, THREAD_ADDR - 8, 0x500000, THREAD_ADDR}, /* not in the thread state */
		{0x500100, THREAD_ADDR + 0x1000, 0x500000, THREAD_ADDR},
		{0x500100, outer, 0x500000, outer}, /* the next one leads nowhere */
		{0x500100, outer, 0x500000, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dumped_entry entry;
		struct copy copy;

		copy_init(&copy, 11);
		put_cframe(&copy, inner, cases[i].current_frame, cases[i].previous);
		put_cframe(&copy, outer, cases[i].outer_frame, cases[i].outermost);
		cr_expect(not(dumped_entry_read(&copy.stack, inner, &entry)), "case %zu", i);
		copy_done(&copy);
	}
}

Test(dumped_entry, the_next_one)
{
	remote_addr found = 0;
	struct copy copy;

	copy_init(&copy, 14);
	cr_expect(not(dumped_entry_find(&copy.stack, STACK_ADDR, &found)));
	put_entry(&copy, STACK_ADDR + 0x400, copy.py.none_addr, FAKE_SHIM);
	put_entry(&copy, STACK_ADDR + 0x800, copy.py.none_addr, FAKE_SHIM);
	cr_assert(dumped_entry_find(&copy.stack, STACK_ADDR, &found));
	cr_expect(eq(u64, found, STACK_ADDR + 0x400));
	cr_assert(dumped_entry_find(&copy.stack, STACK_ADDR + 0x401, &found));
	cr_expect(eq(u64, found, STACK_ADDR + 0x800));
	cr_expect(not(dumped_entry_find(&copy.stack, STACK_ADDR + 0x801, &found)));
	cr_expect(not(dumped_entry_find(&copy.stack, UINT64_MAX - 64, &found)));
	copy_done(&copy);
}

/* Of which versions loops are known in a copy. */
Test(dumped_entry, versions)
{
	for (uint32_t minor = 6; minor <= 15; minor++) {
		struct py_build build;
		struct message message;

		if (minor >= 13) {
			struct fake_python py;

			fake_python_init(&py, minor);
			cr_expect(dumped_entry_is_told(&py.build));
			fake_python_done(&py);
			continue;
		}
		cr_assert(
			zero(int, offsets_of_version(0x03000000 | minor << 16, &build, &message)));
		cr_expect(eq(int, dumped_entry_is_told(&build), minor >= 11), "3.%u", minor);
	}
}
