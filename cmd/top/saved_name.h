/* SPDX-License-Identifier: MIT */
/* The name of a file in which a view saves its samples. */
#pragma once

#include <sys/types.h>
#include <time.h>

enum { SAVED_NAME_MAX_BYTES = 128 };

/*
 * Set ret_name to NAME-PID-TIME.pysample. NAME is the last word of the process's name, as
 * "app.py" of "python3 app.py", with characters that need care in a shell replaced; "python" if
 * nothing is left. TIME is local, as in 20260131T235959.
 */
void saved_name_format(const char *process_name, pid_t pid, time_t when,
		       char (*ret_name)[SAVED_NAME_MAX_BYTES]);
