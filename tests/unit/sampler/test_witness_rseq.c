/* SPDX-License-Identifier: MIT */
#include "sampler/witness.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <linux/rseq.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#include "procmem/live.h"
#include "symbols/elf/live_images.h"
#include "tests/support/fake_memory.h"
#include "tests/support/no_files.h"
#include "tests/support/own_process.h"

/* This process's files, and where its C library has the rseq areas, as far as they are used. */
struct own {
	struct process process;
	struct maps maps;
	struct live_images images;
	const ptrdiff_t *offset; /* NULL: unknown, or on another machine than x86-64 */
	const unsigned int *size;
};

static void begin(struct own *own)
{
	*own = (struct own){0};
#if defined(__x86_64__)
	own->offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	own->size = dlsym(RTLD_DEFAULT, "__rseq_size");
#endif
	own->process = own_process_open();
	cr_assert(zero(int, maps_read(&own->process, &own->maps)));
	live_images_init(&own->images, &own->process);
}

static void end(struct own *own)
{
	maps_done(&own->maps);
	process_close(&own->process);
}

/* The word is the CPU of the area's own thread. */
Test(witness_rseq, finds_our_own_area)
{
	struct live_memory live;
	struct rseq_place place;
	struct own own;
	cpu_set_t usual, one;

	begin(&own);
	live_memory_init(&live, &own.process);
	place = rseq_place_find(&live.memory, &own.maps, &own.images.source);
	cr_expect(eq(int, place.is_known, own.offset &&own.size &&*own.size));
	if (!place.is_known) {
		cr_expect(zero(i64, place.cpu_id_offset));
		end(&own);
		cr_skip("the C library registers no areas that are used");
	}
	cr_expect(
		eq(i64, place.cpu_id_offset, *own.offset + (int64_t)offsetof(struct rseq, cpu_id)));
	cr_assert(zero(int, sched_getaffinity(0, sizeof(usual), &usual)));
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		uint32_t word;

		if (!CPU_ISSET(cpu, &usual))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		cr_assert(zero(int, sched_setaffinity(0, sizeof(one), &one)));
		cr_assert(zero(int, remote_memory_read(&live.memory,
						       (uintptr_t)__builtin_thread_pointer() +
							       (uint64_t)place.cpu_id_offset,
						       &word, sizeof(word))));
		cr_expect(eq(u32, word, cpu));
	}
	end(&own);
}

/* Values of the two variables in a target with the same C library. */
Test(witness_rseq, invalid_variables_are_refused)
{
	static const struct {
		char name[24];
		uint32_t size;
		int64_t offset;
		bool is_known;
	} cases[] = {
		{"usual", 32, -160, true},
		{"after the pointer", 32, 2496, true},
		{"least", 20, -160, true},
		{"not registered", 0, -160, false},
		{"too small", 19, -160, false},
		{"farthest", 32, 1 << 30, true},
		{"too far", 32, (1 << 30) + 1, false},
		{"farthest down", 32, -(1 << 30), true},
		{"too far down", 32, -(1 << 30) - 1, false},
		{"least number", 32, INT64_MIN, false},
	};
	struct own own;

	begin(&own);
	if (!own.offset || !own.size) {
		end(&own);
		cr_skip("the C library has no such variables that are used");
	}
	const remote_addr offset_addr = (remote_addr)(uintptr_t)own.offset;
	const remote_addr size_addr = (remote_addr)(uintptr_t)own.size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_memory fake;
		struct rseq_place place;

		fake_memory_init(&fake);
		place = rseq_place_find(&fake.memory, &own.maps, &own.images.source);
		cr_expect(not(place.is_known), "the offset cannot be read");
		(void)fake_memory_map(&fake, offset_addr, 8);
		place = rseq_place_find(&fake.memory, &own.maps, &own.images.source);
		cr_expect(not(place.is_known), "the size cannot be read");
		(void)fake_memory_map(&fake, size_addr, 4);
		fake_memory_write_u64(&fake, offset_addr, (uint64_t)cases[i].offset);
		fake_memory_write_u32(&fake, size_addr, cases[i].size);
		place = rseq_place_find(&fake.memory, &own.maps, &own.images.source);
		cr_expect(eq(int, place.is_known, cases[i].is_known), "%s", cases[i].name);
		if (place.is_known)
			cr_expect(eq(i64, place.cpu_id_offset, cases[i].offset + 4), "%s",
				  cases[i].name);
		fake_memory_done(&fake);
	}
	end(&own);
}

Test(witness_rseq, without_a_file_no_area_is_known)
{
	struct image_source no_files = {.ops = &no_files_ops};
	const struct maps no_maps = {0};
	struct live_memory live;
	struct own own;

	begin(&own);
	live_memory_init(&live, &own.process);
	cr_expect(not(rseq_place_find(&live.memory, &own.maps, &no_files).is_known));
	cr_expect(not(rseq_place_find(&live.memory, &no_maps, &own.images.source).is_known));
	end(&own);
}
