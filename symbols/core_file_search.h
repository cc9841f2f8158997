/* SPDX-License-Identifier: MIT */
/* The search for one file that the process of a core had mapped: symbols/core_files.h. */
#pragma once

#include "symbols/core_files.h"

/*
 * Look for the file, one of the core_files': sets its state, and build_id, found_path and
 * image as far as they are known.
 */
void core_file_search(struct core_files *files, struct core_file *file);
