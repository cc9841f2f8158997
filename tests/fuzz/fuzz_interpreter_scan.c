/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the variables of a program and the states that they point to. The first byte
 * chooses the version; the rest is mapped at INPUT_ADDR.
 */
#include <stdint.h>
#include <stdlib.h>

#include "sampler/cpython/find/interpreter_scan.h"
#include "tests/support/fake_memory.h"

#define INPUT_ADDR 0x10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mapping mapping = {.start = INPUT_ADDR, .readable = true, .writable = true};
	const struct maps maps = {.mappings = &mapping, .nr_mappings = 1};
	const struct elf_module module = {.first = 0, .end = 1};
	remote_addr runtime_addr = 0;
	struct fake_memory fake;
	struct py_build build;

	if (size < 2 || offsets_of_version(0x030600f0u + (data[0] % 7u << 16), &build, NULL))
		return 0;
	mapping.end = INPUT_ADDR + size - 1;
	mapping.path = "";
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, INPUT_ADDR, data + 1, size - 1);
	if (interpreter_scan(&fake.memory, &maps, &module, &build, &runtime_addr) == 0) {
		runtime_addr += build.offsets.runtime.interpreters_head;
		if (runtime_addr < INPUT_ADDR || runtime_addr >= mapping.end || runtime_addr % 8)
			abort();
	}
	fake_memory_done(&fake);
	return 0;
}
