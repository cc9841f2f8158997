/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove_debug_offsets.h"

#include <opcode_ids.h>

_Static_assert(PY_VERSION_HEX >> 16 == 0x030d, "the headers of 3.13");
_Static_assert(FRAME_OWNED_BY_CSTACK == 3, "shim_owner");
_Static_assert(offsetof(_PyInterpreterFrame, stacktop) ==
		       offsetof(_PyInterpreterFrame, instr_ptr) + STACKTOP_AFTER_INSTR_PTR,
	       "stacktop");

void prove_tables(void)
{
	static const struct return_opcodes returns = {
		.value = RETURN_VALUE,
		.instrumented_value = INSTRUMENTED_RETURN_VALUE,
		.constant = RETURN_CONST,
		.instrumented_constant = INSTRUMENTED_RETURN_CONST,
	};

	prove_layout(&debug_offsets_layouts[0]);
	prove_returns(&return_opcodes[0], &returns);
}
