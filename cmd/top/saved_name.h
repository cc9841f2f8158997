/* SPDX-License-Identifier: MIT */
/* The name of a file in which a view saves its samples. */
#pragma once

enum { SAVED_NAME_MAX_BYTES = 64 };

/*
 * Set ret_pattern to "NAME-%p-%t.pysample" (cmd/output_pattern.h). NAME is the last word of the
 * process's name, as "app.py" of "python3 app.py", with characters that need care in a shell
 * replaced; "python" if nothing is left.
 */
void saved_name_format(const char *process_name, char (*ret_pattern)[SAVED_NAME_MAX_BYTES]);
