/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the memory of a program that holds the start of a list of FILEs. What is found
 * must be in that memory, and every walk must end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "symbols/elf/stdio_file.h"
#include "tests/support/fake_memory.h"

#define BEGIN_ADDR 0x10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void check_file(struct fake_memory *fake, const struct stdio_file *file, size_t size)
{
	static uint8_t bytes[STDIO_FILE_MAX_UNWRITTEN_BYTES];
	struct stdio_file again = *file;

	require(file->addr >= BEGIN_ADDR && file->addr < BEGIN_ADDR + size);
	require(file->unwritten_bytes <= STDIO_FILE_MAX_UNWRITTEN_BYTES);
	require(!stdio_file_reread(&fake->memory, &again));
	require(again.unwritten_addr == file->unwritten_addr && again.fd == file->fd);
	if (!stdio_file_read_unwritten(&fake->memory, file, bytes) && file->unwritten_bytes)
		require(file->unwritten_addr >= BEGIN_ADDR &&
			file->unwritten_addr + file->unwritten_bytes <= BEGIN_ADDR + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_memory fake;
	struct stdio_file file;
	uint32_t nr = 0;
	int err;

	if (!size)
		return 0;
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, BEGIN_ADDR, data, size);
	err = stdio_file_first(&fake.memory, BEGIN_ADDR, &file);
	for (; !err; err = stdio_file_next(&fake.memory, &file, &file)) {
		check_file(&fake, &file, size);
		require(++nr <= STDIO_FILE_MAX);
	}
	fake_memory_done(&fake);
	return 0;
}
