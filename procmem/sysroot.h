/* SPDX-License-Identifier: MIT */
/*
 * A folder used as the root of a file system, such as that of a container image, or our own root.
 * Only regular files are opened, for reading. Devices and FIFOs are never opened, and neither are
 * files of /proc or /sys, because reading one may have an effect. The paths come from a core file
 * and are untrusted.
 */
#pragma once

#include "procmem/message.h"

struct sysroot {
	int fd; /* the folder; -1: our own root */
};

#define SYSROOT_OWN ((struct sysroot){.fd = -1})

/*
 * Open a folder as the root. Returns 0, or an errno and a sentence. sysroot_close() accepts NULL.
 */
int sysroot_open(const char *path, struct sysroot *ret_sysroot, struct message *reterr);
void sysroot_close(struct sysroot *sysroot);

/*
 * Open the file at path, absolute or not. In a folder, ".." and symbolic links cannot lead
 * outside; in our own root, magic links of /proc are not followed. Kernels before 5.6 cannot
 * enforce that, so no link at all is followed there.
 *
 * Returns a descriptor; -ENOENT (also if it is not a regular file), -EPERM, -EAGAIN if concurrent
 * renames prevented the look-up, or another errno.
 */
int sysroot_open_file(const struct sysroot *sysroot, const char *path);

/* Open a path that the user has named, in our own root. All links are followed. Errors as above. */
int sysroot_open_named(const char *path);
