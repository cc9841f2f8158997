/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_body.h"

#include <stdlib.h>

void jit_body_done(struct jit_body *body)
{
	if (!body)
		return;
	free(body->code);
	free(body->lines);
	free(body->lines_bytes);
	free(body->unwind);
	*body = (struct jit_body){0};
}

bool jit_unwind_is_of(const struct cfi_section *section, const struct jit_code *code)
{
	const uint64_t max_bytes = (code->nr_bytes + 7) & ~UINT64_C(7);
	struct cfi_function function = {.common.code_alignment = 0};
	uint64_t offset = 0;

	while (!cfi_next_function(section, offset, &function.common, &function, &offset))
		if (function.start_vaddr == code->start_addr)
			return function.nr_bytes <= max_bytes;
	return false;
}
