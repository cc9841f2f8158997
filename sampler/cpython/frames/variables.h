/* SPDX-License-Identifier: MIT */
/* The variables of one frame: their names and where their values are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/frame.h"
#include "sampler/cpython/layout/offsets.h"

/* Of a frame with more variables the first so many are read. Generated code has hundreds. */
enum { FRAME_MAX_VARIABLES = 4096 };

/* A variable that has a value. */
struct variable_slot {
	remote_addr name_addr; /* of a str */
	remote_addr value_addr;
	enum variable_kind kind;
	bool in_cell; /* it was taken out of a cell: other functions use it, too */
};

struct variable_slots {
	struct variable_slot *slots; /* arguments first, in the order of the function's; owned */
	uint32_t nr_slots;
};

/*
 * Read the variables that are bound in the frame at frame_addr, which runs the code object at
 * code_addr; free() ret_slots->slots. What lies in cells is taken out of them.
 *
 * 0; -EBADMSG (the two do not fit together), -ENOTSUP (it is not known where they are),
 * -E2BIG, -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Objects/frameobject.c: frame_get_var() (3.11 and newer),
 * PyFrame_FastToLocalsWithError() (before).
 */
int variables_read(struct remote_memory *memory, const struct py_build *build,
		   remote_addr code_addr, remote_addr frame_addr, struct variable_slots *ret_slots);
