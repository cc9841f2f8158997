/* SPDX-License-Identifier: MIT */
/* Processes for tests of the outputs. */
#pragma once

#include "output/profile/profile.h"
#include "output/recording/recorder.h"

/* Add a process of which only this is known. Returns the error of profile_add_process(). */
static inline int add_process(struct profile *profile, pid_t pid, const char *command_line)
{
	const struct process_info process = {.pid = pid, .command_line = command_line};
	uint32_t index;

	return profile_add_process(profile, &process, &index);
}

/* The same for recorder_add_process(). */
static inline int record_process(struct recorder *recorder, pid_t pid, const char *command_line)
{
	const struct process_info process = {.pid = pid, .command_line = command_line};
	uint32_t index;

	return recorder_add_process(recorder, &process, &index);
}
