/* SPDX-License-Identifier: MIT */
/*
 * Proof of the constants that are the same in all versions that have them and are in no table.
 * Include Python.h and the internal headers first.
 */
#pragma once

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/gil.h"

/* Offset of a field from the end of ob_type. */
#define AFTER_TYPE(type, field) (offsetof(type, field) - offsetof(PyObject, ob_type) - 8)
#define WIDTH(type, field)	sizeof(((type *)0)->field)

/* sampler/cpython/layout/object_offsets.h */
_Static_assert(AFTER_TYPE(PyVarObject, ob_size) == SIZE_AFTER_TYPE, "ob_size");
_Static_assert(AFTER_TYPE(PyFloatObject, ob_fval) == FLOAT_AFTER_TYPE, "float");
_Static_assert(AFTER_TYPE(PyComplexObject, cval) == FLOAT_AFTER_TYPE &&
		       offsetof(Py_complex, imag) == 8,
	       "complex");
_Static_assert(AFTER_TYPE(PyListObject, ob_item) == LIST_ITEMS_AFTER_TYPE, "list");
_Static_assert(AFTER_TYPE(PyByteArrayObject, ob_start) == BYTEARRAY_START_AFTER_TYPE, "bytearray");
_Static_assert(AFTER_TYPE(PySetObject, used) == SET_USED_AFTER_TYPE, "set");
_Static_assert(AFTER_TYPE(PySetObject, mask) == SET_MASK_AFTER_TYPE, "set");
_Static_assert(AFTER_TYPE(PySetObject, table) == SET_TABLE_AFTER_TYPE, "set");
_Static_assert(offsetof(setentry, key) == SET_ENTRY_KEY &&
		       offsetof(setentry, hash) == SET_ENTRY_HASH &&
		       sizeof(setentry) == SET_ENTRY_BYTES,
	       "setentry");
_Static_assert(AFTER_TYPE(PyDictObject, ma_used) == DICT_USED_AFTER_TYPE, "dict");
_Static_assert(AFTER_TYPE(PyCellObject, ob_ref) == CELL_REF_AFTER_TYPE, "cell");
_Static_assert(AFTER_TYPE(PyMethodObject, im_self) == METHOD_SELF_AFTER_TYPE, "method");
_Static_assert(AFTER_TYPE(PyBaseExceptionObject, args) == EXCEPTION_ARGS_AFTER_TYPE, "exception");
_Static_assert(AFTER_TYPE(PyOSErrorObject, strerror) == AFTER_TYPE(PyOSErrorObject, myerrno) + 8 &&
		       AFTER_TYPE(PyOSErrorObject, filename) ==
			       AFTER_TYPE(PyOSErrorObject, myerrno) + 16,
	       "OSError");
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
_Static_assert(AFTER_TYPE(PyCFunctionObject, m_ml) == BUILTIN_ML_AFTER_TYPE, "builtin");
_Static_assert(AFTER_TYPE(PyCFunctionObject, m_self) == BUILTIN_SELF_AFTER_TYPE, "builtin");
_Static_assert(offsetof(PyMethodDef, ml_name) == METHOD_DEF_NAME, "PyMethodDef");
_Static_assert(PyLong_SHIFT == 30, "the bits of a digit");

_Static_assert(offsetof(PyHeapTypeObject, ht_name) ==
		       offsetof(PyHeapTypeObject, ht_cached_keys) - TYPE_NAME_BEFORE_CACHED_KEYS,
	       "ht_name");

/*
 * The flags by which sampler/cpython/objects/object.c recognizes types and variables.c arguments.
 */
_Static_assert(Py_TPFLAGS_LONG_SUBCLASS == 1u << 24 && Py_TPFLAGS_LIST_SUBCLASS == 1u << 25 &&
		       Py_TPFLAGS_TUPLE_SUBCLASS == 1u << 26 &&
		       Py_TPFLAGS_BYTES_SUBCLASS == 1u << 27 &&
		       Py_TPFLAGS_UNICODE_SUBCLASS == 1u << 28 &&
		       Py_TPFLAGS_DICT_SUBCLASS == 1u << 29 &&
		       Py_TPFLAGS_BASE_EXC_SUBCLASS == 1u << 30 &&
		       Py_TPFLAGS_TYPE_SUBCLASS == 1u << 31 && Py_TPFLAGS_HEAPTYPE == 1u << 9,
	       "tp_flags");
_Static_assert(CO_VARARGS == 4 && CO_VARKEYWORDS == 8, "co_flags");

#if MINOR >= 7
/*
 * The fields that sampler/gil.h reads as one piece: the GIL's switch counter, and whether the GIL
 * is enabled.
 */
_Static_assert(offsetof(struct _gil_runtime_state, switch_number) ==
			       offsetof(struct _gil_runtime_state, last_holder) +
				       GIL_SWITCHES_OFFSET &&
		       WIDTH(struct _gil_runtime_state, switch_number) == 8,
	       "what counts the GIL's switches");
#ifdef Py_GIL_DISABLED
_Static_assert(offsetof(struct _gil_runtime_state, enabled) + GIL_ENABLED_BEFORE_HOLDER ==
			       offsetof(struct _gil_runtime_state, last_holder) &&
		       WIDTH(struct _gil_runtime_state, enabled) == 4,
	       "whether the GIL is enabled");
#endif
_Static_assert(offsetof(struct _gil_runtime_state, locked) ==
			       offsetof(struct _gil_runtime_state, last_holder) + 8 &&
		       WIDTH(struct _gil_runtime_state, locked) == 4,
	       "whether the GIL is held");
_Static_assert(WIDTH(struct _gc_runtime_state, collecting) == 4, "collecting is an int");
#endif

#if MINOR < 11
/* sampler/cpython/layout/object_offsets.h */
_Static_assert(offsetof(PyFrameObject, f_valuestack) ==
		       offsetof(PyFrameObject, f_code) + FRAME_VALUESTACK_AFTER_CODE,
	       "f_valuestack");
_Static_assert(offsetof(PyFrameObject, f_iblock) ==
			       offsetof(PyFrameObject, f_lasti) + FRAME_IBLOCK_AFTER_LASTI &&
		       WIDTH(PyFrameObject, f_iblock) == 4,
	       "f_iblock");
_Static_assert(sizeof(PyTryBlock) == BLOCK_BYTES && offsetof(PyTryBlock, b_level) == BLOCK_LEVEL &&
		       WIDTH(PyTryBlock, b_level) == 4,
	       "PyTryBlock");
_Static_assert(offsetof(PyFrameObject, f_localsplus) ==
		       offsetof(PyFrameObject, f_blockstack) + FRAME_MAX_BLOCKS * BLOCK_BYTES,
	       "f_blockstack");
#endif

#if MINOR >= 11
/* sampler/cpython/layout/object_offsets.h */
_Static_assert(offsetof(PyCodeObject, co_exceptiontable) ==
		       offsetof(PyCodeObject, co_flags) - CODE_EXCEPTIONTABLE_BEFORE_FLAGS,
	       "co_exceptiontable");
_Static_assert(AFTER_TYPE(PyCFunctionObject, m_module) == BUILTIN_MODULE_AFTER_TYPE, "builtin");
_Static_assert(AFTER_TYPE(PyMethodDescrObject, d_common.d_type) == DESCRIPTOR_TYPE_AFTER_TYPE,
	       "method descriptor");
_Static_assert(AFTER_TYPE(PyMethodDescrObject, d_common.d_name) == DESCRIPTOR_NAME_AFTER_TYPE,
	       "method descriptor");
_Static_assert(AFTER_TYPE(PyMethodObject, im_func) == METHOD_FUNCTION_AFTER_TYPE, "method");
_Static_assert(AFTER_TYPE(PyFunctionObject, func_code) == FUNCTION_CODE_AFTER_TYPE, "function");
_Static_assert(AFTER_TYPE(PyTupleObject, ob_base.ob_size) == TUPLE_SIZE_AFTER_TYPE, "tuple");
_Static_assert(FRAME_OWNED_BY_THREAD == 0 && FRAME_OWNED_BY_GENERATOR == 1, "owners");
_Static_assert(CO_FAST_LOCAL == 0x20 && CO_FAST_CELL == 0x40 && CO_FAST_FREE == 0x80,
	       "co_localspluskinds");
#endif
#if MINOR >= 11 && MINOR < 14
_Static_assert(WIDTH(_PyInterpreterFrame, stacktop) == 4, "stacktop is an int");
#endif

#if MINOR >= 13
/* sampler/cpython/find/build.c */
_Static_assert(offsetof(struct _Py_DebugOffsets, version) == 8 &&
		       offsetof(struct _Py_DebugOffsets, free_threaded) == 16,
	       "fields before the offsets");
_Static_assert(sizeof(_Py_Debug_Cookie) == 9, "the cookie has eight bytes");
_Static_assert(offsetof(PyObject, ob_type) == (FREE_THREADED ? 24 : 8), "ob_type");

/* sampler/cpython/layout/object_offsets.h: the order of a split table */
_Static_assert(offsetof(struct _dictvalues, capacity) == DICT_VALUES_CAPACITY &&
		       offsetof(struct _dictvalues, size) == DICT_VALUES_SIZE &&
		       SHARED_KEYS_MAX_SIZE == 30,
	       "the order of a split table");

/* The pointer into dtoa's pool, by which build_check.h finds where a build has the counter. */
_Static_assert(offsetof(PyInterpreterState, dtoa.preallocated_next) ==
		       offsetof(PyInterpreterState, func_state.next_version) / 8 * 8 - 8,
	       "the pointer before func_state");
_Static_assert(offsetof(PyInterpreterState, dtoa.preallocated_next) -
			       offsetof(PyInterpreterState, dtoa.preallocated) ==
		       2304,
	       "dtoa's pool");
#endif

#if MINOR >= 14 && defined(Py_GIL_DISABLED)
_Static_assert(offsetof(PyCodeObject, co_tlbc) == offsetof(PyCodeObject, co_code_adaptive) - 8,
	       "co_tlbc");
_Static_assert(offsetof(_PyCodeArray, size) == CODE_ARRAY_SIZE &&
		       offsetof(_PyCodeArray, entries) == CODE_ARRAY_ENTRIES,
	       "an array of copies");
_Static_assert(WIDTH(PyInterpreterState, tlbc_indices.tlbc_generation) == 4, "tlbc_generation");
#endif

#if MINOR == 14
/* sampler/cpython/layout/object_offsets.h */
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
#endif
