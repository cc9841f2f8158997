/* SPDX-License-Identifier: MIT */
/* What people type next, once there is a profile: its file in the program that shows it. */
#pragma once

#include "output/format.h"
#include "output/text/text.h"

/*
 * Append the command, to be pasted into a shell, that shows a file of that format: of a
 * recording the one that makes a page of it. Nothing if the file needs none.
 */
void next_command_append(const struct format *format, const char *path, struct text *text);
