/* SPDX-License-Identifier: MIT */
/* Makes profiles of core files, in which each thread of each core is one sample. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/command.h"
#include "cmd/core/core_native.h"
#include "cmd/outputs.h"
#include "output/artefact.h"
#include "output/profile/profile.h"
#include "symbols/elf/core_files.h"

/* All pointers are borrowed. */
struct core_profile {
	const char *const *paths;
	size_t nr_paths;
	struct core_file_places places;
	bool full_command; /* show all arguments */
	bool crashed_only; /* only the thread of each core that got the signal */
	enum core_native_threads native;
	struct profile_options profile; /* with mode PROFILE_COUNT */
	struct artefact_options layout;
};

/*
 * Write the open outputs, with one profile for all outputs that can share it; the cores are read
 * again for each profile. A core that cannot be read is left out, after printing an error.
 * Returns EXIT_OK if one could be read, otherwise the status of one of them; EXIT_NO_SAMPLE,
 * after printing an error, if they have no threads, or none that crashed.
 */
enum exit_status core_profile_write(const struct core_profile *cores, struct outputs *outputs);
