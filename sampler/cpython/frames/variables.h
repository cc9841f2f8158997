/* SPDX-License-Identifier: MIT */
/* Finds the variables of one frame: their names and where their values are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/frame.h"
#include "sampler/cpython/layout/offsets.h"

/* Limit per frame; further variables are not read. Generated code has hundreds. */
enum { FRAME_MAX_VARIABLES = 4096 };

/* A variable that has a value. */
struct variable_slot {
	remote_addr name_addr; /* of a str */
	remote_addr value_addr;
	enum variable_kind kind;
	bool in_cell; /* the value was in a cell, which other functions share */
};

struct variable_slots {
	struct variable_slot *slots; /* arguments first, in the function's order; owned */
	uint32_t nr_slots;
};

/*
 * Read the bound variables of the frame at frame_addr, which runs the code object at code_addr;
 * free() ret_slots->slots. The value of a cell variable is the contents of its cell.
 *
 * Returns 0; -EBADMSG (frame and code object do not match); -ENOTSUP (the build's types are
 * unknown); -E2BIG, -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Objects/frameobject.c: frame_get_var() (3.11 and newer),
 * PyFrame_FastToLocalsWithError() (before).
 */
int variables_read(struct remote_memory *memory, const struct py_build *build,
		   remote_addr code_addr, remote_addr frame_addr, struct variable_slots *ret_slots);
