/* SPDX-License-Identifier: MIT */
/* Any bytes as a loaded ELF file. */
#include <stdint.h>
#include <stdlib.h>

#include "symbols/elf/memory_image.h"
#include "tests/support/fake_memory.h"

#define IMAGE_ADDR 0x7f0000000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"", "_PyRuntime", "data", "a"};
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	struct memory_image image;
	struct fake_memory fake;
	remote_addr addr;

	if (!size)
		return 0;
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, IMAGE_ADDR, data, size);
	if (memory_image_open(&fake.memory, IMAGE_ADDR, &image) == 0) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (memory_image_symbol(&image, names[i], &addr) == 0 &&
			    (addr < image.start || addr >= image.end))
				abort();
		if (memory_image_build_id(&image, build_id) > BUILD_ID_MAX_BYTES)
			abort();
		memory_image_close(&image);
	}
	fake_memory_done(&fake);
	return 0;
}
