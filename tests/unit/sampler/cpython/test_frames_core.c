/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/cpython/frames/frames.h"
#include "tests/support/fake_stack.h"

enum { WORDS = 20, CHUNK_BYTES = 4096, NR_FRAMES = 6 };

/* A stack of six frames in two chunks, called from C, and what the walk finds. */
struct stage {
	struct fake_python py;
	struct fake_stack stack;
	struct code_cache codes;
	struct frame_list list;
	struct stack_ends ends;
	remote_addr frames[NR_FRAMES];
};

static uint64_t thread_word(struct stage *stage, uint32_t offset)
{
	uint64_t word = 0;

	if (offset != OFFSET_ABSENT)
		cr_assert(zero(int,
			       remote_memory_read_u64(&stage->py.fake.memory,
						      stage->stack.thread_addr + offset, &word)));
	return word;
}

static void stage_init(struct stage *stage, uint32_t minor)
{
	static const char *const names[NR_FRAMES] = {"a", "b", "c", "d", "e", "f"};
	const struct py_offsets *offsets = &stage->py.build.offsets;

	*stage = (struct stage){.codes = {.memory = NULL}};
	fake_python_init(&stage->py, minor);
	fake_stack_init(&stage->stack, &stage->py, 7, CHUNK_BYTES);
	for (size_t i = 0; i < NR_FRAMES; i++) {
		const struct fake_code code = {.name = names[i], .frame_words = WORDS};

		if (i == NR_FRAMES / 2)
			fake_stack_new_chunk(&stage->stack, CHUNK_BYTES);
		stage->frames[i] =
			fake_stack_call(&stage->stack, fake_python_code(&stage->py, &code), WORDS);
	}
	fake_stack_finish(&stage->stack);
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
	stage->codes.is_core = true;
	stage->ends = (struct stack_ends){
		.current_frame_addr = stage->frames[NR_FRAMES - 1],
		.base_frame_addr = thread_word(stage, offsets->thread.base_frame),
		.newest_chunk_addr = thread_word(stage, offsets->thread.datastack_chunk),
		.datastack_top_addr = thread_word(stage, offsets->thread.datastack_top),
	};
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	code_cache_done(&stage->codes);
	fake_python_done(&stage->py);
}

static int walk(struct stage *stage, bool *ret_bridged)
{
	const struct code_clock clock = fake_python_clock(&stage->py, 1);

	return frames_walk_core(&stage->codes, &clock, &stage->ends, &stage->list, ret_bridged);
}

static void check_frames(const struct stage *stage, const char *name)
{
	cr_assert(eq(uint, stage->list.nr_frames, NR_FRAMES), "3.%u, %s", stage->py.minor, name);
	for (uint32_t i = 0; i < NR_FRAMES; i++)
		cr_expect(eq(u64, stage->list.frames[i].addr, stage->frames[i]), "3.%u, %s",
			  stage->py.minor, name);
}

static void set_previous(struct stage *stage, size_t frame, remote_addr previous_addr)
{
	fake_memory_write_u64(&stage->py.fake,
			      stage->frames[frame] + stage->py.build.offsets.frame.previous,
			      previous_addr);
}

/*
 * Links to unmapped memory, to a premature end and to zeros, within each chunk and at its border.
 */
Test(frames_core, broken_links_are_bridged)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		for (size_t broken = 1; broken < NR_FRAMES; broken++) {
			for (int way = 0; way < 3; way++) {
				struct stage stage;
				bool bridged = false;
				char name[32];

				stage_init(&stage, fake_stack_minors[v]);
				remote_addr zeros_addr = fake_python_alloc(&stage.py, 256);
				const remote_addr ways[] = {0x10, 0, zeros_addr};

				set_previous(&stage, broken, ways[way]);
				cr_expect(zero(int, walk(&stage, &bridged)), "3.%u",
					  stage.py.minor);
				cr_expect(bridged);
				(void)snprintf(name, sizeof(name), "link %zu, way %d", broken, way);
				check_frames(&stage, name);
				stage_done(&stage);
			}
		}
	}
}

Test(frames_core, unknown_current_frame_is_found)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		bool bridged;

		stage_init(&stage, fake_stack_minors[v]);
		stage.ends.current_frame_addr = 0;
		cr_expect(zero(int, walk(&stage, &bridged)));
		check_frames(&stage, "no current frame");
		stage.ends.current_err = -EFAULT;
		cr_expect(zero(int, walk(&stage, &bridged)));
		check_frames(&stage, "current frame not readable");
		stage_done(&stage);
	}
}

Test(frames_core, complete_stack_needs_no_bridge)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		bool bridged = true;

		stage_init(&stage, fake_stack_minors[v]);
		cr_expect(zero(int, walk(&stage, &bridged)));
		cr_expect(not(bridged));
		check_frames(&stage, "whole");
		stage_done(&stage);
	}
}

/* A frame without its code object loses only its name. */
Test(frames_core, missing_code_object_costs_only_a_name)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		bool bridged = true;

		stage_init(&stage, fake_stack_minors[v]);
		fake_memory_write_u64(&stage.py.fake,
				      stage.frames[2] + stage.py.build.offsets.frame.executable,
				      0x7000000);
		cr_expect(zero(int, walk(&stage, &bridged)));
		cr_expect(not(bridged));
		check_frames(&stage, "no code");
		cr_expect(
			ne(ptr,
			   strstr(stage.list.frames[2].code->function->qualname, "not in the core"),
			   NULL));
		cr_expect(eq(str, (char *)stage.list.frames[3].code->function->qualname,
			     (char *)"d"));
		stage_done(&stage);
	}
}

/* A chunk's frames continue after a frame of unknown size. */
Test(frames_core, bridge_skips_unreadable_frames)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		bool bridged = false;

		stage_init(&stage, fake_stack_minors[v]);
		set_previous(&stage, 2, 0x10);
		fake_memory_write_u64(&stage.py.fake,
				      stage.frames[1] + stage.py.build.offsets.frame.executable,
				      0x7000000);
		cr_expect(zero(int, walk(&stage, &bridged)));
		cr_expect(bridged);
		cr_assert(eq(uint, stage.list.nr_frames, NR_FRAMES - 1));
		cr_expect(eq(u64, stage.list.frames[0].addr, stage.frames[0]));
		cr_expect(eq(u64, stage.list.frames[1].addr, stage.frames[2]));
		stage_done(&stage);
	}
}
