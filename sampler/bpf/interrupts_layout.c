/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_layout.h"

_Static_assert(INTERRUPT_ABSENT == OFFSET_ABSENT, "one number says that there is none");

/* Of offsets that are not absent, of which there is one. */
static uint32_t least(const uint32_t *offsets, uint32_t nr)
{
	uint32_t result = OFFSET_ABSENT;

	for (uint32_t i = 0; i < nr; i++)
		result = offsets[i] < result ? offsets[i] : result;
	return result;
}

static uint32_t greatest(const uint32_t *offsets, uint32_t nr)
{
	uint32_t result = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (offsets[i] != OFFSET_ABSENT && offsets[i] > result)
			result = offsets[i];
	return result;
}

/* What is read of a code object, and of those that it names. */
static void set_code(struct interrupt_layout *layout, const struct py_offsets *offsets)
{
	const uint32_t fields[] = {
		offsets->object.ob_type, offsets->code.filename,    offsets->code.qualname,
		offsets->code.linetable, offsets->code.firstlineno, offsets->code.bytecode,
		offsets->code.version,	 offsets->code.ob_size,
	};
	const uint32_t nr_fields = sizeof(fields) / sizeof(*fields);

	layout->code.head_size = code_head_bytes(offsets);
	layout->code.first = least(fields, nr_fields) & ~7u; /* as the program reads words */
	layout->code.size =
		greatest(fields, nr_fields) + (uint32_t)sizeof(uint64_t) - layout->code.first;
	layout->code.type = offsets->object.ob_type;
	layout->code.ob_size = offsets->code.ob_size;
	layout->code.filename = offsets->code.filename;
	layout->code.qualname = offsets->code.qualname;
	layout->code.linetable = offsets->code.linetable;
	layout->code.bytecode = offsets->code.bytecode;
	layout->code.first_line = offsets->code.firstlineno;
	layout->code.version = offsets->code.version;
	layout->text.length = offsets->unicode.length;
	layout->text.state = offsets->unicode.state - offsets->unicode.length;
	layout->text.kind_shift = offsets->unicode.state_kind_shift;
	layout->text.ascii = offsets->unicode.ascii_data - offsets->unicode.length;
	layout->text.compact = offsets->unicode.compact_data - offsets->unicode.length;
	layout->text.bytes = offsets->bytes.ob_sval - offsets->bytes.ob_size;
}

struct interrupt_layout interrupts_layout(const struct py_offsets *offsets)
{
	struct interrupt_layout layout = {
		.state = {.size = offsets->thread.size,
			  .head_size = thread_head_bytes(offsets),
			  .current_frame = offsets->thread.current_frame,
			  .base_frame = offsets->thread.base_frame,
			  .cframe = offsets->thread.cframe},
		.cframe = {.current_frame = offsets->cframe.current_frame,
			   .previous = offsets->cframe.previous},
		.frame = {.head_size = frame_head_bytes(offsets),
			  .previous = offsets->frame.previous,
			  .executable = offsets->frame.executable},
	};

	set_code(&layout, offsets);
	return layout;
}

/* Whether a word lies within so many bytes, or is absent. */
static bool has_word(uint32_t size, uint32_t offset)
{
	return offset == INTERRUPT_ABSENT ||
	       (size >= sizeof(uint64_t) && offset <= size - sizeof(uint64_t));
}

bool interrupts_layout_fits(const struct interrupt_layout *layout)
{
	const uint32_t state_bytes = layout->state.head_size;
	const uint32_t frame_bytes = layout->frame.head_size;
	const uint32_t code_bytes = layout->code.head_size;

	return state_bytes <= INTERRUPT_STATE_MAX_BYTES / 2 &&
	       has_word(state_bytes, layout->state.current_frame) &&
	       has_word(state_bytes, layout->state.base_frame) &&
	       has_word(state_bytes, layout->state.cframe) &&
	       frame_bytes < INTERRUPT_FRAME_MAX_BYTES &&
	       has_word(frame_bytes, layout->frame.previous) &&
	       has_word(frame_bytes, layout->frame.executable) &&
	       code_bytes < INTERRUPT_CODE_MAX_BYTES &&
	       layout->code.first + layout->code.size < INTERRUPT_CODE_MAX_BYTES &&
	       has_word(code_bytes, layout->code.type) &&
	       has_word(code_bytes, layout->code.ob_size) &&
	       has_word(code_bytes, layout->code.filename) &&
	       has_word(code_bytes, layout->code.qualname) &&
	       has_word(code_bytes, layout->code.linetable) &&
	       has_word(code_bytes, layout->code.bytecode) &&
	       has_word(code_bytes, layout->code.first_line) &&
	       has_word(code_bytes, layout->code.version) &&
	       layout->text.state == INTERRUPT_STATE_WORD * sizeof(uint64_t) &&
	       layout->text.kind_shift < 32;
}
