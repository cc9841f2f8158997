/* SPDX-License-Identifier: MIT */
/* Where the words of a GIL lie that gil.h reads behind last_holder, 3.7 and newer. */
#pragma once

#include "sampler/gil.h"

_Static_assert(offsetof(struct _gil_runtime_state, switch_number) ==
			       offsetof(struct _gil_runtime_state, last_holder) +
				       GIL_SWITCHES_OFFSET &&
		       sizeof(((struct _gil_runtime_state *)0)->switch_number) == 8,
	       "what counts the GIL's switches");
#ifdef Py_GIL_DISABLED
_Static_assert(offsetof(struct _gil_runtime_state, enabled) + GIL_ENABLED_BEFORE_HOLDER ==
			       offsetof(struct _gil_runtime_state, last_holder) &&
		       sizeof(((struct _gil_runtime_state *)0)->enabled) == 4,
	       "what tells whether there is a GIL");
#endif
