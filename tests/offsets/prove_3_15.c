/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove_debug_offsets.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030f, "the headers of 3.15");
_Static_assert(FRAME_OWNED_BY_INTERPRETER == 3, "shim_owner");

void prove_tables(void)
{
	prove_layout(&debug_offsets_layouts[2]);
	prove(generator_states[1].first_awaiting, FRAME_SUSPENDED_YIELD_FROM);
	prove(generator_states[1].last_awaiting, FRAME_SUSPENDED_YIELD_FROM_LOCKED);
	prove(generator_states[1].first_finished, FRAME_CLEARED);
}
