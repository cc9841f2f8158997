/* SPDX-License-Identifier: MIT */
/* ELF files for tests of their readers. A test fails if it cannot get one. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "symbols/elf/image.h"

/* The C library: its file and the load bias that the loader gave it. */
struct library {
	char path[PATH_MAX];
	uint64_t load_bias;
	uint64_t symbol_addr; /* of getppid */
};

/* Find the C library by one of its functions. */
static inline struct library find_library(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "getppid");
	struct library library = {.symbol_addr = (uintptr_t)symbol};
	Dl_info info;

	cr_assert(ne(ptr, symbol, NULL));
	cr_assert(ne(int, dladdr(symbol, &info), 0));
	cr_assert(ne(ptr, realpath(info.dli_fname, library.path), NULL));
	library.load_bias = (uintptr_t)info.dli_fbase; /* its first segment has vaddr 0 */
	return library;
}

/* Read a whole file; free() the result. */
static inline char *read_file(const char *path, size_t *ret_size)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	cr_assert(ge(int, fd, 0), "%s", path);
	cr_assert(zero(int, fstat(fd, &st)));
	*ret_size = (size_t)st.st_size;
	char *bytes = malloc(*ret_size);

	cr_assert(eq(sz, (size_t)read(fd, bytes, *ret_size), *ret_size));
	return bytes;
}

/* A descriptor of a file in memory with these bytes. */
static inline int memory_file(const char *bytes, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	cr_assert(ge(int, fd, 0));
	cr_assert(eq(sz, (size_t)write(fd, bytes, size), size));
	return fd;
}

/* The image of an ELF file with these bytes, or at path; image_close() it. */
static inline struct image *open_bytes(const char *bytes, size_t size)
{
	struct image *image = NULL;

	cr_assert(zero(int, image_open_fd(memory_file(bytes, size), &image)));
	return image;
}

static inline struct image *open_path(const char *path)
{
	struct image *image = NULL;

	cr_assert(zero(int, image_open_fd(open(path, O_RDONLY | O_CLOEXEC), &image)), "%s", path);
	return image;
}
