/* SPDX-License-Identifier: MIT */
/*
 * The value of an object as text, read out of the target's memory: what repr() gives for
 * what is builtin, and a look inside for what is not, without running any of its code.
 *
 *	None, True, 12, 1.5, (1+2j), 'text', b'bytes', bytearray(b'x'), Ellipsis
 *	[1, 2], (1,), {1, 2}, frozenset({1}), {'key': 'value'}, ValueError('text')
 *	<class 'module.C'>, <function C.f at 0x…>, <module 'os'>, <built-in function len>
 *	<C at 0x… id=7 total=3.5>	an object with its attributes
 *	<Colour at 0x… 1>		an instance of a subclass of int, list, …
 *	[...]				an object in itself, or one too deep
 *	0x1f…				an int of more than 4300 decimal digits
 *	<not readable at 0x…>		what is not mapped, was not saved, or contradicts itself
 *
 * Subclasses of dict have the order of their table, which can be another one than theirs: an
 * OrderedDict after move_to_end() has. Attributes of an object are written of the outermost one
 * only. The target may go on meanwhile: then a value may be one that there never was.
 */
#pragma once

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/value_text.h"

/*
 * Add the object at addr to text. Its length alone ends what is read of an object, but for
 * tables with nothing in them: whoever wants an end reads through a struct bounded_memory,
 * the end of which cuts the text. 0; -ESRCH, -EPERM.
 */
int value_write(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		struct value_text *text);

/* Add the characters of the str object at addr, not in quotes. Errors of string_read(). */
int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text);

/*
 * The name of an exception's type, and a message that is more than one str, are cut after this many
 * characters.
 */
enum { EXCEPTION_TYPE_MAX_CHARS = 256, EXCEPTION_MESSAGE_MAX_CHARS = 1000 };

/*
 * What an exception says of itself: the name of its type, and what str() gives. None of its code
 * runs: str() is that of BaseException, KeyError or OSError, also for a class with a __str__ of its
 * own. UTF-8, terminated, owned; control characters are not escaped.
 *
 * Source: CPython Objects/exceptions.c, 3.6 to 3.15.
 */
struct exception_text {
	char *type_name;
	char *message;
};

/*
 * Read the exception at addr. What cannot be read of its message is said in the message. 0;
 * -EBADMSG or -EFAULT (there is none), -ENOMEM, -ESRCH, -EPERM. exception_text_done() accepts
 * one that is zero.
 */
int exception_text_read(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, struct exception_text *ret_text);
void exception_text_done(struct exception_text *text);
