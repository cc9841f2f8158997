/* SPDX-License-Identifier: MIT */
/* The command that opens a file that was written, as a suggestion to the user. */
#pragma once

#include "output/format.h"
#include "output/text/text.h"

/*
 * Append the shell command that shows a file of this format; for a recording, the command that
 * makes a page of it. Appends nothing if the file needs no command.
 */
void viewer_command_append(const struct format *format, const char *path, struct text *text);
