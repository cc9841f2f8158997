/* SPDX-License-Identifier: MIT */
/*
 * The functions of the running kernel and its modules, from /proc/kallsyms: lines of "ADDRESS
 * TYPE NAME", with "\t[MODULE]" appended for a module's symbol. Symbols have no sizes: a function
 * extends to the next symbol. Of several functions at an address the first one counts.
 *
 * Source: kernel/kallsyms.c, s_show(); nm(1) for the types.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit on the text: a kernel with all of a distribution's modules has a quarter of it. */
#define KERNEL_NAMES_MAX_BYTES (64u << 20)

/*
 * What a process needs to see kernel addresses; a phrase for messages.
 *
 * Source: kallsyms_show_value() in kernel/ksyms_common.c (before 6.5: kernel/kallsyms.c).
 */
#define KERNEL_NAMES_REQUIREMENTS                                   \
	"CAP_SYSLOG and kernel.kptr_restrict of 1 or less, or "     \
	"kernel.kptr_restrict=0 and kernel.perf_event_paranoid of " \
	"1 or less"

struct kernel_names;

/*
 * Read the current symbols of the running kernel.
 *
 * Returns 0; -EPERM if the kernel hides the addresses (KERNEL_NAMES_REQUIREMENTS) or the
 * file; -E2BIG; -EBADMSG if there is no function; -ENOMEM; or the errno of a system call
 * (-ENOENT: the kernel was built without kallsyms).
 */
int kernel_names_read(struct kernel_names **ret_names);
void kernel_names_destroy(struct kernel_names *names); /* accepts NULL */

/*
 * Parse a text in the form of that file: nr_bytes, at most KERNEL_NAMES_MAX_BYTES, followed by a
 * NUL. Takes ownership of text, which was allocated, also on failure. Malformed lines are
 * skipped. Returns 0, -EPERM, -EBADMSG or -ENOMEM, as above.
 */
int kernel_names_parse(char *text, size_t nr_bytes, struct kernel_names **ret_names);

/*
 * Find the function at an address: its name, and its module in brackets, or "" if it has none.
 * Both are ASCII without blanks and live as long as names. Returns false if no function contains
 * the address.
 */
bool kernel_names_find(const struct kernel_names *names, uint64_t addr, const char **ret_name,
		       const char **ret_module);

/*
 * Find the address of a function of the kernel proper, not of a module, by its name. Returns
 * false if there is none.
 */
bool kernel_names_addr(const struct kernel_names *names, const char *name, uint64_t *ret_addr);
