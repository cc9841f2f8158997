/* SPDX-License-Identifier: MIT */
/* CPython's own headers, the internal ones included, of whichever version is in the path. */
#pragma once

#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>

#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_object.h"
#include "internal/pycore_runtime.h"
#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_long.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe_structs.h"
#endif

#include "tests/offsets/prove_gil.h"
#include "tests/offsets/prove_values.h"

/* PyASCIIObject.state as the word that is read, to see at which bit a field lies. */
union unicode_state {
	__typeof__(((PyASCIIObject *)0)->state) fields;
	uint32_t word;
};
