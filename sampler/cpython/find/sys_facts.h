/* SPDX-License-Identifier: MIT */
/*
 * What the module sys of the main interpreter says of the program: its command line and its
 * executable. All of it is the program's to change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * A command line has 2 MiB on Linux; of more arguments and bytes than this, the rest is left out.
 */
#define SYS_MAX_ARGUMENTS	65536
#define SYS_MAX_ARGUMENTS_BYTES (4u << 20)

struct sys_facts {
	char **arguments; /* sys.orig_argv (3.10+), else sys.argv; NULL: not known; owned */
	size_t nr_arguments;
	bool has_original; /* arguments are those of sys.orig_argv, the interpreter's among them */
	char *executable;  /* sys.executable; NULL: not known; owned */
};

/*
 * Read what can be read, of the interpreter at runtime_addr. An argument that cannot be is
 * "<not in the core>". 0; -ENOMEM, -ESRCH, -EPERM. sys_facts_done() accepts those that are zero.
 */
int sys_facts_read(struct remote_memory *memory, const struct py_build *build,
		   remote_addr runtime_addr, struct sys_facts *ret_facts);
void sys_facts_done(struct sys_facts *facts);
