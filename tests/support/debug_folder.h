/* SPDX-License-Identifier: MIT */
/* A folder with one debug file in it, laid out as distributions do. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/* Write bytes as the debug file of build_id below folder. Returns the file's path. */
static inline char *debug_folder_add(const char *folder, const uint8_t *build_id, size_t id_bytes,
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

/* Remove the file and its parent folders up to folder. */
static inline void debug_folder_remove(char *path, const char *folder)
{
	while (strcmp(path, folder) != 0) {
		cr_expect(zero(int, remove(path)));
		*strrchr(path, '/') = '\0';
	}
	cr_expect(zero(int, rmdir(folder)));
	free(path);
}
