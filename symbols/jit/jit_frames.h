/* SPDX-License-Identifier: MIT */
/*
 * Finds code that a process has made at run time, and its unwind rules, for unwinding stacks:
 * from all of its sources (jit_sources.h), as of the time of each stack.
 *
 * A look-up of an address that no source covers refreshes the sources, but not each time: a
 * refresh reads the process's mappings, lists and files, which takes about as long as a stack of a
 * thousand frames, and seconds if the lists are long. refresh_backoff.h decides when the next
 * refresh is due: a tenth of a second to a second after the last one, and at least 20 times as
 * long after it as it took. Additions to known files are read without delay, once for each stack,
 * which takes a few microseconds. While such frames are being looked up, the information is never
 * older than that; where code has ended there may be other code since.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/process.h"
#include "symbols/elf/image_source.h"
#include "symbols/jit/jit_map.h"
#include "symbols/unwind/unwind_table.h"

/*
 * Limits on cached unwind information. Tables are in a direct-mapped cache by code index. When
 * the bytes of all tables reach their limit, further codes have no rules; those of CPython have
 * some hundred bytes each.
 */
#define JIT_FRAMES_MAX_TABLES	    4096
#define JIT_FRAMES_MAX_UNWIND_BYTES (64u << 20)

struct jit_frames;

/*
 * Create for a process, which is borrowed with its memory; or for a core, a single point in time,
 * whose memory, maps and images are borrowed. Nothing is read yet. Returns 0 or -ENOMEM.
 * jit_frames_destroy() accepts NULL.
 */
int jit_frames_create(const struct process *process, struct remote_memory *memory,
		      struct jit_frames **ret_frames);
int jit_frames_create_of_core(struct remote_memory *memory, const struct maps *maps,
			      struct image_source *images, struct jit_frames **ret_frames);
void jit_frames_destroy(struct jit_frames *frames);

/*
 * Set the time (CLOCK_MONOTONIC) of the stack that the next queries are about. It must be recent.
 */
void jit_frames_set_time(struct jit_frames *frames, uint64_t time_ns);

/* The code that was at addr, borrowed until the next query. NULL: none is known. */
const struct jit_code *jit_frames_find(struct jit_frames *frames, remote_addr addr);

/*
 * The rule for the instruction at addr, and in *ret_section the section that holds its
 * expressions, from the unwind information of the code that was there. Borrowed until the next
 * query. NULL: there is none.
 */
const struct unwind_rule *jit_frames_rule(struct jit_frames *frames, remote_addr addr,
					  const struct cfi_section **ret_section);
