/* SPDX-License-Identifier: MIT */
/* Checks jitdumps for damage. */
#pragma once

#include "cmd/jit/jit_target.h"

/*
 * Print what was found in each jitdump of the target, which was read to its end. Returns EXIT_OK;
 * EXIT_ERROR without a message if one is damaged, since stdout says it all; EXIT_NO_SAMPLE with a
 * message if there is none.
 */
enum exit_status jit_verify_print(const struct jit_target *target, bool as_json,
				  struct message *reterr);
