/* SPDX-License-Identifier: MIT */
/* The code that is known, as a table or as JSON, all at once or as it comes. */
#pragma once

#include <stdint.h>

#include "cmd/jit/jit_target.h"

/* Print all of it on stdout; notes on stderr about files that cannot be read. */
enum exit_status jit_list_print(const struct jit_target *target, bool as_json,
				struct message *reterr);

/* Print the codes from that index on, in the order in which they were found; how many there are. */
uint32_t jit_list_print_new(const struct jit_target *target, uint32_t first, bool as_json);
