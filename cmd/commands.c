/* SPDX-License-Identifier: MIT */
/* The table of commands, in the order of --help. */
#include "cmd/command.h"

const struct command *const commands[] = {
	&run_command,	 &attach_command,     &top_command,  &report_command,
	&dump_command,	 &ls_command,	      &core_command, &jit_command,
	&doctor_command, &completion_command, NULL,
};
