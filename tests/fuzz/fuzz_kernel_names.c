/* SPDX-License-Identifier: MIT */
/* Any text as /proc/kallsyms. Whatever is found at an address must be a valid name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/kernel_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void require_word(const char *word)
{
	for (; *word; word++)
		require(*word > ' ' && *word < 0x7f);
}

static void look_up(const struct kernel_names *names, uint64_t addr)
{
	const char *name, *module;

	if (!kernel_names_find(names, addr, &name, &module))
		return;
	require(name[0]);
	require_word(name);
	require_word(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t addrs[] = {0,	    1, 0x1000, UINT64_MAX >> 1, UINT64_MAX - 4096,
					 UINT64_MAX};
	struct kernel_names *names;
	char *text;

	if (size > KERNEL_NAMES_MAX_BYTES)
		return 0;
	text = malloc(size + 1);
	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (kernel_names_parse(text, size, &names))
		return 0;
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
		look_up(names, addrs[i]);
	for (size_t i = 0; i + sizeof(uint64_t) <= size; i++) {
		uint64_t addr;

		memcpy(&addr, data + i, sizeof(addr));
		look_up(names, addr);
	}
	kernel_names_destroy(names);
	return 0;
}
