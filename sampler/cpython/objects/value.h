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
 * 	<not readable at 0x…>		not mapped, not saved, or inconsistent
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

/*
 * The name of an exception's type, and a message that is not a single str, are cut to this many
 * characters.
 */
enum { EXCEPTION_TYPE_MAX_CHARS = 256, EXCEPTION_MESSAGE_MAX_CHARS = 1000 };

/*
 * An exception: the name of its type, and what str() returns. None of its code runs: str() means
 * that of BaseException, KeyError or OSError, even if the class defines its own __str__. UTF-8,
 * terminated, owned; control characters are not escaped.
 *
 * Source: CPython Objects/exceptions.c, 3.6 to 3.15.
 */
struct exception_text {
	char *type_name;
	char *message;
};

/*
 * Read the exception at addr. The message marks its parts that cannot be read. Returns 0; -EBADMSG
 * or -EFAULT (there is no exception); -ENOMEM, -ESRCH, -EPERM. exception_text_done() accepts a
 * zeroed struct.
 */
int exception_text_read(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, struct exception_text *ret_text);
void exception_text_done(struct exception_text *text);
