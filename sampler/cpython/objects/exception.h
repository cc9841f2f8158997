/* SPDX-License-Identifier: MIT */
/*
 * What an exception object says of itself: the name of its type, and what str() gives, without
 * running any of its code: that of BaseException, KeyError and OSError. Classes that have a
 * __str__ of their own have the text of these.
 *
 * Source: CPython Objects/exceptions.c, 3.6 to 3.15.
 */
#pragma once

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * A name of a type, and what a message of other things than one str is made of, are cut after so
 * many characters.
 */
enum { EXCEPTION_TYPE_MAX_CHARS = 256, EXCEPTION_MESSAGE_MAX_CHARS = 1000 };

/* UTF-8, terminated, owned; control characters not escaped. */
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
