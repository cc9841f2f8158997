/* SPDX-License-Identifier: MIT */
/* Where a function comes from: the user's own code or what it uses. */
#pragma once

#include "output/profile/function_rows.h"

/* The numbers appear in the page's data (docs/formats.md). */
enum origin {
	ORIGIN_APPLICATION = 0, /* everything else */
	ORIGIN_SITE_PACKAGES = 1,
	ORIGIN_STANDARD_LIBRARY = 2,
	ORIGIN_NATIVE = 3,
	ORIGIN_JIT = 4,
	ORIGIN_COLLECTOR = 5,
	ORIGIN_KERNEL = 6,
	ORIGIN_TASK = 7,  /* the name of an asyncio task */
	ORIGIN_OTHER = 8, /* no path: placeholders for functions */
	NR_ORIGINS,
};

/*
 * Classify a function by its kind and, for Python, by its path. A component named site-packages
 * or dist-packages makes it ORIGIN_SITE_PACKAGES; python3.12 or similar below lib or lib64,
 * python312.zip there, or a frozen module makes it ORIGIN_STANDARD_LIBRARY.
 *
 * Source: CPython's Lib/sysconfig/__init__.py, _INSTALL_SCHEMES; Debian's Python policy for
 * dist-packages; Modules/getpath.py for the zip.
 */
enum origin origin_of(const struct profile_function *function);

/* Returns the name of an origin: a few words in lower case, stable. */
const char *origin_name(enum origin origin);
