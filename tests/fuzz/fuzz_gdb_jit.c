/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the memory of a program with a list of code for debuggers. The first read sees the
 * first half of the input, the second read the second half in its place. The unwind information of
 * each code is read, too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/gdb_jit.h"
#include "tests/support/fake_memory.h"

#define LIST_ADDR 0x10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void read_list(struct fake_memory *fake, struct gdb_jit *jit, struct jit_map *map,
		      uint64_t now_ns)
{
	uint32_t nr_codes;
	const struct jit_code *codes;

	require(!gdb_jit_read(jit, map, 1, now_ns));
	codes = jit_map_codes(map, &nr_codes);
	for (uint32_t i = 0; i < nr_codes; i++) {
		struct jit_body body;

		require(codes[i].nr_bytes && codes[i].name &&
			codes[i].start_addr + codes[i].nr_bytes > codes[i].start_addr);
		if (!gdb_jit_read_body(&fake->memory, &codes[i], &body))
			jit_body_done(&body);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t half = size / 2;
	struct gdb_jit *jit;
	struct jit_map *map;
	struct fake_memory fake;

	if (!half)
		return 0;
	fake_memory_init(&fake);
	jit = gdb_jit_create(&fake.memory);
	map = jit_map_create();
	fake_memory_map_bytes(&fake, LIST_ADDR, data, half);
	(void)gdb_jit_add_list(jit, LIST_ADDR);
	read_list(&fake, jit, map, 10);
	fake_memory_write(&fake, LIST_ADDR, data + half, half);
	read_list(&fake, jit, map, 20);
	read_list(&fake, jit, map, 30);
	gdb_jit_destroy(jit);
	jit_map_destroy(map);
	fake_memory_done(&fake);
	return 0;
}
