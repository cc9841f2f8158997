/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/loop_entries.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "tests/support/fake_memory.h"

#define THREAD_ADDR UINT64_C(0x10000)
#define STACK_ADDR  UINT64_C(0x20000)
#define FRAME_ADDR  UINT64_C(0x30000)

enum { MAX = 8, CFRAME_BYTES = 24, FRAME_BYTES = 0x100 };

/*
 * frames: the Python frames, outermost first; "E" is one for which the loop was called (3.11).
 * cframes: innermost first, the index of each one's frame, "x" for a missing frame, "-" for
 * unmapped memory, "@" for the previous one again. expected: the index of the cframe at each frame,
 * or ".".
 */
struct entries_case {
	const char *name;
	uint32_t version_hex;
	const char *frames;
	bool is_partial;
	const char *cframes;
	const char *expected;
};

static remote_addr cframe_addr(size_t index)
{
	return STACK_ADDR + index * CFRAME_BYTES;
}

static remote_addr frame_addr(size_t index)
{
	return FRAME_ADDR + index * FRAME_BYTES;
}

/* Make the chain of _PyCFrames. The last one is in the thread state. */
static void make_chain(struct fake_memory *fake, const struct py_offsets *offsets,
		       const char *cframes)
{
	const remote_addr root_addr = THREAD_ADDR + offsets->thread.size - CFRAME_BYTES;

	fake_memory_map(fake, THREAD_ADDR, offsets->thread.size);
	fake_memory_write_u64(fake, THREAD_ADDR + offsets->thread.cframe,
			      cframes[0] ? cframe_addr(0) : root_addr);
	for (size_t i = 0; cframes[i] && cframes[i] != '-'; i++) {
		remote_addr previous = cframes[i + 1] ? cframe_addr(i + 1) : root_addr;

		if (cframes[i + 1] == '@')
			previous = cframe_addr(i);
		fake_memory_map(fake, cframe_addr(i), CFRAME_BYTES);
		fake_memory_write_u64(fake, cframe_addr(i) + offsets->cframe.previous, previous);
		if (offsets->cframe.current_frame != OFFSET_ABSENT)
			fake_memory_write_u64(
				fake, cframe_addr(i) + offsets->cframe.current_frame,
				cframes[i] == 'x' ? 0x99 : frame_addr((size_t)(cframes[i] - '0')));
	}
}

static void make_frames(const char *frames, struct frame_list *list)
{
	for (size_t i = 0; frames[i]; i++) {
		list->frames[i].addr = frame_addr(i);
		list->frames[i].is_entry = frames[i] == 'E';
		list->nr_frames++;
	}
}

static void check(const struct entries_case *entries_case)
{
	struct walked_frame frames[MAX] = {{0}};
	struct frame_list list = {.frames = frames};
	struct fake_memory fake;
	struct py_build build;
	struct message message = {.text = ""};
	struct code_cache codes = {.memory = &fake.memory, .build = &build};
	cleanup_free struct loop_entry *entries = NULL;

	cr_assert(zero(int, offsets_of_version(entries_case->version_hex, &build, &message)));
	fake_memory_init(&fake);
	make_chain(&fake, &build.offsets, entries_case->cframes);
	make_frames(entries_case->frames, &list);
	cr_assert(zero(int, loop_entries_read(&codes, THREAD_ADDR, &list, !entries_case->is_partial,
					      &entries)));
	for (uint32_t i = 0; i < list.nr_frames; i++) {
		const char cframe = entries_case->expected[i];
		const remote_addr wanted = cframe == '.' ? 0 : cframe_addr((size_t)(cframe - '0'));

		cr_expect(eq(u64, entries[i].c_addr, wanted), "%s: frame %u", entries_case->name,
			  i);
		cr_expect(eq(int, entries[i].is_entry,
			     build.traits.frames_on_heap || entries_case->frames[i] == 'E'));
	}
	fake_memory_done(&fake);
}

Test(loop_entries, match_calls_to_frames)
{
	static const struct entries_case cases[] = {
		{"no frames", 0x030b00f0, "", false, "", ""},
		{"3.11, one", 0x030b00f0, "E", false, "0", "0"},
		{"several frames a call", 0x030b00f0, "E..EE.", false, "532", "2..10."},
		{"a call that has not begun", 0x030b00f0, "E.E", false, "x21", "2.1"},
		{"a call without a frame between", 0x030b00f0, "E.E", false, "2x1", "2.0"},
		{"a frame without the flag", 0x030b00f0, "..E", false, "21", "1.0"},
		{"the outer frames are missing", 0x030b00f0, "E", true, "0xx", "0"},
		{"cut off", 0x030b00f0, "EE", false, "1-", ".0"},
		{"a circle", 0x030b00f0, "EE", false, "1@", ".0"},
		{"out of order", 0x030b00f0, "EE", false, "01", "0."},
		{"3.10, one each", 0x030a00f0, "EEE", false, "000", "210"},
		{"3.10, a call that has not begun", 0x030a00f0, "EE", false, "000", "21"},
		{"3.10, one that has ended", 0x030a00f0, "EEE", false, "00", "10."},
		{"3.10, too many", 0x030a00f0, "EE", false, "0000", ".."},
		{"3.10, too few", 0x030a00f0, "EEE", false, "0", "..."},
		{"3.10, the outer frames are missing", 0x030a00f0, "EE", true, "00", ".."},
		{"3.10, cut off", 0x030a00f0, "EE", false, "00-", ".."},
		{"3.10, a circle", 0x030a00f0, "EE", false, "0@", ".."},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(&cases[i]);
}

Test(loop_entries, dump_ends_with_the_process)
{
	struct walked_frame frame = {.addr = FRAME_ADDR};
	const struct frame_list list = {.frames = &frame, .nr_frames = 1};
	struct fake_memory fake;
	struct py_build build;
	struct message message;
	struct code_cache codes = {.memory = &fake.memory, .build = &build};
	struct loop_entry *entries;

	cr_assert(zero(int, offsets_of_version(0x030a00f0, &build, &message)));
	fake_memory_init(&fake);
	fake.error = -ESRCH;
	cr_expect(eq(int, loop_entries_read(&codes, THREAD_ADDR, &list, true, &entries), -ESRCH));
	fake_memory_done(&fake);
}
