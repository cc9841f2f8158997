/* SPDX-License-Identifier: MIT */
/* Reads an exception of the target as text: the name of its type, and its message. */
#pragma once

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

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
