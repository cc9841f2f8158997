/* SPDX-License-Identifier: MIT */
#include "sampler/variable_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/bounded_memory.h"
#include "sampler/near_memory.h"
#include "sampler/python/frame_walk.h"
#include "sampler/python/value.h"
#include "sampler/python/variables.h"
#include "sampler/ticker.h"

struct variable_reader {
	struct remote_memory *memory;  /* borrowed */
	struct near_memory near;       /* reads it */
	struct bounded_memory bounded; /* reads near */
	const struct py_build *build;  /* borrowed */
	uint64_t cut_ns;	       /* CLOCK_MONOTONIC: nothing is read from then on */
	size_t nr_bytes_left;	       /* so much may be made of variables */
	size_t value_max_chars;
	char *room; /* for a name or a value; owned */
};

/* Let so much more be read: what follows is another value. */
static struct remote_memory *renew(struct variable_reader *reader)
{
	bounded_memory_init(&reader->bounded, &reader->near.memory, VALUE_MAX_READS, NULL,
			    reader->cut_ns);
	return &reader->bounded.memory;
}

/* Whether an error is of what was read, and not of the reading. */
static bool is_damage(int err)
{
	return err == -ENOENT || err == -EBADMSG || err == -EFAULT || err == -E2BIG ||
	       err == -ENOTSUP;
}

int variable_reader_create(struct remote_memory *memory, const struct py_build *build,
			   uint32_t value_max_chars, struct variable_reader **ret_reader)
{
	const size_t max_chars = value_max_chars > VARIABLE_NAME_MAX_CHARS
					 ? value_max_chars
					 : VARIABLE_NAME_MAX_CHARS;
	struct variable_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->memory = memory;
	reader->build = build;
	reader->cut_ns = clock_now_ns() + VARIABLES_MAX_NS;
	reader->nr_bytes_left = VARIABLES_MAX_BYTES;
	reader->value_max_chars = value_max_chars;
	near_memory_init(&reader->near, memory);
	reader->room = malloc(value_text_room(max_chars));
	if (!reader->room) {
		variable_reader_destroy(reader);
		return -ENOMEM;
	}
	*ret_reader = reader;
	return 0;
}

void variable_reader_destroy(struct variable_reader *reader)
{
	if (!reader)
		return;
	free(reader->room);
	free(reader);
}

void variable_reader_forget(struct variable_reader *reader)
{
	near_memory_forget(&reader->near);
}

/* A copy of a text that is whole; NULL: out of memory. */
static char *keep_text(struct variable_reader *reader, const struct value_text *text)
{
	const size_t size = text->length + 1;

	reader->nr_bytes_left -= size < reader->nr_bytes_left ? size : reader->nr_bytes_left;
	return strdup(text->bytes);
}

/* Fill detail with what the slots name. */
static int read_slots(struct variable_reader *reader, const struct variable_slots *from,
		      struct frame_detail *detail)
{
	detail->variables = calloc(from->nr_slots + 1ull, sizeof(*detail->variables));
	if (!detail->variables)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->nr_slots; i++) {
		struct variable *variable = &detail->variables[detail->nr_variables++];
		struct value_text text;
		int err;

		variable->kind = from->slots[i].kind;
		value_text_init(&text, reader->room, VARIABLE_NAME_MAX_CHARS);
		err = value_write_name(renew(reader), reader->build, from->slots[i].name_addr,
				       &text);
		if (err && !is_damage(err))
			return err;
		if (err)
			value_text_puts(&text, "?");
		variable->name = keep_text(reader, &text);
		if (!variable->name)
			return -ENOMEM;
		value_text_init(&text, reader->room, reader->value_max_chars);
		err = value_write(renew(reader), reader->build, from->slots[i].value_addr, &text);
		if (err)
			return err;
		variable->value = keep_text(reader, &text);
		if (!variable->value)
			return -ENOMEM;
	}
	return 0;
}

int variable_reader_read(struct variable_reader *reader, const struct walked_frame *frame,
			 struct frame_detail *detail)
{
	const remote_addr executable_addr = frame->addr + reader->build->offsets.frame.executable;
	struct variable_slots slots = {0};
	uint64_t executable;
	int err;

	if (frame->code->foreign)
		return 0;
	if (!reader->nr_bytes_left) {
		detail->lacks_variables = true;
		return 0;
	}
	err = variables_read(renew(reader), reader->build, frame->executable, frame->addr, &slots);
	if (!err)
		err = read_slots(reader, &slots, detail);
	free(slots.slots);
	/* It belongs to the frame if that is still there and runs the same code. */
	detail->lacks_variables =
		err || remote_memory_read_u64(reader->memory, executable_addr, &executable) ||
		(executable & ~(uint64_t)OBJECT_TAG_MASK) != frame->executable;
	if (detail->lacks_variables)
		frame_detail_free_variables(detail);
	return is_damage(err) ? 0 : err;
}

void frame_detail_free_variables(struct frame_detail *detail)
{
	for (uint32_t i = 0; i < detail->nr_variables; i++) {
		free(detail->variables[i].name);
		free(detail->variables[i].value);
	}
	free(detail->variables);
	detail->variables = NULL;
	detail->nr_variables = 0;
}
