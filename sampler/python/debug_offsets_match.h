/* SPDX-License-Identifier: MIT */
/*
 * Which layout a target's debug offsets have. That of its minor version is tried first.
 * If the numbers that come out contradict each other (a pre-release, whose table had
 * fewer fields; a minor version that is newer than this pysample), the table is searched:
 * it is a row of groups, one for each struct, in an order that never changed, and the
 * numbers of each group have relations that always hold (a frame's executable is its
 * first word, native_thread_id follows thread_id, …). A group may stand some words before
 * or behind where a known layout has it. What is found that way must fit the live
 * interpreter too, and be the only one that does.
 */
#pragma once

#include "sampler/python/debug_offsets.h"

/*
 * Fill ret_build from the debug offsets at runtime_addr, a copy of which is table.
 *
 * 0; -EBADMSG (no layout fits, or several do), -EFAULT (what its version's layout needs could
 * not be read). build.newer_than_tested tells whether it is its version's own.
 */
int debug_offsets_match(struct remote_memory *memory, remote_addr runtime_addr,
			const struct debug_offsets *table, struct py_build *ret_build);
