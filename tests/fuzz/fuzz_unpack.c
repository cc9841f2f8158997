/* SPDX-License-Identifier: MIT */
/* Any bytes as a packed core. Whatever they unpack to is read as a core. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/core.h"
#include "procmem/core/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz_unpack", MFD_CLOEXEC);
	struct unpacked unpacked;
	struct core *core;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET)) {
		cleanup_close_fn(&fd);
		return 0;
	}
	if (unpack(fd, &unpacked, NULL))
		return 0;
	if (core_open(unpacked.fd, &core, NULL) == 0)
		core_close(core);
	return 0;
}
