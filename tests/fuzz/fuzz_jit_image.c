/* SPDX-License-Identifier: MIT */
/* Any bytes as an ELF file that a program made for debuggers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/jit_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void use_section(const struct jit_image *image, uint32_t index)
{
	static volatile uint8_t sink;
	const uint8_t *bytes;
	Elf64_Shdr header;

	require(jit_image_section(image, index, &header));
	bytes = jit_image_bytes(image, &header);
	if (bytes && header.sh_size)
		sink = (uint8_t)(bytes[0] ^ bytes[header.sh_size - 1]);
	(void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1); /* exact, for the sanitizer */
	struct jit_image_function function;
	struct jit_image image;

	memcpy(bytes, data, size);
	if (!jit_image_init(&image, bytes, size)) {
		for (uint32_t i = 0; i < image.nr_sections; i++)
			use_section(&image, i);
		require(jit_image_find_section(&image, ".eh_frame") < image.nr_sections ||
			!image.nr_sections);
		for (uint32_t i = 0; jit_image_next_function(&image, &i, &function);)
			require(function.nr_bytes && strlen(function.name) < size &&
				function.start_addr + function.nr_bytes > function.start_addr);
	}
	free(bytes);
	return 0;
}
