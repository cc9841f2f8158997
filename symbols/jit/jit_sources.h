/* SPDX-License-Identifier: MIT */
/*
 * Finds all sources of the code that a running process has made, and reads them into one map,
 * again as they grow.
 *
 * Jitdumps are the files jit-NUMBER.dump that the process has mapped executable; writers map them
 * so that they are found. The perf map is /tmp/perf-PID.map, below the process's root and with
 * its id in its own PID namespace. The lists for debuggers and for libunwind are in its memory.
 * Code from before a fork is only in the files of the process's ancestors, so these count up to
 * the time of the fork, which the kernel reports in hundredths of a second.
 *
 * What the process has written to a jitdump through stdio but not yet flushed is read from its
 * memory (file_tail.h).
 *
 * A file in a world-writable folder is read only if it is a regular file, not a link, and belongs
 * to the process's user or to root. A perf map must also have been written since the process
 * began, since an earlier process may have had its id.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/process.h"
#include "symbols/elf/file_tail.h"
#include "symbols/elf/image_source.h"
#include "symbols/jit/jit_body.h"
#include "symbols/jit/jit_map.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/perf_map.h"

/* Limit on the ancestors searched: servers fork their workers once or twice. */
#define JIT_SOURCES_MAX_ANCESTORS 8

/*
 * Limit on the files of one process; others are left out. A process has one, or one for each time
 * it starts a dump.
 */
#define JIT_SOURCES_MAX_FILES 64

/* A file of a process. */
struct jit_file {
	enum jit_source source;	   /* JIT_SOURCE_JITDUMP or JIT_SOURCE_PERF_MAP */
	char *path;		   /* as the process sees it; owned, like the readers */
	pid_t pid;		   /* its writer: the process or an ancestor */
	uint64_t device, inode;	   /* st_dev, st_ino */
	int error;		   /* 0; -EPERM: not trusted; or the error that ended reading */
	struct jitdump *jitdump;   /* NULL: not one, or not opened */
	struct perf_map *perf_map; /* likewise */
	struct file_tail tail;	   /* of a jitdump: what is not flushed yet */
};

struct jit_sources;

/*
 * Create for a process, which is borrowed with its memory. Both may be NULL: then there are only
 * the files added. Or for a core, of which everything is borrowed and only the lists are read.
 * Nothing is read yet. NULL if out of memory. jit_sources_destroy() accepts NULL.
 */
struct jit_sources *jit_sources_create(const struct process *process, struct remote_memory *memory);
struct jit_sources *jit_sources_create_of_core(struct remote_memory *memory,
					       const struct maps *maps,
					       struct image_source *images);
void jit_sources_destroy(struct jit_sources *sources);

/*
 * Add a file that the user named. It is trusted. It is a jitdump if it starts or is named like
 * one, else a perf map. Takes ownership of fd, also on failure. Returns 0 or -ENOMEM.
 */
int jit_sources_add_file(struct jit_sources *sources, int fd, const char *path);

/*
 * Search for new sources, and read what is new in all of them. is_final: nothing more will be
 * written. If a file cannot be read, the error is kept in its jit_file and the others are read.
 *
 * Returns 0; -ESRCH if the process has ended (the files found are still read); -EPERM; -ENOMEM.
 */
int jit_sources_refresh(struct jit_sources *sources, bool is_final);

/*
 * Read what is new in the files found so far, without searching for others. If nothing is new it
 * takes three system calls for each file. Errors of a file are kept as by jit_sources_refresh().
 * Returns 0 or -ENOMEM.
 */
int jit_sources_read_new(struct jit_sources *sources);

/*
 * Add the trampolines that CPython uses and no source of the process has reported: the end of a
 * jitdump may be neither written nor found in memory. Call it after a refresh. Returns errors as
 * jit_sources_refresh().
 */
int jit_sources_add_trampolines(struct jit_sources *sources);

/*
 * Add code of the process that the caller found, from the start of the process on, unless a code
 * is already known at start_addr. Call it after a refresh. A code that the map refuses is left
 * out. Returns 0 or -ENOMEM.
 */
int jit_sources_add_code(struct jit_sources *sources, enum jit_source source,
			 remote_addr start_addr, uint64_t nr_bytes, const char *name);

/* The map of all codes, and the files. Borrowed until the next refresh. */
const struct jit_map *jit_sources_map(const struct jit_sources *sources);
const struct jit_file *jit_sources_files(const struct jit_sources *sources, uint32_t *ret_nr_files);

/*
 * The code that was at addr at time_ns, as jit_map_find(). Of a jitdump whose times are processor
 * ticks, which are comparable with no clock of ours, the code that is there now.
 */
const struct jit_code *jit_sources_find(const struct jit_sources *sources, remote_addr addr,
					uint64_t time_ns);

/*
 * Read what the source records about a code besides its name. The caller releases the body with
 * jit_body_done(). If the code still exists, its instructions come from the process's memory,
 * since the bytes in a jitdump may differ (CPython 3.15 overwrites the last eight of its
 * trampolines with a mark). Returns 0; -ENOENT, -ENOMEM, or another errno.
 */
int jit_sources_read_body(const struct jit_sources *sources, const struct jit_code *code,
			  struct jit_body *ret_body);
