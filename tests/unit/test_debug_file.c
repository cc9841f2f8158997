/* SPDX-License-Identifier: MIT */
#include "symbols/debug_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/image_file.h"

/* Write bytes to the debug file of that build ID, below folder; its path is the result. */
static char *write_file(const char *folder, const uint8_t *build_id, size_t id_bytes,
			const char *bytes, size_t size)
{
	static const char *const folders[] = {"/usr", "/lib", "/debug", "/.build-id"};
	char *path = malloc(PATH_MAX);

	(void)snprintf(path, PATH_MAX, "%s", folder);
	for (size_t i = 0; i < 4; i++)
		cr_assert(zero(int, mkdir(strcat(path, folders[i]), 0700)));
	(void)snprintf(path + strlen(path), 8, "/%02x", build_id[0]);
	cr_assert(zero(int, mkdir(path, 0700)));
	strcat(path, "/");
	for (size_t i = 1; i < id_bytes; i++)
		(void)snprintf(path + strlen(path), 3, "%02x", build_id[i]);
	strcat(path, ".debug");
	cleanup_close int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert(eq(sz, (size_t)write(fd, bytes, size), size), "%s", path);
	return path;
}

/* Remove the file, and the folders until that. */
static void remove_file(char *path, const char *folder)
{
	while (strcmp(path, folder) != 0) {
		cr_expect(zero(int, remove(path)));
		*strrchr(path, '/') = '\0';
	}
	cr_expect(zero(int, rmdir(folder)));
	free(path);
}

Test(debug_file, by_build_id)
{
	char folder[] = "/tmp/test_debug_file-XXXXXX";
	struct sysroot sysroot = SYSROOT_OWN;
	struct image *image = open_path("/proc/self/exe");
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t id_bytes = image_build_id(image, build_id);
	struct image *found = NULL;
	size_t size;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);

	cr_assert(gt(sz, id_bytes, 1), "this compiler gives no build IDs");
	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, id_bytes, &found), -ENOENT));
	char *path = write_file(folder, build_id, id_bytes, bytes, size);

	cr_expect(zero(int, debug_file_open(&sysroot, build_id, id_bytes, &found)));
	cr_expect(ne(ptr, found, NULL));
	image_close(found);
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, 1, &found), -ENOENT));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, id_bytes - 1, &found), -ENOENT));
	cr_expect(eq(int, debug_file_open(&sysroot, build_id, SIZE_MAX, &found), -ENOENT));
	sysroot_close(&sysroot);
	image_close(image);
	remove_file(path, folder);
}

/* A file under a name that is not its own. */
Test(debug_file, other_build)
{
	char folder[] = "/tmp/test_debug_file-XXXXXX";
	struct sysroot sysroot = SYSROOT_OWN;
	static const uint8_t build_id[20] = {0x12, 0x34};
	struct image *found = NULL;
	size_t size;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	char *path = write_file(folder, build_id, sizeof(build_id), bytes, size);

	cr_expect(eq(int, debug_file_open(&sysroot, build_id, sizeof(build_id), &found), -ENOENT));
	cr_expect(eq(ptr, found, NULL));
	sysroot_close(&sysroot);
	remove_file(path, folder);
}
