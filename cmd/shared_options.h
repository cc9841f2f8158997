/* SPDX-License-Identifier: MIT */
/* Option rows that several commands share. */
#pragma once

#include <stdint.h>

#include "cmd/options.h"
#include "output/profile/profile_mode.h"

/* -o, -f: for struct outputs. */
extern const struct option_spec output_options[2];

/* --functions, --lines, -t: for struct profile_options. */
extern const struct option_spec row_options[3];

/* --plumbing: the same. */
extern const struct option_spec plumbing_option[1];

/* --header, --no-source: for struct artefact_options. */
extern const struct option_spec layout_options[2];

/* --wait: for struct target_wait. */
extern const struct option_spec wait_option[1];

/* -q: for a bool. */
extern const struct option_spec quiet_option[1];

/* --name: for a const char *. */
extern const struct option_spec process_name_option[1];

/* --full-command: for a bool. */
extern const struct option_spec full_command_option[1];

/* --mode. All zero: none was chosen. */
struct mode_choice {
	bool is_made;
	enum profile_mode mode; /* valid if is_made */
};
extern const struct option_spec mode_option[1];

/*
 * --locals, --max-value: for the uint32_t that limits the characters shown of a value; 0: no
 * locals.
 */
extern const struct option_spec value_options[2];
