/* SPDX-License-Identifier: MIT */
/*
 * Where the fields of builtin objects lie that values are made of, in bytes from the end of
 * the object's ob_type. They are the same in all builds of 3.6 to 3.15, as tests/offsets/
 * proves; what is not stands in struct py_offsets and struct py_traits.
 */
#pragma once

enum {
	/* PyVarObject: how many items it has */
	SIZE_AFTER_TYPE = 0,
	/* PyFloatObject, PyComplexObject: one double, and two */
	FLOAT_AFTER_TYPE = 0,
	/* PyListObject: a pointer to the items */
	LIST_ITEMS_AFTER_TYPE = 8,
	/* PyByteArrayObject: a pointer to the first byte */
	BYTEARRAY_START_AFTER_TYPE = 24,
	/* PySetObject: how many are in it, slots - 1, a pointer to those */
	SET_USED_AFTER_TYPE = 8,
	SET_MASK_AFTER_TYPE = 16,
	SET_TABLE_AFTER_TYPE = 24,
	/* PyDictObject: how many are in it */
	DICT_USED_AFTER_TYPE = 0,
	/* PyCellObject: what is in it, or NULL */
	CELL_REF_AFTER_TYPE = 0,
	/* PyMethodObject */
	METHOD_SELF_AFTER_TYPE = 8,
	/* PyBaseExceptionObject: a tuple */
	EXCEPTION_ARGS_AFTER_TYPE = 8,
};

/* An entry of a set's table: the object, its hash. Source: Include/setobject.h. */
enum { SET_ENTRY_KEY = 0, SET_ENTRY_HASH = 8, SET_ENTRY_BYTES = 16 };

/*
 * struct _dictvalues: what tells how many values there are, in front of the first one (3.11,
 * 3.12), or from the start of the struct (3.13 and newer).
 */
enum { DICT_VALUES_NR_BEFORE = 2, DICT_VALUES_CAPACITY = 0, DICT_VALUES_SIZE = 1 };

/* PyTypeObject, PyHeapTypeObject: so far from fields whose offsets are known. */
enum {
	TYPE_BASE_AFTER_FLAGS = 88,
	TYPE_DICT_AFTER_FLAGS = 96,
	TYPE_QUALNAME_BEFORE_CACHED_KEYS = 8,
	TYPE_SLOTS_BEFORE_CACHED_KEYS = 16,
	TYPE_NAME_BEFORE_CACHED_KEYS = 24,
};
