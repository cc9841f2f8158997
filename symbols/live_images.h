/* SPDX-License-Identifier: MIT */
/*
 * The ELF files that a running process has mapped.
 *
 * A path found in a maps file says nothing in our mount namespace. The file is
 * taken from /proc/PID/map_files (needs CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE), from /proc/PID/exe, or from the path below
 * /proc/PID/root or our own root; if it is the mapping's file, else not at all.
 */
#pragma once

#include "procmem/process.h"
#include "symbols/image_source.h"

struct live_images {
	struct image_source source;
	const struct process *process; /* borrowed */
};

/* Open the files of a process, which is borrowed as long as they are asked for. */
void live_images_init(struct live_images *images, const struct process *process);
