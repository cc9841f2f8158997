/* SPDX-License-Identifier: MIT */
/* Run a fuzz target once over every file of the corpus folder argv[1]. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

#define INPUT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	cleanup_free uint8_t *data = malloc(INPUT_MAX);
	DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;

	if (!data || !corpus)
		return EXIT_FAILURE;
	for (struct dirent *entry; (entry = readdir(corpus));) {
		cleanup_close int fd = openat(dirfd(corpus), entry->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t size = fd < 0 ? -1 : read(fd, data, INPUT_MAX);

		if (size >= 0)
			(void)LLVMFuzzerTestOneInput(data, (size_t)size);
	}
	(void)closedir(corpus);
	return EXIT_SUCCESS;
}
