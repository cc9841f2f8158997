/* SPDX-License-Identifier: MIT */
/*
 * A folder that is taken for the root of a file system, as that of a container image is, or
 * our own root. Only regular files are opened in it, for reading; nothing is opened by looking
 * at it (devices, FIFOs), and nothing of /proc or /sys, since reading a file there may do
 * something. Paths are those that a core file names: they may be anything.
 */
#pragma once

#include "procmem/message.h"

struct sysroot {
	int fd; /* of the folder; -1: our own root */
};

#define SYSROOT_OWN ((struct sysroot){.fd = -1})

/* Take a folder for the root. 0; or an errno and a sentence. sysroot_close() accepts NULL. */
int sysroot_open(const char *path, struct sysroot *ret_sysroot, struct message *reterr);
void sysroot_close(struct sysroot *sysroot);

/*
 * Open the file of that path, absolute or not. In a folder ".." and symbolic links lead
 * nowhere outside of it, and in our own root links of /proc are not followed; kernels before 5.6
 * cannot do that, and there no link is followed at all. The descriptor; -ENOENT (also if it is no
 * regular file), -EPERM, -EAGAIN (renames kept us from it), or another errno.
 */
int sysroot_open_file(const struct sysroot *sysroot, const char *path);

/* The same of a path that the user has named, in our own root: any link is followed. */
int sysroot_open_named(const char *path);
