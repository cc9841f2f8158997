/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove_debug_offsets.h"

#include "sampler/python/executor_offsets.h"

#include <pycore_optimizer.h>

_Static_assert(PY_VERSION_HEX >> 16 == 0x030e, "the headers of 3.14");
_Static_assert(FRAME_OWNED_BY_INTERPRETER == 3, "shim_owner");
_Static_assert(offsetof(PyCodeObject, co_executors) ==
		       offsetof(PyCodeObject, co_linetable) + EXECUTORS_AFTER_LINETABLE,
	       "co_executors");
_Static_assert(offsetof(_PyExecutorArray, size) == EXECUTOR_ARRAY_NR &&
		       offsetof(_PyExecutorArray, executors) == EXECUTOR_ARRAY_ITEMS,
	       "the executors of a code object");
_Static_assert(AFTER_TYPE(_PyExecutorObject, vm_data.links.next) == EXECUTOR_NEXT_AFTER_TYPE &&
		       AFTER_TYPE(_PyExecutorObject, vm_data.links.previous) ==
			       EXECUTOR_PREVIOUS_AFTER_TYPE,
	       "the list of executors");
_Static_assert(AFTER_TYPE(_PyExecutorObject, jit_size) == EXECUTOR_JIT_SIZE_AFTER_TYPE &&
		       AFTER_TYPE(_PyExecutorObject, jit_code) == EXECUTOR_JIT_CODE_AFTER_TYPE,
	       "an executor's code");

void prove_tables(void)
{
	prove_layout(&debug_offsets_layouts[1]);
	prove(generator_states[0].first_awaiting, FRAME_SUSPENDED_YIELD_FROM);
	prove(generator_states[0].last_awaiting, FRAME_SUSPENDED_YIELD_FROM);
	prove(generator_states[0].first_finished, FRAME_COMPLETED);
}
