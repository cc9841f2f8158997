/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove_debug_offsets.h"

#include <opcode_ids.h>

_Static_assert(PY_VERSION_HEX >> 16 == 0x030e, "the headers of 3.14");
_Static_assert(FRAME_OWNED_BY_INTERPRETER == 3, "shim_owner");

void prove_tables(void)
{
	static const struct return_opcodes returns = {
		.value = RETURN_VALUE,
		.instrumented_value = INSTRUMENTED_RETURN_VALUE,
	};

	prove_layout(&debug_offsets_layouts[1]);
	prove_returns(&return_opcodes[1], &returns);
	prove(generator_states[0].first_awaiting, FRAME_SUSPENDED_YIELD_FROM);
	prove(generator_states[0].last_awaiting, FRAME_SUSPENDED_YIELD_FROM);
	prove(generator_states[0].first_finished, FRAME_COMPLETED);
}
