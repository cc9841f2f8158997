/* SPDX-License-Identifier: MIT */
/* Ints of the target: as a number of ours, and as text, however long they are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/value_text.h"

/*
 * So many digits, of 30 bits each, are converted to decimal, which takes a step for each two of
 * them: 4300 decimal digits, as many as CPython itself prints (sys.int_info). Longer ints are
 * written in hexadecimal.
 */
#define INTEGER_MAX_DECIMAL_DIGITS 477

/*
 * The int object at addr, if it lies in 0 … 2^63 - 1. 0; -EBADMSG (this is no int, or
 * not such a one), -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Include/cpython/longintrepr.h.
 */
int integer_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		 uint64_t *ret_value);

/*
 * Add the int object at addr to text: exactly, or as much of it as there is room for. What is
 * longer than that is not read. 0; the errors of integer_read(), and then nothing may have
 * been added or some of it.
 */
int integer_write(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		  struct value_text *text);
