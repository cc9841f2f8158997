/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/sampler_state.h"
#include "tests/support/fake_memory.h"

#define FRAME_ADDR UINT64_C(0x20000)
#define ENTRY_ADDR UINT64_C(0x30000)

/* Loop entries that were read while the thread waited are not read again (3.11). */
Test(sampler_dump, known_loop_entries_are_not_read_again)
{
	const struct loop_entry entry = {.is_entry = true, .c_addr = ENTRY_ADDR};
	const struct function function = {.kind = FUNCTION_NATIVE};
	struct code code = {.function = &function, .is_not_code = true};
	struct walked_frame walked = {.addr = FRAME_ADDR, .code = &code, .is_entry = true};
	const struct frame_list list = {.frames = &walked, .nr_frames = 1};
	const struct frame frame = {.function = &function};
	const struct sample sample = {.frames = &frame, .nr_frames = 1};
	struct frame_detail *details = NULL;
	struct fake_memory fake;
	struct py_build build;
	struct message message;
	const struct code_cache codes = {.memory = &fake.memory, .build = &build};

	cr_assert(zero(int, offsets_of_version(0x030b00f0, &build, &message)));
	fake_memory_init(&fake);
	fake.error = -ESRCH;
	cr_assert(zero(int, sample_details(&codes, &list, &entry, NULL, &sample, &details)));
	cr_expect(eq(u64, details[0].entry_addr, ENTRY_ADDR));
	cr_expect(details[0].is_entry);
	free(details);
	fake_memory_done(&fake);
}
