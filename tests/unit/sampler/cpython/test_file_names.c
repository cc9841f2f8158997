/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/file_names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "symbols/elf/live_images.h"
#include "tests/support/own_process.h"

/* Names to look up in this program. interp_head is local, as in CPython. */
extern int _PyRuntime[3];
extern unsigned long Py_Version;
int _PyRuntime[3];
unsigned long Py_Version = 0x030b02f0;
static int interp_head[2];

struct self {
	struct process process;
	struct live_images images;
	struct maps maps;
};

static void self_init(struct self *self)
{
	self->process = own_process_open();
	live_images_init(&self->images, &self->process);
	cr_assert(zero(int, maps_read(&self->process, &self->maps)));
	interp_head[0]++;
}

static void self_done(struct self *self)
{
	maps_done(&self->maps);
	process_close(&self->process);
}

static const struct mapping *mapping_of(const struct self *self, const void *pointer)
{
	const struct mapping *mapping = maps_find(&self->maps, (uintptr_t)pointer);

	cr_assert(mapping != NULL);
	return mapping;
}

static void here(void)
{
}

Test(file_names, finds_names_of_this_program)
{
	struct file_names_cache cache = {0};
	struct file_names names;
	uint64_t load_bias = 0;
	struct self self;

	self_init(&self);
	for (int i = 0; i < 2; i++) {
		cr_assert(zero(int, file_names_find(&cache, &self.images.source,
						    mapping_of(&self, here), &names, &load_bias)));
		cr_expect(eq(str, (char *)names.found_by, (char *)"symbol"));
		cr_expect(eq(u64, names.runtime_vaddr + load_bias, (uintptr_t)_PyRuntime));
		cr_expect(eq(u64, names.version_vaddr + load_bias, (uintptr_t)&Py_Version));
		cr_expect(eq(u64, names.interp_head_vaddr + load_bias, (uintptr_t)interp_head));
	}
	file_names_cache_done(&cache);
	self_done(&self);
}

/*
 * A file is read once, however often it is mapped: a program with the names, and a library
 * without.
 */
Test(file_names, each_file_is_read_once)
{
	const void *const places[] = {here, strchr};
	struct self self;

	self_init(&self);
	for (size_t i = 0; i < 2; i++) {
		struct file_names_cache cache = {0};
		uint64_t nr_bytes = 0;

		for (int k = 0; k < 200; k++) {
			struct mapping mapping = *mapping_of(&self, places[i]);
			struct file_names names;
			uint64_t load_bias;

			cr_expect(zero(int, file_names_find(&cache, &self.images.source, &mapping,
							    &names, &load_bias)));
			cr_expect(eq(int, names.runtime_vaddr != 0, i == 0));
			if (k == 0)
				nr_bytes = cache.nr_bytes;
		}
		cr_expect(eq(sz, cache.nr_files, 1));
		cr_expect(lt(u64, 1000, nr_bytes));
		cr_expect(eq(u64, cache.nr_bytes, nr_bytes));
		file_names_cache_done(&cache);
	}
	self_done(&self);
}

static bool is_out_of_memory;

void *__wrap_calloc(size_t nr, size_t size);
void *__real_calloc(size_t nr, size_t size);

/* The linker redirects all calls of calloc() here (tests/meson.build). */
void *__wrap_calloc(size_t nr, size_t size)
{
	return is_out_of_memory ? NULL : __real_calloc(nr, size);
}

/* A lack of memory is no limit on files, and it may pass. */
Test(file_names, memory_shortage_is_not_remembered)
{
	struct file_names_cache cache = {0};
	struct file_names names;
	uint64_t load_bias;
	struct self self;

	self_init(&self);
	is_out_of_memory = true;
	cr_expect(eq(int,
		     file_names_find(&cache, &self.images.source, mapping_of(&self, here), &names,
				     &load_bias),
		     -ENOMEM));
	is_out_of_memory = false;
	cr_expect(zero(int, file_names_find(&cache, &self.images.source, mapping_of(&self, here),
					    &names, &load_bias)));
	file_names_cache_done(&cache);
	self_done(&self);
}

Test(file_names, number_of_files_is_limited)
{
	enum { NR_OTHERS = FILE_NAMES_MAX_FILES + 10 };
	static struct mapping others[NR_OTHERS];
	struct file_names_cache cache = {.nr_bytes = FILE_NAMES_MAX_BYTES - 100};
	struct file_names names;
	uint64_t load_bias;
	struct self self;

	self_init(&self);
	for (int i = 0; i < 2; i++)
		cr_expect(eq(int,
			     file_names_find(&cache, &self.images.source, mapping_of(&self, here),
					     &names, &load_bias),
			     -E2BIG));
	for (uint64_t i = 0; i < NR_OTHERS; i++) {
		others[i] = *mapping_of(&self, here);
		others[i].inode += 1 + i;
		cr_expect(lt(int,
			     file_names_find(&cache, &self.images.source, &others[i], &names,
					     &load_bias),
			     0));
	}
	cr_expect(eq(sz, cache.nr_files, FILE_NAMES_MAX_FILES));
	file_names_cache_done(&cache);
	self_done(&self);
}
