/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_layout.h"

_Static_assert(INTERRUPT_ABSENT == OFFSET_ABSENT, "one number says that there is none");

/* Set what is read of a code object, and of the objects that it refers to. */
static void set_code(struct interrupt_layout *layout, const struct py_offsets *offsets)
{
	const uint32_t fields[] = {
		offsets->object.ob_type, offsets->code.filename,    offsets->code.qualname,
		offsets->code.linetable, offsets->code.firstlineno, offsets->code.bytecode,
		offsets->code.version,	 offsets->code.ob_size,
	};
	uint32_t least = OFFSET_ABSENT;
	uint32_t greatest = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (fields[i] == OFFSET_ABSENT)
			continue;
		least = fields[i] < least ? fields[i] : least;
		greatest = fields[i] > greatest ? fields[i] : greatest;
	}
	layout->code.head_size = code_head_bytes(offsets);
	layout->code.first = least & ~7u; /* the program reads words */
	layout->code.size = greatest + (uint32_t)sizeof(uint64_t) - layout->code.first;
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

/* Whether each of the words is absent, or within size bytes. */
static bool have_words(uint32_t size, const uint32_t *offsets, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (offsets[i] != INTERRUPT_ABSENT &&
		    (size < sizeof(uint64_t) || offsets[i] > size - sizeof(uint64_t)))
			return false;
	return true;
}

bool interrupts_layout_fits(const struct interrupt_layout *layout)
{
	const uint32_t state[] = {layout->state.current_frame, layout->state.base_frame,
				  layout->state.cframe};
	const uint32_t frame[] = {layout->frame.previous, layout->frame.executable};
	const uint32_t code[] = {layout->code.type,	  layout->code.ob_size,
				 layout->code.filename,	  layout->code.qualname,
				 layout->code.linetable,  layout->code.bytecode,
				 layout->code.first_line, layout->code.version};

	return layout->state.head_size <= INTERRUPT_STATE_MAX_BYTES / 2 &&
	       have_words(layout->state.head_size, state, sizeof(state) / sizeof(*state)) &&
	       layout->frame.head_size < INTERRUPT_FRAME_MAX_BYTES &&
	       have_words(layout->frame.head_size, frame, sizeof(frame) / sizeof(*frame)) &&
	       layout->code.head_size < INTERRUPT_CODE_MAX_BYTES &&
	       layout->code.first + layout->code.size < INTERRUPT_CODE_MAX_BYTES &&
	       have_words(layout->code.head_size, code, sizeof(code) / sizeof(*code)) &&
	       layout->text.state == INTERRUPT_STATE_WORD * sizeof(uint64_t) &&
	       layout->text.kind_shift < 32;
}
