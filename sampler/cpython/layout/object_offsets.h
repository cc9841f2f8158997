/* SPDX-License-Identifier: MIT */
/*
 * Offsets of fields of builtin objects that are the same in all builds of the versions that have
 * them, as tests/offsets/ proves. Offsets that differ are in struct py_offsets and struct
 * py_traits.
 */
#pragma once

/* The parts of values, in bytes from the end of the object's ob_type. */
enum {
	/* PyVarObject: number of items */
	SIZE_AFTER_TYPE = 0,
	/* PyFloatObject: one double; PyComplexObject: two */
	FLOAT_AFTER_TYPE = 0,
	/* PyListObject: pointer to the items */
	LIST_ITEMS_AFTER_TYPE = 8,
	/* PyByteArrayObject: pointer to the first byte */
	BYTEARRAY_START_AFTER_TYPE = 24,
	/* PySetObject: number of elements, number of slots - 1, pointer to the slots */
	SET_USED_AFTER_TYPE = 8,
	SET_MASK_AFTER_TYPE = 16,
	SET_TABLE_AFTER_TYPE = 24,
	/* PyDictObject: number of entries in use */
	DICT_USED_AFTER_TYPE = 0,
	/* PyCellObject: the object in it, or NULL */
	CELL_REF_AFTER_TYPE = 0,
	/* PyMethodObject */
	METHOD_SELF_AFTER_TYPE = 8,
	/* PyBaseExceptionObject: a tuple */
	EXCEPTION_ARGS_AFTER_TYPE = 8,
};

/* An entry of a set's table: the object and its hash. Source: Include/setobject.h. */
enum { SET_ENTRY_KEY = 0, SET_ENTRY_HASH = 8, SET_ENTRY_BYTES = 16 };

/*
 * struct _dictvalues: the number of values, as a distance before the first value (3.11, 3.12), or
 * from the start of the struct (3.13 and newer).
 */
enum { DICT_VALUES_NR_BEFORE = 2, DICT_VALUES_CAPACITY = 0, DICT_VALUES_SIZE = 1 };

/* PyCodeObject (3.11 and newer): distance of co_exceptiontable in front of co_flags. */
enum { CODE_EXCEPTIONTABLE_BEFORE_FLAGS = 8 };

/*
 * PyFrameObject before 3.11: f_valuestack after the start of f_code, f_iblock after the start of
 * f_lasti; f_blockstack ends where f_localsplus begins. PyTryBlock: its size, and b_level.
 */
enum {
	FRAME_VALUESTACK_AFTER_CODE = 32,
	FRAME_IBLOCK_AFTER_LASTI = 8,
	FRAME_MAX_BLOCKS = 20,
	BLOCK_BYTES = 12,
	BLOCK_LEVEL = 8,
};

/*
 * Locks, in bytes from the end of the object's ob_type. Their structs are in no header: Modules/
 * _threadmodule.c (lockobject, rlockobject), Modules/_multiprocessing/semaphore.c (SemLockObject).
 */
enum {
	/* a PyThread_type_lock, which is a sem_t *; or a PyMutex (Lock 3.13, RLock 3.14) */
	LOCK_WORD_AFTER_TYPE = 0,
	/* ident of the thread that holds an RLock, or 0 */
	RLOCK_OWNER_AFTER_TYPE = 8,
	/* sem_t *; ident of the last thread that acquired it; int: how often that holds it; int: the
	 * largest value */
	SEMLOCK_HANDLE_AFTER_TYPE = 0,
	SEMLOCK_LAST_AFTER_TYPE = 8,
	SEMLOCK_COUNT_AFTER_TYPE = 16,
	SEMLOCK_MAXVALUE_AFTER_TYPE = 20,
	SEMLOCK_BYTES_AFTER_TYPE = 28,
};

/*
 * struct wait_entry of Python/parking_lot.c (3.13 and newer), on the stack of a thread that waits
 * for a PyMutex: the address of that, in front of the semaphore whose futex it waits in.
 */
enum { PARKED_ADDR_BEFORE_FUTEX = 8 };

/* PyTypeObject, PyHeapTypeObject: distances from fields whose offsets are known. */
enum {
	TYPE_BASE_AFTER_FLAGS = 88,
	TYPE_DICT_AFTER_FLAGS = 96,
	TYPE_QUALNAME_BEFORE_CACHED_KEYS = 8,
	TYPE_SLOTS_BEFORE_CACHED_KEYS = 16,
	TYPE_NAME_BEFORE_CACHED_KEYS = 24,
};

/*
 * Objects that a frame may run instead of a code object (3.11 and newer), in bytes from the end of
 * the object's ob_type.
 */
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

/* PyMethodDef, methodobject.h: ml_name, from the start of the struct. */
enum { METHOD_DEF_NAME = 0 };

/*
 * _PyCodeArray, cpython/code.h (3.14+): the copies of thread-local bytecode, from the start of the
 * struct.
 */
enum { CODE_ARRAY_SIZE = 0, CODE_ARRAY_ENTRIES = 8 };

/*
 * The executors of 3.14's JIT, the code objects that they were made for, and their machine code:
 * _PyExecutorObject and _PyExecutorArray of pycore_optimizer.h and cpython/code.h. Fields of an
 * executor count from the end of its ob_type. Newer versions announce their executors to debuggers.
 */
enum {
	EXECUTORS_AFTER_LINETABLE = 16, /* in a code object: address of its array, or NULL */
	EXECUTOR_ARRAY_NR = 0,		/* int; number of items in use, of which some are NULL */
	EXECUTOR_ARRAY_ITEMS = 8,
	EXECUTOR_NEXT_AFTER_TYPE = 56, /* one list links all executors of an interpreter */
	EXECUTOR_PREVIOUS_AFTER_TYPE = 64,
	EXECUTOR_JIT_SIZE_AFTER_TYPE = 88, /* bytes */
	EXECUTOR_JIT_CODE_AFTER_TYPE = 96,
};

/* The name of the executors' type. */
#define EXECUTOR_TYPE_NAME "uop_executor"

/* Bits of tp_flags. Source: CPython Include/object.h. */
#define TYPE_INLINE_VALUES (1ull << 2) /* 3.13+: instances hold their values inline */
#define TYPE_MANAGED_DICT  (1ull << 4) /* 3.11+: instances hold their dict in front of themselves */
#define TYPE_HEAP	   (1ull << 9) /* created at run time, by a class statement or extension */
#define TYPE_READY	   (1ull << 12)

/* The builtin type that it is or derives from: at most one of these. */
#define TYPE_IS_INT	  (1ull << 24)
#define TYPE_IS_LIST	  (1ull << 25)
#define TYPE_IS_TUPLE	  (1ull << 26)
#define TYPE_IS_BYTES	  (1ull << 27)
#define TYPE_IS_STR	  (1ull << 28)
#define TYPE_IS_DICT	  (1ull << 29)
#define TYPE_IS_EXCEPTION (1ull << 30)
#define TYPE_IS_TYPE	  (1ull << 31) /* its instances are types */
