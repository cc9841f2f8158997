/* SPDX-License-Identifier: MIT */
/* Option rows that several commands share. */
#pragma once

#include <stdint.h>

#include "cmd/options.h"
#include "output/profile/profile_mode.h"

/* How often --thread or --process may be given. */
enum { NAME_CHOICE_MAX = 64 };

/* -o, -f: for struct outputs. */
extern const struct option_spec output_options[2];

/* --open: the same. */
extern const struct option_spec open_option[1];

/* --functions, --lines, -t: for struct profile_options. */
extern const struct option_spec row_options[3];

/* --merge-processes: the same. */
extern const struct option_spec processes_option[1];

/* --plumbing: the same. */
extern const struct option_spec plumbing_option[1];

/* --header, --no-source: for struct artefact_options. */
extern const struct option_spec layout_options[2];

/* --wait: for struct target_wait. */
extern const struct option_spec wait_option[1];

/* --thread, --process. All zero: all of them. */
struct name_choice {
	const char *patterns[NAME_CHOICE_MAX]; /* borrowed from argv */
	uint32_t nr;
};
extern const struct option_spec thread_option[1];

/* Add a value of option, borrowed. Returns false after printing an error: there are too many. */
bool name_choice_add(struct name_choice *choice, const char *option, const char *value);

/* -q: for a bool. */
extern const struct option_spec quiet_option[1];

/* --name: for a const char *. */
extern const struct option_spec process_name_option[1];

/* --full-command: for a bool. */
extern const struct option_spec full_command_option[1];

/* --mode, --idle. All zero: none was chosen. */
struct mode_choice {
	bool is_made;
	enum profile_mode mode; /* valid if is_made */
	bool shows_idle;	/* --idle: PROFILE_WALL */
};
extern const struct option_spec mode_options[2];
extern const struct option_spec recorded_mode_options[2]; /* the default is in the recordings */

/*
 * Returns in *ret_mode what was chosen; usual if nothing was. Returns false after printing an
 * error: the options contradict each other.
 */
bool mode_choose(const struct mode_choice *choice, enum profile_mode usual,
		 enum profile_mode *ret_mode);

/*
 * --locals, --max-value: for the uint32_t that limits the characters shown of a value; 0: no
 * locals.
 */
extern const struct option_spec value_options[2];
