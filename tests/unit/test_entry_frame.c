/* SPDX-License-Identifier: MIT */
#include "sampler/entry_frame.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "support/fake_python.h"

enum { STACK_ADDR = 0x7ff000, NR_WORDS = 1024 };

struct copy {
	struct fake_python py;
	struct code_cache codes;
	uint64_t words[NR_WORDS];
	struct stack_window window;
};

static void copy_init(struct copy *copy)
{
	*copy = (struct copy){.words = {0}};
	fake_python_init(&copy->py, 14);
	code_cache_init(&copy->codes, &copy->py.fake.memory, &copy->py.build);
	copy->codes.nothings[copy->codes.nr_nothings++] = copy->py.none_addr;
	copy->window = (struct stack_window){.start = STACK_ADDR,
					     .bytes = (const uint8_t *)copy->words,
					     .nr_bytes = sizeof(copy->words)};
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
Test(entry_frame, what_is_one)
{
	const remote_addr addr = STACK_ADDR + 0x400;
	remote_addr previous = 0;
	struct copy copy;

	copy_init(&copy);
	cr_expect(not(entry_frame_read(&copy.codes, &copy.window, addr, &previous)));
	put_entry(&copy, addr, copy.py.none_addr | 1, FAKE_SHIM);
	cr_assert(entry_frame_read(&copy.codes, &copy.window, addr, &previous));
	cr_expect(eq(u64, previous, 0x500000));
	put_entry(&copy, addr, copy.py.none_addr, 0);
	cr_expect(not(entry_frame_read(&copy.codes, &copy.window, addr, &previous)));
	put_entry(&copy, addr, copy.py.none_addr + 16, FAKE_SHIM);
	cr_expect(not(entry_frame_read(&copy.codes, &copy.window, addr, &previous)));
	copy_done(&copy);
}

Test(entry_frame, the_next_one)
{
	remote_addr found = 0;
	struct copy copy;

	copy_init(&copy);
	cr_expect(not(entry_frame_find(&copy.codes, &copy.window, STACK_ADDR, &found)));
	put_entry(&copy, STACK_ADDR + 0x400, copy.py.none_addr, FAKE_SHIM);
	put_entry(&copy, STACK_ADDR + 0x800, copy.py.none_addr, FAKE_SHIM);
	cr_assert(entry_frame_find(&copy.codes, &copy.window, STACK_ADDR, &found));
	cr_expect(eq(u64, found, STACK_ADDR + 0x400));
	cr_assert(entry_frame_find(&copy.codes, &copy.window, STACK_ADDR + 0x401, &found));
	cr_expect(eq(u64, found, STACK_ADDR + 0x800));
	cr_expect(not(entry_frame_find(&copy.codes, &copy.window, STACK_ADDR + 0x801, &found)));
	cr_expect(not(entry_frame_find(&copy.codes, &copy.window, UINT64_MAX - 64, &found)));
	copy_done(&copy);
}
