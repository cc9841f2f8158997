/* SPDX-License-Identifier: MIT */
/* Where a function comes from, as people sort them: what they wrote, and what they use. */
#pragma once

#include "output/profile/function_rows.h"

/* The numbers are those of the page's data (docs/formats.md). */
enum origin {
	ORIGIN_APPLICATION = 0, /* whatever is none of the others */
	ORIGIN_SITE_PACKAGES = 1,
	ORIGIN_STANDARD_LIBRARY = 2,
	ORIGIN_NATIVE = 3,
	ORIGIN_JIT = 4,
	ORIGIN_COLLECTOR = 5,
	ORIGIN_KERNEL = 6,
	ORIGIN_OTHER = 7, /* no path: what stands for functions without one */
	NR_ORIGINS,
};

/*
 * Of a function by its kind and, in Python, by its path: a part that is called
 * site-packages or dist-packages; one that is called python3.12 or the like below lib or
 * lib64, a python312.zip, or a module that is frozen into the interpreter.
 *
 * Source: CPython's Lib/sysconfig/__init__.py, _INSTALL_SCHEMES; Debian's Python policy for
 * dist-packages; Modules/getpath.py for the zip.
 */
enum origin origin_of(const struct profile_function *function);

/* A few words in lower case; stable. */
const char *origin_name(enum origin origin);
