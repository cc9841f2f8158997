/* SPDX-License-Identifier: MIT */
#include "symbols/elf/debug_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/debug_folder.h"
#include "tests/support/image_file.h"

Test(debug_file, is_found_by_build_id)
{
	char folder[] = "/tmp/test_debug_file-XXXXXX";
	struct sysroot sysroot = SYSROOT_OWN;
	struct image *image = open_path("/proc/self/exe");
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t id_bytes = image_build_id(image, build_id);
	struct image *found = NULL;
	size_t size;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);

	cr_assert(lt(sz, 1, id_bytes), "this compiler gives no build IDs");
	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, id_bytes, &found), -ENOENT));
	char *path = debug_folder_add(folder, build_id, id_bytes, bytes, size);

	cr_expect(zero(int, debug_file_open(&sysroot, build_id, id_bytes, &found)));
	cr_expect(ne(ptr, found, NULL));
	image_close(found);
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, 1, &found), -ENOENT));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, id_bytes - 1, &found), -ENOENT));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, SIZE_MAX, &found), -ENOENT));
	sysroot_close(&sysroot);
	image_close(image);
	debug_folder_remove(path, folder);
}

/* A file under the name of another build ID. */
Test(debug_file, refuses_another_build)
{
	char folder[] = "/tmp/test_debug_file-XXXXXX";
	struct sysroot sysroot = SYSROOT_OWN;
	static const uint8_t build_id[20] = {0x12, 0x34};
	struct image *found = NULL;
	size_t size;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	char *path = debug_folder_add(folder, build_id, sizeof(build_id), bytes, size);

	cr_expect(eq(int, debug_file_open(&sysroot, build_id, sizeof(build_id), &found), -ENOENT));
	cr_expect(eq(ptr, found, NULL));
	sysroot_close(&sysroot);
	debug_folder_remove(path, folder);
}
