/* SPDX-License-Identifier: MIT */
/*
 * Everything that can be known of the code that a running process has made: where its sources
 * are, what they told so far, and what is new.
 *
 * Jitdumps are the files jit-NUMBER.dump that it has mapped executable, as who writes one does
 * for it to be found; the perf map is /tmp/perf-PID.map, below its root and with its id in its own
 * namespace. The lists for debuggers and for libunwind are in its memory. What a process has from
 * before a fork only the files of its ancestors tell: up to the time of the fork they count, too,
 * which the kernel tells by hundredths of a second.
 *
 * What the process has given to stdio for a jitdump, and stdio has not written yet, is read from its
 * memory (file_tail.h).
 *
 * A file in a folder that everybody writes to is read only if it is a regular one, no link, and
 * belongs to the process's user or to root; a perf map also only if it was written since the
 * process began, since an earlier process may have had its id.
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

/* Ancestors that are asked: servers fork their workers once or twice. */
#define JIT_SOURCES_MAX_ANCESTORS 8

/*
 * Files of one process; others are left out. They have one, or one for each time that they begin.
 */
#define JIT_SOURCES_MAX_FILES 64

/* A file that was found. */
struct jit_file {
	enum jit_source source;	   /* JIT_SOURCE_JITDUMP or JIT_SOURCE_PERF_MAP */
	char *path;		   /* as the process has it; owned, as are the readers */
	pid_t pid;		   /* whose file it is: the process's or an ancestor's */
	uint64_t device, inode;	   /* st_dev, st_ino */
	int error;		   /* 0; -EPERM: not to be trusted; or what ended the reading */
	struct jitdump *jitdump;   /* NULL: it is none, or not opened */
	struct perf_map *perf_map; /* likewise */
	struct file_tail tail;	   /* of a jitdump: what the process has not written to it yet */
};

struct jit_sources;

/*
 * Look for the sources of a process, which is borrowed as is its memory; nothing is looked at
 * yet. Both may be NULL: then there are the files that are added. Of a core, of which all is
 * borrowed, there are the lists. NULL if out of memory. jit_sources_destroy() accepts NULL.
 */
struct jit_sources *jit_sources_create(const struct process *process, struct remote_memory *memory);
struct jit_sources *jit_sources_create_of_core(struct remote_memory *memory,
					       const struct maps *maps,
					       struct image_source *images);
void jit_sources_destroy(struct jit_sources *sources);

/*
 * Add a file that the user named, which is trusted: a jitdump if it begins as one or has the
 * name of one, else a perf map. fd is the sources' from then on, also on failure. 0 or
 * -ENOMEM.
 */
int jit_sources_add_file(struct jit_sources *sources, int fd, const char *path);

/*
 * Look for sources and read what is new in all of them. With is_final no more will be written.
 * What cannot be read of one is kept in its file's error, and the others are read. 0; -ESRCH
 * (the process has ended; the files that were found are read still); -EPERM; -ENOMEM.
 */
int jit_sources_refresh(struct jit_sources *sources, bool is_final);

/*
 * Read what is new in the files that were found, and look for nothing: if there is nothing it takes
 * three system calls for each file. What cannot be read is kept as in a refresh. 0 or -ENOMEM.
 */
int jit_sources_read_on(struct jit_sources *sources);

/*
 * Add the trampolines that CPython uses and that no source of the process has told of, to be
 * called after a refresh: the end of a jitdump may be neither written nor found in its memory.
 * Errors as there.
 */
int jit_sources_add_trampolines(struct jit_sources *sources);

/*
 * Add code of the process that the caller knows of by source, as of the beginning of the process,
 * unless something is known to be at its start; to be called after a refresh. What the map does not
 * take is left out. 0 or -ENOMEM.
 */
int jit_sources_add_code(struct jit_sources *sources, enum jit_source source,
			 remote_addr start_addr, uint64_t nr_bytes, const char *name);

/* What they told, and the files. Borrowed until the next refresh. */
const struct jit_map *jit_sources_map(const struct jit_sources *sources);
const struct jit_file *jit_sources_files(const struct jit_sources *sources, uint32_t *ret_nr_files);

/*
 * The code that was at addr at time_ns, as jit_map_find() says; of a jitdump whose times are ticks
 * of the processor, which compare with none of ours, the one that is there now.
 */
const struct jit_code *jit_sources_find(const struct jit_sources *sources, remote_addr addr,
					uint64_t time_ns);

/*
 * Read what is told of a code beside its name; jit_body_done() what was read. Instructions come
 * from the process's memory if the code is there still: what is in a jitdump may be other bytes
 * (CPython 3.15 writes a mark over the last eight of its trampolines). 0; -ENOENT, -ENOMEM, or
 * another errno.
 */
int jit_sources_read_body(const struct jit_sources *sources, const struct jit_code *code,
			  struct jit_body *ret_body);
