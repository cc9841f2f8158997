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
	uint64_t file_offset; /* of start, in the mapped file; 0 for anonymous memory */
	uint64_t inode;	      /* 0 for anonymous memory */
	uint32_t dev_major;   /* of the file's device */
	uint32_t dev_minor;
	bool readable;
	bool writable;
	bool executable;
	bool deleted; /* the kernel marked the path " (deleted)"; the mark is cut off */
	/*
	 * "" for anonymous memory; "[heap]", "[stack]", …; an escaped newline is one
	 * again. Borrowed from the maps, valid until maps_done(). May hold any byte.
	 */
	const char *path;
};

/* All mappings, by rising address, none overlapping. Zero-initialised it is empty. */
struct maps {
	struct mapping *mappings;
	size_t nr_mappings;
	char *text; /* owns the paths */
};

/* More lines than this are an error: the default vm.max_map_count is 65530. */
#define MAPS_MAX_MAPPINGS (1u << 20)

/*
 * Read the mappings of a process; when its main thread has ended, those of
 * another thread. 0; -ESRCH, -EPERM, -EBADMSG, -E2BIG, -ENOMEM. maps_done()
 * frees what the maps hold, which are empty then; it accepts NULL and empty ones.
 */
int maps_read(const struct process *process, struct maps *ret_maps);
void maps_done(struct maps *maps);

/*
 * Parse the text of a maps file (text need not be terminated; it is copied).
 * 0, -EBADMSG (a line that is none, addresses that fall), -E2BIG, -ENOMEM.
 */
int maps_parse(const char *text, size_t size, struct maps *ret_maps);

/*
 * Whether both have the same mappings of the same files at the same addresses: no
 * module was loaded or unloaded and nothing grew between the one and the other.
 */
bool maps_same(const struct maps *a, const struct maps *b);

/*
 * The run of mappings of the same file (device and inode) that first belongs
 * to: the first index behind it in *ret_end. Anonymous mappings between two of
 * the file's (its .bss) count as part of the run. Used to walk module by module.
 */
size_t maps_module_end(const struct maps *maps, size_t first);

/*
 * The index of the first mapping that ends behind addr: the one that holds it, or the next
 * one; nr_mappings if there is none. maps_find() is the mapping that holds addr, borrowed
 * from the maps; NULL if none does.
 */
size_t maps_search(const struct maps *maps, remote_addr addr);
const struct mapping *maps_find(const struct maps *maps, remote_addr addr);
