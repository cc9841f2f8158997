/* SPDX-License-Identifier: MIT */
/* CPython's own headers, internal ones included, of the version in the include path. */
#pragma once

#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_object.h"
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_long.h"
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include "internal/pycore_tstate.h"
#endif
#if PY_VERSION_HEX < 0x030b0000
#include <opcode.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_optimizer.h"
#endif

#if PY_VERSION_HEX < 0x030b0000
/* Copied from Objects/dict-common.h of 3.6 to 3.10, which is not installed. */
struct _dictkeysobject {
	Py_ssize_t dk_refcnt;
	Py_ssize_t dk_size;
	void *dk_lookup;
	Py_ssize_t dk_usable;
	Py_ssize_t dk_nentries;
	char dk_indices[];
};
#endif

/* 3.12 documents the offset only in a comment: _PyObject_DictOrValuesPointer(). */
#if PY_VERSION_HEX >> 16 == 0x030c
#define MANAGED_DICT_OFFSET (-3 * (int)sizeof(PyObject *))
#endif

/*
 * The table has one offset of func_state.next_version for each kind of release build.
 * Free-threaded builds of 3.14 and 3.15 had another one before CPython adopted mimalloc 2.5.
 */
#if defined(Py_DEBUG)
enum { IS_RELEASE = 0 };
#elif defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030e0000
enum { IS_RELEASE = MI_MALLOC_VERSION >= 20502 };
#else
enum { IS_RELEASE = 1 };
#endif

#ifdef Py_GIL_DISABLED
enum { FREE_THREADED = 1 };
#else
enum { FREE_THREADED = 0 };
#endif

/* PyASCIIObject.state as one word, to find the bit positions of its fields. */
union unicode_state {
	__typeof__(((PyASCIIObject *)0)->state) fields;
	uint32_t word;
};
