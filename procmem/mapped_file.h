/* SPDX-License-Identifier: MIT */
/*
 * Opens the files that a running process has mapped.
 *
 * A path in a maps file need not mean the same file in our mount namespace. The file is opened
 * through /proc/PID/map_files (needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), through
 * /proc/PID/exe, or by its path below /proc/PID/root or our own root, and only if it is the
 * mapping's file.
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/process.h"

/*
 * Open for reading the regular file that mapping, one of the process's, maps, even if its path now
 * names another file. Nothing else is opened.
 *
 * Returns a descriptor, owned by the caller; -ENOENT if there is no file, no way to it, or no
 * proof that it is the right one; -EPERM; -ENOMEM.
 */
int mapped_file_open(const struct process *process, const struct mapping *mapping);
