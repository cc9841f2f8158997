/* SPDX-License-Identifier: MIT */
/*
 * What functions of C++ and Rust are called in their source, out of the names that their
 * compilers made of it. By libiberty, which gdb and binutils use as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Longer names stay as they are, as do those that would become longer than the room for them:
 * few bytes can say a name of any length.
 */
#define DEMANGLE_MAX_BYTES 4096

/* Write the name into ret_name, whole and terminated. False: it is no such name, or too long. */
bool demangle(const char *symbol, char *ret_name, size_t max_bytes);
