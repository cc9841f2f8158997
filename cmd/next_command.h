/* SPDX-License-Identifier: MIT */
/* Suggests what to type once a profile is written: the command that opens its file. */
#pragma once

#include "output/format.h"
#include "output/text/text.h"

/*
 * Append the shell command that shows a file of this format; for a recording, the command that
 * makes a page of it. Appends nothing if the file needs no command.
 */
void next_command_append(const struct format *format, const char *path, struct text *text);
