/* SPDX-License-Identifier: MIT */
/*
 * What is known of the frames of code that a process has made, for those who unwind its stacks: by
 * all sources of it (jit_sources.h), at the time of each stack.
 *
 * The sources are looked at when something is asked for that none has told of, and not for each:
 * a look reads the process's mappings, lists and files, which takes about as long as a stack of
 * a thousand frames, and of long lists seconds. look_pace.h says when the next one comes: a tenth
 * of a second to a second after the last, and no sooner than 20 times what that took. What is new in files that were found is read without waiting, once for each stack, as
 * it takes a few microseconds. So old is what is known at most while frames of such code are asked
 * for: where one has ended there may be another since.
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
 * Of so many codes how to unwind them is kept, each where its index says, and no more bytes of
 * unwind information of all of them: of code that CPython makes each has some hundred bytes.
 * Where that is not enough codes have no rules.
 */
#define JIT_FRAMES_MAX_TABLES	    4096
#define JIT_FRAMES_MAX_UNWIND_BYTES (64u << 20)

struct jit_frames;

/*
 * Create for a process, which is borrowed as is its memory, or for a core, whose memory, maps and
 * images are, and which is of one time; nothing is looked at yet. 0 or -ENOMEM.
 * jit_frames_destroy() accepts NULL.
 */
int jit_frames_create(const struct process *process, struct remote_memory *memory,
		      struct jit_frames **ret_frames);
int jit_frames_create_of_core(struct remote_memory *memory, const struct maps *maps,
			      struct image_source *images, struct jit_frames **ret_frames);
void jit_frames_destroy(struct jit_frames *frames);

/* What is asked for next is of a process's stack of that time (CLOCK_MONOTONIC), not long ago. */
void jit_frames_set_time(struct jit_frames *frames, uint64_t time_ns);

/*
 * The code that was at addr. Borrowed until anything is asked for again. NULL: none, as far as
 * can be told.
 */
const struct jit_code *jit_frames_find(struct jit_frames *frames, remote_addr addr);

/*
 * The rule for the instruction at addr, and the section whose expressions it may have: by what the
 * source tells of the code that was there. Borrowed until anything is asked for again. NULL: there
 * is none.
 */
const struct unwind_rule *jit_frames_rule(struct jit_frames *frames, remote_addr addr,
					  const struct cfi_section **ret_section);
