/* SPDX-License-Identifier: MIT */
/* What of a CPython's offsets the BPF program needs, and where its records have what. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/bpf/interrupt_record.h"
#include "sampler/cpython/layout/offsets.h"

/* All but the namespace, the process and the period, which are 0. */
struct interrupt_layout interrupts_layout(const struct py_offsets *offsets);

/* Whether that is within what the program has room for: a CPython may say of itself what it likes. */
bool interrupts_layout_fits(const struct interrupt_layout *layout);

/* The copy of the thread state that a record has. */
static inline const uint8_t *interrupt_record_state(const struct interrupt_record *record)
{
	return (const uint8_t *)(record + 1);
}

/* The index-th of its loops, innermost first. */
static inline const struct interrupt_loop *
interrupt_record_loop(const struct interrupt_layout *layout, const struct interrupt_record *record,
		      uint32_t index)
{
	return (const void *)(interrupt_record_state(record) +
			      INTERRUPT_ROUND_UP(layout->state.head_size) +
			      index * sizeof(struct interrupt_loop));
}

/* The index-th of its frames, innermost first. */
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
