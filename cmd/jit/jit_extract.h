/* SPDX-License-Identifier: MIT */
/* Extracts one function of a JIT as an ELF object: jit --dump. */
#pragma once

#include "cmd/jit/jit_target.h"

/*
 * Write the function at options->dump_addr, the one that is there now or else the last one that
 * was, to options->output_path. Returns EXIT_OK, or another status with a message.
 */
enum exit_status jit_extract(const struct jit_target *target, const struct jit_options *options,
			     struct message *reterr);
