/* SPDX-License-Identifier: MIT */
/*
 * Where the threads of a process keep their restartable-sequences area, whose cpu_id is the CPU on
 * which the thread last returned to user mode. The kernel writes it before the thread's next
 * instruction in user mode, whenever the thread was moved or switched in.
 *
 * glibc registers an area for each thread (since 2.35) and tells where: __rseq_offset bytes from
 * the thread pointer, which on x86-64 is the pthread_t, __rseq_size bytes, 0 if it registered none.
 * Both are variables of the target's own ld.so: the offset is a constant up to 2.40 and depends on
 * the program's TLS from 2.41 on. musl registers none.
 *
 * Source: rseq(2), include/uapi/linux/rseq.h, kernel/rseq.c (rseq_update_cpu_node_id(), called by
 * rseq_handle_notify_resume()); glibc sysdeps/unix/sysv/linux/rseq-internal.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/image_source.h"

/* Where the area lies. All zero: it is not known, or there is none. */
struct rseq_place {
	bool is_known;
	int64_t cpu_id_offset; /* of the word cpu_id, a u32, from the thread pointer */
};

/*
 * Find the place. That there is none, or that it cannot be told, is no error: is_known is false
 * then. Nothing is kept.
 */
struct rseq_place rseq_place_find(struct remote_memory *memory, const struct maps *maps,
				  struct image_source *images);
