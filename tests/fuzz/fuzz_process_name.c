/* SPDX-License-Identifier: MIT */
/* Any arguments for process_name_format(). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/tree/process_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[PROCESS_NAME_MAX_BYTES];

	memset(name, 'x', sizeof(name));
	process_name_format((const char *)data, size, name);
	if (!memchr(name, '\0', sizeof(name)))
		abort();
	return 0;
}
