/* SPDX-License-Identifier: MIT */
/* What is wrong with jitdumps. */
#pragma once

#include "cmd/jit/jit_target.h"

/*
 * Print what was found in each jitdump of the target, which was read to its end. EXIT_OK;
 * EXIT_ERROR: one is damaged, which is all on stdout; EXIT_NO_SAMPLE with a sentence: there is
 * none.
 */
enum exit_status jit_verify_print(const struct jit_target *target, bool as_json,
				  struct message *reterr);
