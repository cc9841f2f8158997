/* SPDX-License-Identifier: MIT */
/* Calls every function of image, symtab and function_symbols on a file of any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "symbols/elf/function_symbols.h"
#include "symbols/elf/image.h"
#include "symbols/elf/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void use(const struct image *image)
{
	static const char *const names[] = {"", "_PyRuntime", ".text", ".PyRuntime", "a"};
	struct mapping mapping = {.start = 0x7f0000000000, .end = 0x7f0000001000, .path = "/x"};
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint64_t vaddr;
	uint64_t size;
	char bytes[64];
	size_t nr_segments;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!image_section(image, names[i], &vaddr, &size))
			(void)image_read_vaddr(image, vaddr, bytes, sizeof(bytes));
		(void)symtab_find(image, names[i], &vaddr, &size);
	}
	for (unsigned int i = 0; i < 16; i++) {
		mapping.file_offset = (uint64_t)i * 0x800;
		mapping.executable = i & 1;
		mapping.writable = i & 2;
		(void)image_load_bias(image, &mapping, &vaddr);
	}
	require(image_build_id(image, build_id) <= BUILD_ID_MAX_BYTES);
	require(!image_segments(image, &nr_segments) == !nr_segments);
	require(image_read(image, UINT64_MAX - 8, bytes, sizeof(bytes)) != 0);
}

/* The table owns the image from here on. */
static void use_symbols(struct image *image)
{
	struct function_symbols *symbols = function_symbols_create();

	if (!symbols) {
		image_close(image);
		return;
	}
	(void)function_symbols_add(symbols, image);
	for (uint64_t vaddr = 0; vaddr < 0x5000; vaddr += 0x80)
		(void)function_symbols_find(symbols, vaddr);
	(void)function_symbols_find(symbols, UINT64_MAX);
	function_symbols_destroy(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image;
	int fd = memfd_create("fuzz_image", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		cleanup_close_fn(&fd);
		return 0;
	}
	if (image_open_fd(fd, &image))
		return 0;
	use(image);
	use_symbols(image);
	return 0;
}
