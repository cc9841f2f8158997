/* SPDX-License-Identifier: MIT */
/* Prints the known code as a table or as JSON, all at once or as it appears. */
#pragma once

#include <stdint.h>

#include "cmd/jit/jit_target.h"

/*
 * Print all code on stdout, and notes about files that cannot be read on stderr. Returns EXIT_OK,
 * or EXIT_ERROR with a message if out of memory.
 */
enum exit_status jit_list_print(const struct jit_target *target, bool as_json,
				struct message *reterr);

/*
 * Print the code from index first on, in the order in which it was found. Returns how many there
 * are.
 */
uint32_t jit_list_print_new(const struct jit_target *target, uint32_t first, bool as_json);
