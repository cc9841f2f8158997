/* SPDX-License-Identifier: MIT */
/*
 * The files that a running process has mapped.
 *
 * A path found in a maps file says nothing in our mount namespace. The file is
 * taken from /proc/PID/map_files (needs CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE), from /proc/PID/exe, or from the path below
 * /proc/PID/root or our own root; if it is the mapping's file, else not at all.
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/process.h"

/*
 * Open for reading the regular file that mapping, one of the process's, maps, whatever lies
 * under its path by now. Nothing else is opened. The descriptor, the caller's; -ENOENT (none, no
 * way to it, or it cannot be told that it is the file), -EPERM, -ENOMEM.
 */
int mapped_file_open(const struct process *process, const struct mapping *mapping);
