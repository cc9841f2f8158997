/* SPDX-License-Identifier: MIT */
/* Any bytes as the text of sys.version. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/find/version_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = malloc(size ? size : 1); /* exact, for the sanitizer */
	struct version_text version;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (version_text_parse(text, size, &version) && (version.version_hex & 0xff) < 0xa0)
		abort();
	return 0;
}
