/* SPDX-License-Identifier: MIT */
/*
 * The memory mappings of a process, from /proc/PID/maps. Source: proc_pid_maps(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "procmem/process.h"

struct mapping {
	remote_addr start; /* [start, end) */
	remote_addr end;
	uint64_t file_offset; /* of start in the mapped file; 0 for anonymous memory */
	uint64_t inode;	      /* 0 for anonymous memory */
	uint32_t dev_major;   /* of the file's device */
	uint32_t dev_minor;
	bool readable;
	bool writable;
	bool executable;
	bool deleted; /* the kernel marked the path " (deleted)"; the mark is removed */
	/*
	 * "" for anonymous memory, "[heap]", "[stack]", or a path in which escaped newlines are
	 * decoded. It may contain any byte. Borrowed from the maps, valid until maps_done().
	 */
	const char *path;
};

/* All mappings in ascending address order, none overlapping. A zero-initialised struct is empty. */
struct maps {
	struct mapping *mappings;
	size_t nr_mappings;
	char *text; /* owns the paths */
};

/* Limit on the lines of a maps file; the default vm.max_map_count is 65530. Beyond it: -E2BIG. */
#define MAPS_MAX_MAPPINGS (1u << 20)

/*
 * Read the mappings of a process; if its main thread has ended, those of another thread. Returns
 * 0, -ESRCH, -EPERM, -EBADMSG, -E2BIG or -ENOMEM. maps_done() frees the contents and leaves the
 * maps empty; it accepts NULL and empty maps.
 */
int maps_read(const struct process *process, struct maps *ret_maps);
void maps_done(struct maps *maps);

/*
 * Parse the text of a maps file. The text is copied and need not be terminated. Returns 0,
 * -EBADMSG for a malformed line or descending addresses, -E2BIG or -ENOMEM.
 */
int maps_parse(const char *text, size_t size, struct maps *ret_maps);

/*
 * Whether both have the same mappings of the same files at the same addresses: no module was
 * loaded or unloaded and no mapping grew between the two.
 */
bool maps_same(const struct maps *a, const struct maps *b);

/*
 * Returns the index after the last mapping of the module that first belongs to: the run of
 * mappings of one file (device and inode). Anonymous mappings between two of the file's, such as
 * its .bss, are part of the run. Callers use it to iterate over modules.
 */
size_t maps_module_end(const struct maps *maps, size_t first);

/*
 * maps_search() returns the index of the first mapping that ends above addr: the one that contains
 * it or the next one, or nr_mappings if there is none. maps_find() returns the mapping that
 * contains addr, borrowed from the maps, or NULL.
 */
size_t maps_search(const struct maps *maps, remote_addr addr);
const struct mapping *maps_find(const struct maps *maps, remote_addr addr);
