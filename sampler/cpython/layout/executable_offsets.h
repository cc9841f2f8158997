/* SPDX-License-Identifier: MIT */
/*
 * Where the fields of objects lie that a frame may run in place of a code object, in bytes
 * from the end of the object's ob_type. They are the same in all builds of 3.11 to 3.15, as
 * tests/offsets/ proves.
 */
#pragma once

enum {
	/* PyCFunctionObject, cpython/methodobject.h */
	BUILTIN_ML_AFTER_TYPE = 0,
	BUILTIN_SELF_AFTER_TYPE = 8,
	BUILTIN_MODULE_AFTER_TYPE = 16,
	/* PyDescrObject, cpython/descrobject.h */
	DESCRIPTOR_TYPE_AFTER_TYPE = 0,
	DESCRIPTOR_NAME_AFTER_TYPE = 8,
	/* PyMethodObject, cpython/classobject.h */
	METHOD_FUNCTION_AFTER_TYPE = 0,
	/* PyFunctionObject, cpython/funcobject.h */
	FUNCTION_CODE_AFTER_TYPE = 32,
	/* PyTupleObject, cpython/tupleobject.h */
	TUPLE_SIZE_AFTER_TYPE = 0,
};

/* PyMethodDef, methodobject.h: ml_name, from its start. */
enum { METHOD_DEF_NAME = 0 };

/* _PyCodeArray, cpython/code.h (3.14+): the copies of thread-local bytecode, from its start. */
enum { CODE_ARRAY_SIZE = 0, CODE_ARRAY_ENTRIES = 8 };
