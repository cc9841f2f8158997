/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove_debug_offsets.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030d, "the headers of 3.13");
_Static_assert(FRAME_OWNED_BY_CSTACK == 3, "shim_owner");
_Static_assert(offsetof(_PyInterpreterFrame, stacktop) ==
		       offsetof(_PyInterpreterFrame, instr_ptr) + STACKTOP_AFTER_INSTR_PTR,
	       "stacktop");

void prove_tables(void)
{
	prove_layout(&debug_offsets_layouts[0]);
}
