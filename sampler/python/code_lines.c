/* SPDX-License-Identifier: MIT */
/* Where in the source the instructions of a code object are from. */
#include <stdlib.h>

#include "sampler/python/code.h"
#include "sampler/python/code_place.h"

/* The line of the instruction at instr_addr, from the table alone. */
static int32_t find_line(const struct code_cache *cache, const struct code *code,
			 remote_addr instr_addr)
{
	if (!code->linetable)
		return 0;
	return linetable_find(cache->build->traits.linetable_format, code->linetable,
			      code->linetable_bytes, code->function->first_line,
			      (int32_t)(instr_addr - code->code_start_addr));
}

int32_t code_line(const struct code_cache *cache, struct code *code, remote_addr instr_addr)
{
	size_t unit;

	if (code->foreign)
		return code->function->first_line;
	if (!code_known_place(code, instr_addr, &instr_addr))
		return 0;
	unit = (instr_addr - code->code_start_addr) / 2;
	if (instr_addr < code->code_start_addr)
		return find_line(cache, code, instr_addr);
	if (unit >= code->nr_lines)
		return 0;
	if (!code->lines) {
		code->lines = malloc(code->nr_lines * sizeof(*code->lines));
		if (!code->lines)
			return find_line(cache, code, instr_addr);
		linetable_lines(cache->build->traits.linetable_format, code->linetable,
				code->linetable_bytes, code->function->first_line, code->lines,
				code->nr_lines);
	}
	return code->lines[unit];
}

struct linetable_position code_position(const struct code_cache *cache, const struct code *code,
					remote_addr instr_addr)
{
	const struct linetable_position unknown = {.column = -1, .end_line = -1, .end_column = -1};

	if (code->foreign || !code->linetable || !code_known_place(code, instr_addr, &instr_addr))
		return unknown;
	return linetable_position(cache->build->traits.linetable_format, code->linetable,
				  code->linetable_bytes, code->function->first_line,
				  (int32_t)(instr_addr - code->code_start_addr));
}
