/* SPDX-License-Identifier: MIT */
/*
 * What the module sys of the main interpreter says about the program: its command line and its
 * executable. The program can change all of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* Limits on the arguments; the rest is left out. A command line on Linux has at most 2 MiB. */
#define SYS_MAX_ARGUMENTS	65536
#define SYS_MAX_ARGUMENTS_BYTES (4u << 20)

struct sys_info {
	char **arguments; /* sys.orig_argv (3.10+), else sys.argv; NULL if unknown; owned */
	size_t nr_arguments;
	bool has_original; /* arguments are sys.orig_argv, including the interpreter's own */
	char *executable;  /* sys.executable; NULL if unknown; owned */
};

/*
 * Read whatever can be read of the interpreter at runtime_addr. An argument that cannot be read
 * becomes "<not in the core>". Returns 0, -ENOMEM, -ESRCH or -EPERM. sys_info_done() accepts a
 * zeroed struct.
 */
int sys_info_read(struct remote_memory *memory, const struct py_build *build,
		  remote_addr runtime_addr, struct sys_info *ret_info);
void sys_info_done(struct sys_info *info);
