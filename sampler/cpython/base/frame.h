/* SPDX-License-Identifier: MIT */
/* Functions, the frames that run them, what a frame can tell, and why a stack is lost. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Room for a thread's name and a NUL. People's names for threads are shorter; a longer one
 * is cut.
 */
#define THREAD_NAME_MAX_BYTES 128

/* What runs a function's code. The numbers are those of recordings (docs/formats.md). */
enum function_kind {
	FUNCTION_PYTHON = 0,	/* the interpreter; also what stands for others in its frames */
	FUNCTION_COLLECTOR = 1, /* the garbage collector: SAMPLE_GC_NAME */
	FUNCTION_NATIVE = 2,	/* the processor, out of the module at path */
	FUNCTION_JIT = 3,	/* the processor, code made at run time */
	FUNCTION_KERNEL = 4,	/* the kernel; path is its module in brackets, or "[kernel]" */
	NR_FUNCTION_KINDS,
};

/*
 * A function that was seen running. There is one object for each distinct
 * (kind, qualname, path, first_line), valid until the sampler is destroyed, so that
 * pointers and ids can be compared.
 */
struct function {
	uint32_t id;	      /* 0, 1, 2, … in the order first seen */
	int32_t first_line;   /* of the def; 0 if not known */
	const char *qualname; /* UTF-8, control characters not escaped */
	const char *path;     /* as the interpreter has it */
	enum function_kind kind;
};

/* One frame of a stack. */
struct frame {
	const struct function *function;
	int32_t line; /* being executed; 0 if not known */
};

enum variable_kind {
	VARIABLE_ARGUMENT,
	VARIABLE_LOCAL,
	VARIABLE_FREE, /* of a function around this one */
};

/* A variable of a frame. */
struct variable {
	char *name;  /* UTF-8 without control characters, as is the value */
	char *value; /* as text: sampler/cpython/objects/value.h */
	enum variable_kind kind;
};

/*
 * What of the source of line a frame executes, of a dump's looks: CPython's co_positions(). Columns
 * are in bytes of UTF-8, the first is 0; -1: not known.
 */
struct frame_detail {
	int32_t column;
	int32_t end_line;
	int32_t end_column;   /* of the byte behind the last, in end_line */
	bool lacks_variables; /* they were asked for, and could not be read */
	/*
	 * Those that have a value, arguments first. Values are of a moment after that of the
	 * frames, in which a thread that runs has gone on.
	 */
	struct variable *variables;
	uint32_t nr_variables;
	/*
	 * Whether C code called the interpreter's loop to run this frame, and no frame of
	 * Python's did. entry_addr lies in the C frame of that loop; 0: not told (before 3.10).
	 */
	bool is_entry;
	uint64_t entry_addr;
	uint64_t addr; /* of a native frame: its next instruction, a return address mostly; or 0 */
};

/* Why a stack was not accepted; counted, never guessed around. */
enum sample_loss {
	LOSS_MOVED,	 /* its thread, or the GIL's holder, may have run during the look */
	LOSS_LOCK,	 /* the sampler had to wait for the target's memory map, or for a page */
	LOSS_LATE,	 /* the look came late, and only because the thread had gone to sleep */
	LOSS_UNFINISHED, /* it was between two stores of a call, a return or a yield */
	LOSS_CODE,	 /* no room for what one of its frames runs, or that is gone */
	LOSS_FAULT,	 /* something was not in memory when the thread was interrupted */
	LOSS_SKIPPED,  /* interrupts: there was no room, or the kernel was busy with another one */
	LOSS_TOO_DEEP, /* more frames than the named limit */
	NR_SAMPLE_LOSSES,
};
