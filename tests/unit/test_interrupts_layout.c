/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_layout.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "tests/support/fake_python.h"

static struct py_build build_of(uint32_t minor)
{
	struct py_build build;

	cr_assert(zero(int, offsets_of_version(0x03000000 | minor << 16, &build, NULL)));
	return build;
}

Test(interrupts_layout, every_version_fits)
{
	for (uint32_t minor = 6; minor <= 12; minor++) {
		const struct py_build build = build_of(minor);
		const struct py_offsets *offsets = &build.offsets;
		const struct interrupt_layout layout = interrupts_layout(offsets);

		cr_expect(interrupts_layout_fits(&layout), "3.%u", minor);
		cr_expect(eq(u32, layout.code.first % sizeof(uint64_t), 0), "3.%u", minor);
		cr_expect(ge(u32, layout.code.first + layout.code.size,
			     offsets->code.linetable + (uint32_t)sizeof(uint64_t)));
		/* The program cannot read words of its stack that are not aligned. */
		cr_expect(zero(u32, layout.code.qualname % sizeof(uint64_t)), "3.%u", minor);
	}
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;

		fake_python_init(&py, fake_python_minors[v]);
		const struct interrupt_layout layout = interrupts_layout(&py.build.offsets);
		cr_expect(interrupts_layout_fits(&layout), "3.%u", py.minor);
		fake_python_done(&py);
	}
}

Test(interrupts_layout, what_is_too_large_does_not_fit)
{
	uint32_t changes[] = {
		offsetof(struct interrupt_layout, state.head_size),
		offsetof(struct interrupt_layout, state.current_frame),
		offsetof(struct interrupt_layout, state.cframe),
		offsetof(struct interrupt_layout, frame.head_size),
		offsetof(struct interrupt_layout, frame.previous),
		offsetof(struct interrupt_layout, frame.executable),
		offsetof(struct interrupt_layout, code.head_size),
		offsetof(struct interrupt_layout, code.size),
		offsetof(struct interrupt_layout, code.type),
		offsetof(struct interrupt_layout, code.bytecode),
		offsetof(struct interrupt_layout, code.version),
		offsetof(struct interrupt_layout, text.state),
		offsetof(struct interrupt_layout, code.qualname),
		offsetof(struct interrupt_layout, code.first_line),
	};
	const struct py_build build = build_of(11);

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct interrupt_layout layout = interrupts_layout(&build.offsets);
		const uint32_t large = 100000;

		memcpy((uint8_t *)&layout + changes[i], &large, sizeof(large));
		cr_expect(not(interrupts_layout_fits(&layout)), "%zu", i);
	}
}

Test(interrupts_layout, records)
{
	const struct py_build build = build_of(11);
	const struct interrupt_layout layout = interrupts_layout(&build.offsets);
	struct interrupt_record record;
	const uint8_t *state = interrupt_record_state(&record);
	const struct interrupt_frame *first = interrupt_record_frame(&layout, &record, 0);
	const struct interrupt_frame *second = interrupt_record_frame(&layout, &record, 1);

	cr_expect(eq(ptr, (void *)state, (void *)(&record + 1)));
	cr_expect(ge(sz, (size_t)((const uint8_t *)first - state), layout.state.head_size));
	cr_expect(zero(sz, (size_t)((const uint8_t *)first - state) % sizeof(uint64_t)));
	cr_expect(ge(sz, (size_t)((const uint8_t *)second - (const uint8_t *)(first + 1)),
		     layout.frame.head_size));
	cr_expect(eq(ptr, (void *)interrupt_frame_bytes(first), (void *)(first + 1)));
}
