/* SPDX-License-Identifier: MIT */
/* Proof of sampler/python/value_offsets.h, for every version. Python.h was included. */
#pragma once

#include "sampler/python/value_offsets.h"

/* How far a field lies behind the end of ob_type. */
#define BEHIND_TYPE(type, field) (offsetof(type, field) - offsetof(PyObject, ob_type) - 8)

_Static_assert(BEHIND_TYPE(PyVarObject, ob_size) == SIZE_AFTER_TYPE, "ob_size");
_Static_assert(BEHIND_TYPE(PyFloatObject, ob_fval) == FLOAT_AFTER_TYPE, "float");
_Static_assert(BEHIND_TYPE(PyComplexObject, cval) == FLOAT_AFTER_TYPE &&
		       offsetof(Py_complex, imag) == 8,
	       "complex");
_Static_assert(BEHIND_TYPE(PyListObject, ob_item) == LIST_ITEMS_AFTER_TYPE, "list");
_Static_assert(BEHIND_TYPE(PyByteArrayObject, ob_start) == BYTEARRAY_START_AFTER_TYPE, "bytearray");
_Static_assert(BEHIND_TYPE(PySetObject, used) == SET_USED_AFTER_TYPE, "set");
_Static_assert(BEHIND_TYPE(PySetObject, mask) == SET_MASK_AFTER_TYPE, "set");
_Static_assert(BEHIND_TYPE(PySetObject, table) == SET_TABLE_AFTER_TYPE, "set");
_Static_assert(offsetof(setentry, key) == SET_ENTRY_KEY &&
		       offsetof(setentry, hash) == SET_ENTRY_HASH &&
		       sizeof(setentry) == SET_ENTRY_BYTES,
	       "setentry");
_Static_assert(BEHIND_TYPE(PyDictObject, ma_used) == DICT_USED_AFTER_TYPE, "dict");
_Static_assert(BEHIND_TYPE(PyCellObject, ob_ref) == CELL_REF_AFTER_TYPE, "cell");
_Static_assert(BEHIND_TYPE(PyMethodObject, im_self) == METHOD_SELF_AFTER_TYPE, "method");
_Static_assert(BEHIND_TYPE(PyBaseExceptionObject, args) == EXCEPTION_ARGS_AFTER_TYPE, "exception");
#if PY_VERSION_HEX >= 0x030b0000
#define OSERROR_ERRNO OSERROR_ERRNO_AFTER_TYPE
#else
#define OSERROR_ERRNO OSERROR_ERRNO_AFTER_TYPE_3_10
#endif
_Static_assert(BEHIND_TYPE(PyOSErrorObject, myerrno) == OSERROR_ERRNO &&
		       BEHIND_TYPE(PyOSErrorObject, strerror) == OSERROR_ERRNO + 8 &&
		       BEHIND_TYPE(PyOSErrorObject, filename) == OSERROR_ERRNO + 16,
	       "OSError");
#if PY_VERSION_HEX >= 0x030a0000
_Static_assert(BEHIND_TYPE(PyFunctionObject, func_qualname) == QUALNAME_AFTER_TYPE, "function");
#else
_Static_assert(BEHIND_TYPE(PyFunctionObject, func_qualname) == QUALNAME_AFTER_TYPE_3_9, "function");
#endif
_Static_assert(offsetof(PyTypeObject, tp_base) ==
		       offsetof(PyTypeObject, tp_flags) + TYPE_BASE_AFTER_FLAGS,
	       "tp_base");
_Static_assert(offsetof(PyTypeObject, tp_dict) ==
		       offsetof(PyTypeObject, tp_flags) + TYPE_DICT_AFTER_FLAGS,
	       "tp_dict");
_Static_assert(offsetof(PyHeapTypeObject, ht_qualname) ==
		       offsetof(PyHeapTypeObject, ht_cached_keys) -
			       TYPE_QUALNAME_BEFORE_CACHED_KEYS,
	       "ht_qualname");
_Static_assert(offsetof(PyHeapTypeObject, ht_slots) ==
		       offsetof(PyHeapTypeObject, ht_cached_keys) - TYPE_SLOTS_BEFORE_CACHED_KEYS,
	       "ht_slots");
_Static_assert(PyLong_SHIFT == 30, "the bits of a digit");

_Static_assert(offsetof(PyHeapTypeObject, ht_name) ==
		       offsetof(PyHeapTypeObject, ht_cached_keys) - TYPE_NAME_BEFORE_CACHED_KEYS,
	       "ht_name");

/* What sampler/python/value_types.c tells types by, and variables.c arguments. */
_Static_assert(Py_TPFLAGS_LONG_SUBCLASS == 1u << 24 && Py_TPFLAGS_LIST_SUBCLASS == 1u << 25 &&
		       Py_TPFLAGS_TUPLE_SUBCLASS == 1u << 26 &&
		       Py_TPFLAGS_BYTES_SUBCLASS == 1u << 27 &&
		       Py_TPFLAGS_UNICODE_SUBCLASS == 1u << 28 &&
		       Py_TPFLAGS_DICT_SUBCLASS == 1u << 29 &&
		       Py_TPFLAGS_BASE_EXC_SUBCLASS == 1u << 30 &&
		       Py_TPFLAGS_TYPE_SUBCLASS == 1u << 31 && Py_TPFLAGS_HEAPTYPE == 1u << 9,
	       "tp_flags");
_Static_assert(CO_VARARGS == 4 && CO_VARKEYWORDS == 8, "co_flags");
#if PY_VERSION_HEX >= 0x030b0000
_Static_assert(CO_FAST_LOCAL == 0x20 && CO_FAST_CELL == 0x40 && CO_FAST_FREE == 0x80,
	       "co_localspluskinds");
#endif
