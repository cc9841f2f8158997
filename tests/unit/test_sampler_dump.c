/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampler/python/loop_entries.h"
#include "sampler/sampler_state.h"
#include "tests/support/fake_memory.h"

#define THREAD_ADDR UINT64_C(0x10000)
#define FRAME_ADDR  UINT64_C(0x20000)
#define ENTRY_ADDR  UINT64_C(0x30000)

struct taker {
	struct sample_sink sink;
	uint64_t entry_addr;
	bool is_entry;
};

static int take(struct sample_sink *sink, const struct sample *sample)
{
	struct taker *taker = (struct taker *)sink;

	taker->entry_addr = sample->details[0].entry_addr;
	taker->is_entry = sample->details[0].is_entry;
	return 0;
}

/* Where the loops were is not read again if it was read while the thread waited (3.11). */
Test(sampler_dump, entries_that_were_read)
{
	static const struct sample_sink_ops ops = {.sample = take};
	const struct loop_entry entry = {.is_entry = true, .c_addr = ENTRY_ADDR};
	const struct function function = {.kind = FUNCTION_NATIVE};
	struct code code = {.function = &function, .foreign = true};
	struct walked_frame walked = {.addr = FRAME_ADDR, .code = &code, .is_entry = true};
	const struct frame_list list = {.frames = &walked, .nr_frames = 1};
	const struct frame frame = {.function = &function};
	const struct sample sample = {.frames = &frame, .nr_frames = 1};
	struct taker taker = {.sink.ops = &ops};
	struct detail_sink detailed;
	struct fake_memory fake;
	struct py_build build;
	struct message message;
	const struct code_cache codes = {.memory = &fake.memory, .build = &build};

	cr_assert(zero(int, offsets_of_version(0x030b00f0, &build, &message)));
	fake_memory_init(&fake);
	fake.error = -ESRCH;
	detailed = (struct detail_sink){
		.sink.ops = &detail_sink_ops,
		.codes = &codes,
		.thread_addr = THREAD_ADDR,
		.list = &list,
		.next = &taker.sink,
	};
	cr_expect(eq(int, detailed.sink.ops->sample(&detailed.sink, &sample), -ESRCH));
	detailed.entries = &entry;
	cr_assert(zero(int, detailed.sink.ops->sample(&detailed.sink, &sample)));
	cr_expect(eq(u64, taker.entry_addr, ENTRY_ADDR));
	cr_expect(taker.is_entry);
	fake_memory_done(&fake);
}
