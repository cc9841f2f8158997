/* SPDX-License-Identifier: MIT */
/*
 * Code objects that were seen, by the addresses of their instructions: an instruction tells
 * the function also when its frame is gone. Only addresses are kept: what is there now says
 * the cache of code objects.
 */
#pragma once

#include <stdint.h>

#include "sampler/python/code.h"

/* Where there are more, all are forgotten: those that run are seen again at once. */
#define CODE_INDEX_MAX (1u << 18)

struct code_index_entry {
	remote_addr code_start_addr;
	remote_addr addr; /* of the code object */
};

/* All zero it is empty. */
struct code_index {
	struct code_index_entry *entries; /* by rising code_start_addr; owned */
	uint32_t nr_entries, max_entries;
};

/* Frees the index, which is empty then. */
void code_index_done(struct code_index *index);

/* Note where a code object is; one that is foreign or forgotten is not noted. 0 or -ENOMEM. */
int code_index_add(struct code_index *index, const struct code *code);

/*
 * The address of the code object that instr_addr, or the end of whose instructions, may be;
 * 0: of none that was noted.
 */
remote_addr code_index_find(const struct code_index *index, remote_addr instr_addr);
