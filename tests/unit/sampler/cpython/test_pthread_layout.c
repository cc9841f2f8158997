/* SPDX-License-Identifier: MIT */
/* Fake structs of the C library with thread ids in them. */
#include "sampler/cpython/threads/threads.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_memory.h"

enum { MOST_THREADS = 40, PTHREAD_BYTES = 2304, FIRST_TID = 4711 };

#define PTHREAD_ADDR 0x7f0000000000u

/* Threads whose ids are at one offset. All other words are equal. */
struct library {
	struct fake_memory fake;
	uint64_t idents[MOST_THREADS];
	pid_t tids[MOST_THREADS];
	size_t nr;
};

static void library_init(struct library *library, size_t nr, uint32_t offset)
{
	library->nr = nr;
	fake_memory_init(&library->fake);
	for (size_t i = 0; i < nr; i++) {
		library->idents[i] = PTHREAD_ADDR + i * 0x10000;
		/*
		 * The kernel lists threads by age. Their ids decrease where they have wrapped
		 * around.
		 */
		library->tids[i] = FIRST_TID + (pid_t)(nr - i);
		(void)fake_memory_map(&library->fake, library->idents[i], PTHREAD_BYTES);
		for (uint32_t at = 0; at < PTHREAD_BYTES; at += 8)
			fake_memory_write_u64(&library->fake, library->idents[i] + at,
					      PTHREAD_ADDR + at);
		fake_memory_write_u32(&library->fake, library->idents[i] + offset,
				      (uint32_t)library->tids[i]);
	}
}

static int learn(struct library *library, struct pthread_layout *ret_layout)
{
	pid_t tids[MOST_THREADS];

	*ret_layout = (struct pthread_layout){0};
	memcpy(tids, library->tids, sizeof(tids));
	return pthread_layout_learn(&library->fake.memory, library->idents, library->nr, tids,
				    library->nr, ret_layout);
}

Test(pthread_layout, are_found_at_any_offset)
{
	static const uint32_t offsets[] = {720, 208, 48, 0, 1044, 2044};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		for (size_t nr = 1; nr <= MOST_THREADS; nr += 13) {
			struct library library;
			struct pthread_layout layout;
			pid_t tid;

			library_init(&library, nr, offsets[i]);
			cr_assert(zero(int, learn(&library, &layout)), "%u", offsets[i]);
			cr_expect(eq(u32, layout.tid_offset, offsets[i]));
			cr_expect(eq(int, layout.is_sure, nr > 1));
			for (size_t t = 0; t < nr; t++) {
				cr_assert(zero(int, pthread_read_tid(&library.fake.memory, &layout,
								     library.idents[t], &tid)));
				cr_expect(eq(i32, tid, library.tids[t]));
			}
			fake_memory_done(&library.fake);
		}
}

/* The process id in each struct, which old C libraries have after the thread id. */
Test(pthread_layout, process_id_is_not_mistaken_for_one)
{
	for (size_t nr = 1; nr < 4; nr++) {
		struct library library;
		struct pthread_layout layout;

		library_init(&library, nr, 720);
		for (size_t i = 0; i < nr; i++) {
			fake_memory_write_u32(&library.fake, library.idents[i] + 724,
					      (uint32_t)library.tids[0]);
			fake_memory_write_u32(&library.fake, library.idents[i] + 16,
					      (uint32_t)library.tids[0]);
		}
		cr_assert(zero(int, learn(&library, &layout)));
		cr_expect(eq(u32, layout.tid_offset, 720));
		fake_memory_done(&library.fake);
	}
}

Test(pthread_layout, ended_threads_have_none)
{
	struct library library;
	struct pthread_layout layout;
	pid_t tid = 1;

	library_init(&library, 4, 720);
	fake_memory_write_u32(&library.fake, library.idents[1] + 720, 0);
	fake_memory_unmap(&library.fake, library.idents[2]);
	cr_assert(zero(int, learn(&library, &layout)));
	cr_expect(eq(u32, layout.tid_offset, 720));
	cr_expect(eq(int, pthread_read_tid(&library.fake.memory, &layout, library.idents[1], &tid),
		     -ENOENT));
	cr_expect(eq(int, pthread_read_tid(&library.fake.memory, &layout, library.idents[2], &tid),
		     -EFAULT));
	fake_memory_write_u32(&library.fake, library.idents[1] + 720, 0xffffffff);
	cr_expect(eq(int, pthread_read_tid(&library.fake.memory, &layout, library.idents[1], &tid),
		     -EBADMSG));
	fake_memory_done(&library.fake);
}

Test(pthread_layout, are_absent_if_no_offset_fits)
{
	struct library library;
	struct pthread_layout layout;

	library_init(&library, 3, 720);
	fake_memory_write_u32(&library.fake, library.idents[1] + 720, 1); /* no thread */
	cr_expect(eq(int, learn(&library, &layout), -ENOENT));
	fake_memory_write_u32(&library.fake, library.idents[1] + 720,
			      (uint32_t)library.tids[0]); /* another thread's id */
	cr_expect(eq(int, learn(&library, &layout), -ENOENT));
	cr_expect(not(layout.is_known));
	library.nr = 0;
	cr_expect(eq(int, learn(&library, &layout), -ENOENT));
	library.nr = 3;
	library.fake.error = -ESRCH;
	cr_expect(eq(int, learn(&library, &layout), -ESRCH));
	fake_memory_done(&library.fake);
}
