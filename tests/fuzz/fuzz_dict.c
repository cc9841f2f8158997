/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a threading module and all its objects. The first byte chooses the version. The
 * rest is patches to the objects: eight bytes each, at a place that the input gives.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/threads/threads.h"
#include "tests/support/fake_objects.h"

enum { NR_THREADS = 3, PATCH_BYTES = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Apply the patches: two bytes of place, eight of contents. */
static void apply(struct fake_python *py, remote_addr start_addr, const uint8_t *data, size_t size)
{
	const uint64_t span = py->free_addr - start_addr;

	for (; size >= PATCH_BYTES; data += PATCH_BYTES, size -= PATCH_BYTES) {
		remote_addr addr = start_addr + field_u16(data, 0) * 8u % span;
		uint64_t word;

		if (remote_memory_read_u64(&py->fake.memory, addr, &word) == 0)
			fake_memory_write(&py->fake, addr, data + 2, 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_python py;
	struct thread_name_hints hints = {0};
	struct named_thread threads[NR_THREADS];
	struct fake_item items[NR_THREADS];
	remote_addr start_addr;

	if (size < 1 + PATCH_BYTES)
		return 0;
	fake_python_init(&py, fake_minors[data[0] % NR_FAKE_MINORS]);
	start_addr = py.free_addr;
	for (uint64_t i = 0; i < NR_THREADS; i++) {
		items[i] = (struct fake_item){
			NULL, i + 1, fake_thread_object(&py, (enum fake_form)i, i + 1, "name")};
		threads[i] = (struct named_thread){.ident = i + 1};
	}
	(void)fake_threading(&py, items, NR_THREADS);
	apply(&py, start_addr, data + 1, size - 1);
	(void)thread_names_read(&py.fake.memory, &py.build, py.interp_addr, &hints, threads,
				NR_THREADS);
	for (size_t i = 0; i < NR_THREADS; i++)
		if (strnlen(threads[i].name, THREAD_NAME_MAX_BYTES) == THREAD_NAME_MAX_BYTES)
			abort();
	fake_python_done(&py);
	return 0;
}
