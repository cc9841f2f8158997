/* SPDX-License-Identifier: MIT */
/*
 * The kernel's ids of threads of which only the pthread_t is known: before 3.11 a thread
 * state has no other. A pthread_t is the address of the C library's struct pthread, which
 * holds the id at a constant place: 720 in glibc on x86-64, elsewhere on other machines
 * and in other libraries. Nobody exports the place, so it is learnt from the target: it is
 * where every thread has an id that is one of the process's, and each another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"

/* The place of the id in struct pthread. Zero: not learnt. */
struct pthread_layout {
	uint32_t tid_offset;
	bool is_known;
	bool is_sure; /* two threads or more agree; one alone may have its id in many places */
};

/*
 * Learn it. idents are pthread_t of threads of the process, of which as many as are needed
 * are looked at, the last ones first; tids all ids of its threads as they see themselves,
 * rising, read after idents. Threads may have ended in between. 0; -ENOENT (there is no
 * such place), -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: glibc nptl/descr.h, musl src/internal/pthread_impl.h.
 */
int pthread_layout_learn(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 const pid_t *tids, size_t nr_tids, struct pthread_layout *ret_layout);

/*
 * The id of the thread ident, as it sees itself; whether it is one of the process's is the
 * caller's to check. 0; -ENOENT (the thread has ended), -EBADMSG (no id), -EFAULT, -ESRCH,
 * -EPERM.
 */
int pthread_read_tid(struct remote_memory *memory, const struct pthread_layout *layout,
		     uint64_t ident, pid_t *ret_tid);
