/* SPDX-License-Identifier: MIT */
/*
 * How the functions of the running kernel and its modules are called: /proc/kallsyms, lines of
 * "ADDRESS TYPE NAME", and "\t[MODULE]" behind it of a module's. They have no sizes: a function
 * goes up to the next symbol. Of several at an address the first function counts.
 *
 * Source: kernel/kallsyms.c, s_show(); nm(1) for the types.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel with all of a distribution's modules has a quarter of it. */
#define KERNEL_NAMES_MAX_BYTES (64u << 20)

struct kernel_names;

/*
 * Read those of the running kernel, as they are now. 0; -EPERM: it hides the addresses
 * (kernel.kptr_restrict, CAP_SYSLOG), or the file; -E2BIG; -EBADMSG: there is no function; -ENOMEM;
 * or the errno of a system call (-ENOENT: the kernel was built without).
 */
int kernel_names_read(struct kernel_names **ret_names);
void kernel_names_destroy(struct kernel_names *names); /* accepts NULL */

/*
 * Take a text as that file, of nr_bytes, at most KERNEL_NAMES_MAX_BYTES, and a NUL behind them. It
 * is allocated, and from then on that of the names, also on failure. Lines of another form are
 * left out. 0; -EPERM, -EBADMSG, -ENOMEM as above.
 */
int kernel_names_parse(char *text, size_t nr_bytes, struct kernel_names **ret_names);

/*
 * Find the function at an address: its name, and its module in brackets, "" for none. Both
 * are ASCII without blanks, and as long there as the names. False: it is in none.
 */
bool kernel_names_find(const struct kernel_names *names, uint64_t addr, const char **ret_name,
		       const char **ret_module);

/* Find where a function of the kernel itself is, by its name. False: there is none. */
bool kernel_names_addr(const struct kernel_names *names, const char *name, uint64_t *ret_addr);
