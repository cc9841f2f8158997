/* SPDX-License-Identifier: MIT */
/*
 * Writes the value of an object as text, read from the target's memory without running any of its
 * code: builtin objects as repr() shows them, other objects with their contents.
 *
 * 	None, True, 12, 1.5, (1+2j), 'text', b'bytes', bytearray(b'x'), Ellipsis
 * 	[1, 2], (1,), {1, 2}, frozenset({1}), {'key': 'value'}, ValueError('text')
 * 	<class 'module.C'>, <function C.f at 0x…>, <module 'os'>, <built-in function len>
 * 	<C at 0x… id=7 total=3.5>	an object with its attributes
 * 	<Colour at 0x… 1>		an instance of a subclass of int, list, …
 * 	[...]				an object inside itself, or nested too deep
 * 	0x1f…				an int of more than 4300 decimal digits
 * 	<unreadable at 0x…>		not mapped, not saved, or inconsistent
 *
 * Subclasses of dict are written in table order, which may differ from their own: that of an
 * OrderedDict after move_to_end() does. Only the outermost object is written with its attributes.
 * The target may run meanwhile, so the result may be a value that never existed.
 */
#pragma once

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/value_text.h"

/*
 * Append the object at addr to text. The length of text limits what is read of an object, except
 * for tables without entries. For a strict limit, read through a struct bounded_memory; when that
 * is used up, the text is cut. Returns 0, -ESRCH or -EPERM.
 */
int value_write(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		struct value_text *text);

/* Append the characters of the str object at addr, without quotes. Errors of string_read(). */
int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text);
