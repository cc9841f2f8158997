/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/variables.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/object.h"

/* co_flags. */
enum { CODE_VARARGS = 4, CODE_VARKEYWORDS = 8 };

/* co_localspluskinds. */
enum { VARIABLE_IS_CELL = 0x40, VARIABLE_IS_FREE = 0x80 };

/* A frame and the variables found in it. */
struct look {
	struct remote_memory *memory;
	const struct py_build *build;
	uint8_t code[CODE_MAX_BYTES]; /* the head of the code object */
	struct variable_slot *slots;  /* owned */
	uint32_t nr_slots;
};

/*
 * Append variables of one kind, with the names in the tuple at offset in the code object. Names
 * beyond FRAME_MAX_VARIABLES are left out.
 */
static int append_names(struct look *look, uint32_t offset, enum variable_kind kind, bool in_cell)
{
	const struct py_build *build = look->build;
	const remote_addr type_end =
		field_u64(look->code, offset) + build->offsets.object.ob_type + sizeof(remote_addr);
	remote_addr names[FRAME_MAX_VARIABLES];
	uint64_t nr;
	int err = remote_memory_read_u64(look->memory, type_end + SIZE_AFTER_TYPE, &nr);

	if (err)
		return err;
	if (nr > INT32_MAX)
		return -EBADMSG;
	if (nr > FRAME_MAX_VARIABLES - look->nr_slots)
		nr = FRAME_MAX_VARIABLES - look->nr_slots;
	err = remote_memory_read(look->memory, type_end + build->traits.tuple_items_after_type,
				 names, nr * sizeof(*names));
	for (uint64_t i = 0; !err && i < nr; i++)
		look->slots[look->nr_slots++] = (struct variable_slot){
			.name_addr = names[i],
			.kind = kind,
			.in_cell = in_cell,
		};
	return err;
}

/* 3.11 and newer: one tuple has all names, and a bytes object has the kind of each. */
static int append_stack_names(struct look *look)
{
	const struct py_offsets *offsets = &look->build->offsets;
	const remote_addr kinds_addr = field_u64(look->code, offsets->code.kinds);
	uint8_t kinds[FRAME_MAX_VARIABLES];
	uint64_t nr_kinds;
	int err = append_names(look, offsets->code.names, VARIABLE_LOCAL, false);

	if (!err)
		err = remote_memory_read_u64(look->memory, kinds_addr + offsets->bytes.ob_size,
					     &nr_kinds);
	if (!err && nr_kinds < look->nr_slots)
		err = -EBADMSG;
	if (!err)
		err = remote_memory_read(look->memory, kinds_addr + offsets->bytes.ob_sval, kinds,
					 look->nr_slots);
	for (uint32_t i = 0; !err && i < look->nr_slots; i++) {
		look->slots[i].in_cell = kinds[i] & (VARIABLE_IS_CELL | VARIABLE_IS_FREE);
		if (kinds[i] & VARIABLE_IS_FREE)
			look->slots[i].kind = VARIABLE_FREE;
	}
	return err;
}

/*
 * Before 3.11 an argument that inner functions use is moved to a cell, which has its own name and
 * slot. Give the argument its value back.
 */
static void set_moved_argument(struct look *look, struct variable_slot *argument)
{
	for (uint32_t i = 0; !argument->value_addr && i < look->nr_slots; i++) {
		struct variable_slot *slot = &look->slots[i];

		if (slot->in_cell && slot->kind == VARIABLE_LOCAL &&
		    slot->name_addr == argument->name_addr) {
			argument->value_addr = slot->value_addr;
			argument->in_cell = true;
			slot->value_addr = 0;
		}
	}
}

/* The first variables are the arguments. */
static void mark_arguments(struct look *look)
{
	const struct py_offsets *offsets = &look->build->offsets;
	const uint32_t flags = field_u32(look->code, offsets->code.flags);
	const uint64_t nr_arguments = (uint64_t)field_u32(look->code, offsets->code.argcount) +
				      field_u32(look->code, offsets->code.kwonlyargcount) +
				      !!(flags & CODE_VARARGS) + !!(flags & CODE_VARKEYWORDS);

	for (uint32_t i = 0; i < nr_arguments && i < look->nr_slots; i++) {
		look->slots[i].kind = VARIABLE_ARGUMENT;
		if (look->build->traits.frames_on_heap)
			set_moved_argument(look, &look->slots[i]);
	}
}

/* Replace the value of a cell variable by the contents of its cell. */
static int open_cell(const struct look *look, struct variable_slot *slot)
{
	const remote_addr ref_addr = slot->value_addr + look->build->offsets.object.ob_type +
				     sizeof(remote_addr) + CELL_REF_AFTER_TYPE;
	struct value_type type;
	int err;

	if (!slot->in_cell || !slot->value_addr)
		return 0;
	err = value_type_of(look->memory, look->build, slot->value_addr, &type);
	/* A variable of an inlined comprehension may have its cell only while that runs. */
	if (!err && (type.kind == VALUE_CELL || (type.kind == VALUE_OBJECT && !type.is_heap)))
		err = remote_memory_read_u64(look->memory, ref_addr, &slot->value_addr);
	return err == -ESRCH || err == -EPERM ? err : 0;
}

int variables_read(struct remote_memory *memory, const struct py_build *build,
		   remote_addr code_addr, remote_addr frame_addr, struct variable_slots *ret_slots)
{
	const struct py_offsets *offsets = &build->offsets;
	const bool on_heap = build->traits.frames_on_heap;
	const uint32_t locals = on_heap ? offsets->frame.heap_locals : offsets->frame.localsplus;
	uint64_t words[FRAME_MAX_VARIABLES];
	cleanup_free struct variable_slot *slots = NULL;
	struct look look = {
		.memory = memory,
		.build = build,
	};
	uint32_t nr_bound = 0;
	int err;

	if (!value_types_are_known(offsets))
		return -ENOTSUP;
	slots = calloc(FRAME_MAX_VARIABLES, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	look.slots = slots;
	err = remote_memory_read(memory, code_addr, look.code, code_head_bytes(offsets));
	if (!err && !on_heap)
		err = append_stack_names(&look);
	/* Before 3.11: three tuples of names; the frame has one word per name, in their order. */
	if (!err && on_heap)
		err = append_names(&look, offsets->code.names, VARIABLE_LOCAL, false);
	if (!err && on_heap)
		err = append_names(&look, offsets->code.cellvars, VARIABLE_LOCAL, true);
	if (!err && on_heap)
		err = append_names(&look, offsets->code.freevars, VARIABLE_FREE, true);
	if (!err)
		err = remote_memory_read(memory, frame_addr + locals, words,
					 look.nr_slots * sizeof(*words));
	if (err)
		return err;
	for (uint32_t i = 0; i < look.nr_slots; i++)
		look.slots[i].value_addr = words[i] & ~(uint64_t)OBJECT_TAG_MASK;
	mark_arguments(&look);
	/* Open the cells, and drop unbound variables. */
	for (uint32_t i = 0; i < look.nr_slots; i++) {
		err = open_cell(&look, &slots[i]);
		if (err)
			return err;
		if (slots[i].value_addr && slots[i].name_addr)
			slots[nr_bound++] = slots[i];
	}
	*ret_slots = (struct variable_slots){.slots = take_ptr(slots), .nr_slots = nr_bound};
	return 0;
}
