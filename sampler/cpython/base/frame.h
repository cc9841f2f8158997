/* SPDX-License-Identifier: MIT */
/*
 * Functions, frames and what is known about them, and the reasons why a stack is lost. Data only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Size of a thread's name with its NUL. Names that people choose are shorter; longer ones are
 * truncated.
 */
#define THREAD_NAME_MAX_BYTES 128

/* What runs a function's code. Recordings store these numbers (docs/formats.md). */
enum function_kind {
	FUNCTION_PYTHON = 0,	/* the interpreter; also stand-ins in its frames */
	FUNCTION_COLLECTOR = 1, /* the garbage collector: SAMPLE_GC_NAME */
	FUNCTION_NATIVE = 2,	/* the CPU, from the module at path */
	FUNCTION_JIT = 3,	/* the CPU, code made at run time */
	FUNCTION_KERNEL = 4,	/* the kernel; path is its module in brackets, or "[kernel]" */
	FUNCTION_TASK = 5,	/* an asyncio task, above the frames of its coroutines */
	NR_FUNCTION_KINDS,
};

/*
 * A function that was seen running. There is one object for each distinct (kind, qualname, path,
 * first_line). It is valid until the sampler is destroyed, so pointers and ids can be compared.
 */
struct function {
	uint32_t id;	      /* 0, 1, 2, … in the order of first appearance */
	int32_t first_line;   /* of the def; 0 if unknown */
	const char *qualname; /* UTF-8; control characters are not escaped */
	const char *path;     /* as the interpreter stores it */
	enum function_kind kind;
};

/* One frame of a stack. */
struct frame {
	const struct function *function;
	int32_t line; /* being executed; 0 if unknown */
};

enum variable_kind {
	VARIABLE_ARGUMENT,
	VARIABLE_LOCAL,
	VARIABLE_FREE, /* of an enclosing function */
};

/* A variable of a frame. */
struct variable {
	char *name;  /* UTF-8 without control characters, like value */
	char *value; /* as text: sampler/cpython/objects/value.h */
	enum variable_kind kind;
};

/*
 * Details of a frame that only a dump reads. The source range is the one of CPython's
 * co_positions(), beginning in the frame's line. Columns are byte offsets in UTF-8, from 0; -1 if
 * unknown.
 */
struct frame_detail {
	int32_t column;
	int32_t end_line;
	int32_t end_column;   /* one past the last byte, in end_line */
	bool lacks_variables; /* they were requested but could not be read */
	/*
	 * The variables that have a value, arguments first. Values are read after the frames, so a
	 * running thread may have gone on in between.
	 */
	struct variable *variables;
	uint32_t nr_variables;
	/*
	 * True if C code, and not a Python frame, called the interpreter's loop to run this frame.
	 * entry_addr is an address in the C frame of that loop; 0 if unknown (before 3.10).
	 */
	bool is_entry;
	uint64_t entry_addr;
	uint64_t addr; /* of a native frame: next instruction, usually a return address; or 0 */
};

/* Why a stack was dropped. Dropped stacks are counted; nothing is guessed in their place. */
enum sample_loss {
	LOSS_MOVED,	 /* the thread, or the holder of its GIL, may have run during the look */
	LOSS_LOCK,	 /* the sampler had to wait for the target's memory map, or for a page */
	LOSS_LATE,	 /* the look began too late and found the thread asleep */
	LOSS_UNFINISHED, /* the instant is between two stores of a call, a return or a yield */
	LOSS_CODE,	 /* no room for what a frame runs, or it is gone */
	LOSS_FAULT,	 /* something was not in memory when the thread was interrupted */
	LOSS_SKIPPED,	 /* interrupts: no room, or the kernel was busy with another one */
	LOSS_TOO_DEEP,	 /* more frames than MAX_FRAMES */
	NR_SAMPLE_LOSSES,
};
