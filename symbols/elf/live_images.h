/* SPDX-License-Identifier: MIT */
/*
 * The ELF files that a running process has mapped (procmem/mapped_file.h), and the vDSO. Their debug
 * files are looked for by build ID, in the process's own root and then in ours.
 */
#pragma once

#include "procmem/process.h"
#include "symbols/elf/image_source.h"

struct live_images {
	struct image_source source;
	const struct process *process; /* borrowed */
};

/* Open the files of a process, which is borrowed as long as they are asked for. */
void live_images_init(struct live_images *images, const struct process *process);
