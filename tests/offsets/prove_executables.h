/* SPDX-License-Identifier: MIT */
/* Proof of sampler/python/executable_offsets.h, for each version that has such frames. */
#pragma once

#include "sampler/python/executable_offsets.h"
#include "tests/offsets/prove_python.h"

/* Where a field lies behind ob_type. */
#define AFTER_TYPE(type, field) (offsetof(type, field) - offsetof(PyObject, ob_type) - 8)

_Static_assert(AFTER_TYPE(PyCFunctionObject, m_ml) == BUILTIN_ML_AFTER_TYPE, "builtin");
_Static_assert(AFTER_TYPE(PyCFunctionObject, m_self) == BUILTIN_SELF_AFTER_TYPE, "builtin");
_Static_assert(AFTER_TYPE(PyCFunctionObject, m_module) == BUILTIN_MODULE_AFTER_TYPE, "builtin");
_Static_assert(AFTER_TYPE(PyMethodDescrObject, d_common.d_type) == DESCRIPTOR_TYPE_AFTER_TYPE,
	       "method descriptor");
_Static_assert(AFTER_TYPE(PyMethodDescrObject, d_common.d_name) == DESCRIPTOR_NAME_AFTER_TYPE,
	       "method descriptor");
_Static_assert(AFTER_TYPE(PyMethodObject, im_func) == METHOD_FUNCTION_AFTER_TYPE, "method");
_Static_assert(AFTER_TYPE(PyFunctionObject, func_code) == FUNCTION_CODE_AFTER_TYPE, "function");
_Static_assert(AFTER_TYPE(PyTupleObject, ob_base.ob_size) == TUPLE_SIZE_AFTER_TYPE, "tuple");
#if PY_VERSION_HEX >= 0x030e0000
_Static_assert(AFTER_TYPE(PyTupleObject, ob_item) == TUPLE_ITEMS_AFTER_TYPE_3_14, "tuple");
#else
_Static_assert(AFTER_TYPE(PyTupleObject, ob_item) == TUPLE_ITEMS_AFTER_TYPE, "tuple");
#endif
_Static_assert(offsetof(PyMethodDef, ml_name) == METHOD_DEF_NAME, "PyMethodDef");
_Static_assert(Py_TPFLAGS_HEAPTYPE == 1u << 9 && Py_TPFLAGS_TYPE_SUBCLASS == 1u << 31, "flags");
