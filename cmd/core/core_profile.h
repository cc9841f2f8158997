/* SPDX-License-Identifier: MIT */
/* Profiles of core files: each thread of each core is one sample. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/command.h"
#include "cmd/core/core_native.h"
#include "cmd/outputs.h"
#include "output/artefact.h"
#include "output/profile/profile.h"
#include "symbols/elf/core_files.h"

/* All borrowed. */
struct core_profile {
	const char *const *paths;
	size_t nr_paths;
	struct core_file_places places;
	bool crashed_only; /* of each core only the thread that got the signal */
	enum core_native_threads native;
	struct profile_options profile; /* its mode is PROFILE_COUNT */
	struct artefact_options layout;
};

/*
 * Write the outputs, opened, one profile after the other, for all that can share it; the cores
 * are read anew for each. A core that cannot be read is left out, after an error was printed.
 * EXIT_OK if one could be read; else the status of one of them; EXIT_NO_SAMPLE after an error was
 * printed: they have no threads, or none that crashed.
 */
enum exit_status core_profile_write(const struct core_profile *cores, struct outputs *outputs);
