/* SPDX-License-Identifier: MIT */
/*
 * What people call an object that a frame runs and that need not be a code object. Frames
 * that extensions link have one of CPython's kinds of executables (PyUnstable_EXECUTABLE_KIND_*
 * of Include/cpython/pyframe.h), a tuple (name, file name, line), or anything.
 *
 * An object is of a kind if its type has that name and is a static one: no Python code can
 * make such a type. The table PyUnstable_ExecutableKinds of 3.13 and newer says no more, and
 * is not there in 3.12: it has the addresses of four of these types (for builtins that of
 * `method`, not of `builtin_function_or_method`).
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/executable_reads.h"
#include "sampler/python/offsets.h"

/* A longer C string is cut after so many bytes and ends in "…". */
enum { EXECUTABLE_NAME_MAX_BYTES = 256 };

enum executable_kind {
	EXECUTABLE_NOTHING, /* None: the frame is not shown */
	EXECUTABLE_CODE,    /* a code object; it has no text */
	EXECUTABLE_NAMED,   /* what the text says */
};

/* What it is called. The strings are owned, NULL without a text. */
struct executable_text {
	enum executable_kind kind;
	char *qualname; /* as its bytes are in the target: not always UTF-8 */
	char *path;	/* "<built-in>", or "<extension>", where there is no file */
	int32_t line;	/* 0: not known */
};

/*
 * Describe the object at addr, of which everything that the text is made of is read through
 * reads, and executable_text_done() frees the text, which is empty then. A tuple that is not
 * (str, str, int) is called by its type, as is everything unknown: "<tuple>", "<mod.Type>".
 *
 * 0; -EBADMSG or -EFAULT (there is no object), -ENOMEM, -ESRCH, -EPERM.
 */
int executable_describe(struct executable_reads *reads, const struct py_build *build,
			remote_addr addr, struct executable_text *ret_text);
void executable_text_done(struct executable_text *text);
