/* SPDX-License-Identifier: MIT */
/*
 * Opens the ELF files that a running process has mapped (procmem/mapped_file.h), and the vDSO.
 * Debug files are looked up by build ID, first in the process's root, then in ours.
 */
#pragma once

#include "procmem/process.h"
#include "symbols/elf/image_source.h"

struct live_images {
	struct image_source source;
	const struct process *process; /* borrowed */
};

/* Initialise for a process, which is borrowed for as long as images is used. */
void live_images_init(struct live_images *images, const struct process *process);
