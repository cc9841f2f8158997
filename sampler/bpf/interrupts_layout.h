/* SPDX-License-Identifier: MIT */
/* The offsets of a CPython that the BPF program needs, and access to the parts of its records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/bpf/interrupt_record.h"
#include "sampler/cpython/layout/offsets.h"

/* The layout without the namespace and the period, which are 0. */
struct interrupt_layout interrupts_layout(const struct py_offsets *offsets);

/* Whether the layout fits the program's buffers: the target's own offsets are untrusted. */
bool interrupts_layout_fits(const struct interrupt_layout *layout);

/* The copy of the thread state in a record. */
static inline const uint8_t *interrupt_record_state(const struct interrupt_record *record)
{
	return (const uint8_t *)(record + 1);
}

/* Loop index of a record, innermost first. */
static inline const struct interrupt_loop *
interrupt_record_loop(const struct interrupt_layout *layout, const struct interrupt_record *record,
		      uint32_t index)
{
	return (const void *)(interrupt_record_state(record) +
			      INTERRUPT_ROUND_UP(layout->state.head_size) +
			      index * sizeof(struct interrupt_loop));
}

/* Frame index of a record, innermost first. */
static inline const struct interrupt_frame *
interrupt_record_frame(const struct interrupt_layout *layout, const struct interrupt_record *record,
		       uint32_t index)
{
	const size_t frame_bytes =
		sizeof(struct interrupt_frame) + INTERRUPT_ROUND_UP(layout->frame.head_size);
	const struct interrupt_loop *loops_end =
		interrupt_record_loop(layout, record, record->nr_loops);

	return (const void *)((const uint8_t *)loops_end + index * frame_bytes);
}

/* The copy of a frame. */
static inline const uint8_t *interrupt_frame_bytes(const struct interrupt_frame *frame)
{
	return (const uint8_t *)(frame + 1);
}
