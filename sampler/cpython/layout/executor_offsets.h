/* SPDX-License-Identifier: MIT */
/*
 * How the executors of 3.14's JIT are found, the code objects that they were made for, and
 * where the machine code of each is: _PyExecutorObject and _PyExecutorArray of pycore_optimizer.h
 * and cpython/code.h. Fields of an executor count from the end of its ob_type. They are the same in
 * all builds of 3.14, as tests/offsets/ proves; newer ones tell debuggers of their executors.
 */
#pragma once

enum {
	EXECUTORS_AFTER_LINETABLE = 16, /* of a code object: address of its array, or NULL */
	EXECUTOR_ARRAY_NR = 0,		/* int; so many of its items are used, some are NULL */
	EXECUTOR_ARRAY_ITEMS = 8,
	EXECUTOR_NEXT_AFTER_TYPE = 56, /* all of an interpreter are on one list */
	EXECUTOR_PREVIOUS_AFTER_TYPE = 64,
	EXECUTOR_JIT_SIZE_AFTER_TYPE = 88, /* bytes */
	EXECUTOR_JIT_CODE_AFTER_TYPE = 96,
};

/* What the type of executors is called. */
#define EXECUTOR_TYPE_NAME "uop_executor"
