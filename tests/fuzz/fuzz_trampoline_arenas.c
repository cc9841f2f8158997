/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a program's memory from its _PyRuntime on, which is writable and executable. What
 * is found must be in that memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/trampoline_arenas.h"
#include "tests/support/fake_memory.h"

#define BEGIN_ADDR 0x10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { MAX_BYTES = 0x10000 };
	static const char text[] = "10000-20000 rwxp 00000000 00:00 0\n";
	struct maps maps;
	struct fake_memory fake;
	struct jit_map *map;
	const struct jit_code *codes;
	uint32_t nr_codes;

	if (!size || size > MAX_BYTES)
		return 0;
	require(!maps_parse(text, strlen(text), &maps));
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, BEGIN_ADDR, data, size);
	map = jit_map_create();
	require(!trampoline_arenas_read(&fake.memory, &maps, BEGIN_ADDR, map, 0));
	codes = jit_map_codes(map, &nr_codes);
	for (uint32_t i = 0; i < nr_codes; i++)
		require(codes[i].start_addr >= BEGIN_ADDR &&
			codes[i].start_addr + codes[i].nr_bytes <= BEGIN_ADDR + size);
	jit_map_destroy(map);
	fake_memory_done(&fake);
	maps_done(&maps);
	return 0;
}
