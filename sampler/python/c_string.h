/* SPDX-License-Identifier: MIT */
/* C strings of the target: the names of static types, and of what is written in C. */
#pragma once

#include <stddef.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

/* Room for no string is larger: one lies in two pages at most. */
#define C_STRING_MAX_BYTES 4096

/*
 * Read the C string at addr into size bytes, 2 to C_STRING_MAX_BYTES, and terminate it: of one
 * that has no end in size - 1 bytes those alone. It may be the last thing in a mapping. 0; -EFAULT
 * (it is not there, or not up to its end), -ESRCH, -EPERM.
 */
int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size);

/* The same of the name of the type at type_addr: "module.name", or "name" of a builtin one. */
int type_name_read(struct remote_memory *memory, const struct py_offsets *offsets,
		   remote_addr type_addr, char *ret_text, size_t size);
