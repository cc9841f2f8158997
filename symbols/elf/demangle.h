/* SPDX-License-Identifier: MIT */
/*
 * Demangles the names of C++ and Rust functions, with libiberty, which gdb and binutils use as
 * well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Longer symbols are not demangled, nor are those whose name does not fit the caller's buffer: a
 * short symbol can stand for a name of any length.
 */
#define DEMANGLE_MAX_BYTES 4096

/*
 * Write the demangled, terminated name to ret_name, which has max_bytes. Returns false if symbol
 * is not mangled, or if it or the result is too long; ret_name is then undefined.
 */
bool demangle(const char *symbol, char *ret_name, size_t max_bytes);
