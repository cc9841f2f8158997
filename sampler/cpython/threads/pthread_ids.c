/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/pthread_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/*
 * How far into struct pthread the id is looked for: glibc has it within the first 1 KiB,
 * behind a header of 704 bytes, musl within the first 100 bytes. So many threads are
 * enough to tell it from anything else.
 */
enum { PTHREAD_BYTES = 2048, MAX_PTHREADS = 32 };

/* Where the id is known to be: glibc on x86-64 and aarch64, musl on 64-bit machines. */
static const uint32_t usual_offsets[] = {720, 208, 48};
enum { NR_USUAL_OFFSETS = sizeof(usual_offsets) / sizeof(*usual_offsets) };

struct pthreads {
	uint8_t bytes[MAX_PTHREADS][PTHREAD_BYTES];
	size_t nr;
	const pid_t *tids;
	size_t nr_tids;
};

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/*
 * How many threads have an id at offset; 0 if one has anything else there, or if two have
 * the same. A thread that has ended has 0 there: the kernel clears it (set_tid_address(2)).
 */
static size_t nr_matches(const struct pthreads *pthreads, uint32_t offset)
{
	pid_t found[MAX_PTHREADS];
	size_t nr = 0;

	for (size_t i = 0; i < pthreads->nr; i++) {
		pid_t tid = field_i32(pthreads->bytes[i], offset);

		if (!tid)
			continue;
		if (!bsearch(&tid, pthreads->tids, pthreads->nr_tids, sizeof(tid), compare_tids))
			return 0;
		for (size_t j = 0; j < nr; j++)
			if (found[j] == tid)
				return 0;
		found[nr++] = tid;
	}
	return nr;
}

/* Copy the structs of different threads; what cannot be read of one is 0. */
static int read_pthreads(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 struct pthreads *pthreads)
{
	struct remote_range ranges[MAX_PTHREADS];

	pthreads->nr = 0;
	for (size_t i = nr_idents; i > 0 && pthreads->nr < MAX_PTHREADS; i--) {
		size_t known = 0;

		/* The main thread of a process has a thread state in each interpreter. */
		while (known < pthreads->nr && ranges[known].addr != idents[i - 1])
			known++;
		if (!idents[i - 1] || known < pthreads->nr)
			continue;
		ranges[pthreads->nr] = (struct remote_range){
			.addr = idents[i - 1],
			.buffer = pthreads->bytes[pthreads->nr],
			.size = PTHREAD_BYTES,
		};
		pthreads->nr++;
	}
	return remote_memory_read_ranges(memory, ranges, pthreads->nr);
}

/* The place where the most threads have their ids; of several the usual one, or the first. */
static size_t find_offset(const struct pthreads *pthreads, uint32_t *ret_offset)
{
	size_t most = 0;

	for (size_t i = 0; i < NR_USUAL_OFFSETS + PTHREAD_BYTES / sizeof(int32_t); i++) {
		const uint32_t offset =
			i < NR_USUAL_OFFSETS ? usual_offsets[i]
					     : (uint32_t)((i - NR_USUAL_OFFSETS) * sizeof(int32_t));
		const size_t nr = nr_matches(pthreads, offset);

		if (nr > most) {
			most = nr;
			*ret_offset = offset;
		}
	}
	return most;
}

int pthread_layout_learn(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 const pid_t *tids, size_t nr_tids, struct pthread_layout *ret_layout)
{
	cleanup_free struct pthreads *pthreads = calloc(1, sizeof(*pthreads));
	uint32_t offset = 0;
	size_t nr;
	int err;

	if (!pthreads)
		return -ENOMEM;
	pthreads->tids = tids;
	pthreads->nr_tids = nr_tids;
	err = read_pthreads(memory, idents, nr_idents, pthreads);
	if (err)
		return err;
	nr = find_offset(pthreads, &offset);
	if (!nr)
		return -ENOENT;
	*ret_layout = (struct pthread_layout){
		.tid_offset = offset,
		.is_known = true,
		.is_sure = nr > 1,
	};
	return 0;
}

int pthread_read_tid(struct remote_memory *memory, const struct pthread_layout *layout,
		     uint64_t ident, pid_t *ret_tid)
{
	int32_t tid;
	int err = remote_memory_read(memory, ident + layout->tid_offset, &tid, sizeof(tid));

	if (err)
		return err;
	if (tid <= 0)
		return tid ? -EBADMSG : -ENOENT;
	*ret_tid = tid;
	return 0;
}
