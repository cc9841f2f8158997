/* SPDX-License-Identifier: MIT */
/*
 * A CPython made by a test in fake memory: runtime, interpreter, threads, code objects and
 * frames, laid out as in a given version. Each object is a piece of its own, so that a read
 * beyond its end fails.
 *
 *	struct fake_python py;
 *
 *	fake_python_init(&py, 14);
 *	code = fake_python_code(&py, &(struct fake_code){.name = "f", .nr_units = 8});
 *	…
 *	fake_python_done(&py);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"
#include "sampler/cpython/layout/offsets.h"
#include "tests/support/fake_memory.h"

/* The minor versions with frames on data stacks. Older ones can be made, too. */
extern const uint32_t fake_stack_minors[];
#define NR_FAKE_STACK_MINORS 10

/* Base of the fake pthread_t: a thread's is this plus its id. All C stacks are below it. */
#define FAKE_THREAD_ID UINT64_C(0x7f0000000000)

/* Add this to a minor version from 13 on for its free-threaded build. */
enum { FAKE_FREE_THREADED = 100 };

/* CPython's main, which is newer than the versions that pysample knows: see docs/cpython.md. */
enum { FAKE_MAIN = NEWEST_MINOR + 1 };

/* The owner of a shim, beside the values of enum frame_owner: the same in all versions. */
enum { FAKE_SHIM_OWNER = 3 };

enum { FAKE_EXECUTING = -1, FAKE_SUSPENDED = 2 }; /* values of stacktop */

struct fake_python {
	struct fake_memory fake;
	uint32_t minor;
	struct py_build build; /* as filled in by build_load() */
	remote_addr runtime_addr;
	remote_addr interp_addr;
	remote_addr code_type_addr;
	remote_addr str_type_addr, bytes_type_addr;
	remote_addr none_addr;	/* an object that is no code object */
	remote_addr free_addr;	/* address of the next object */
	remote_addr stack_addr; /* data on the C stacks is placed downwards from here */
	uint32_t next_version;	/* func_state.next_version */
	uint64_t generation;	/* _code_object_generation */
	uint32_t tlbc_generation;
};

/* A code object. Each code unit has its own line: first_line, first_line + 1, … */
struct fake_code {
	const char *name;	  /* the path is "/NAME.py" */
	uint32_t first_line;	  /* 0 means 1 */
	uint32_t frame_words;	  /* size of a frame, specials included; 0 means 20 */
	uint32_t nr_units;	  /* 0 means 8 */
	uint32_t first_traceable; /* a unit index */
};

/* The fields of a frame that a walk reads. */
struct fake_frame {
	remote_addr executable;
	remote_addr previous;
	uint32_t unit; /* index of the instruction being executed */
	int32_t stacktop;
	uint8_t owner;
	bool is_entry;
};

/* A frame object, before 3.11. */
struct fake_frame_object {
	remote_addr code;
	remote_addr back;
	int32_t unit;	/* index of the instruction being executed; -1: not begun */
	bool suspended; /* neither it nor anything it called is running */
};

/*
 * Make an interpreter of 3.minor without threads. fake_python_done() unmaps and frees everything;
 * it accepts NULL.
 */
void fake_python_init(struct fake_python *py, uint32_t minor);
void fake_python_done(struct fake_python *py);

/* PY_VERSION_HEX of the fake for minor. */
uint32_t fake_version_hex(uint32_t minor);

/*
 * Write the _Py_DebugOffsets of minor, as in Debian's release build, into image, which has room
 * for size_bytes. Returns the table's size.
 */
size_t fake_debug_offsets(uint32_t minor, uint8_t *image, size_t size_bytes);

/* Map size_bytes at a free address and return it. */
remote_addr fake_python_alloc(struct fake_python *py, size_t size_bytes);

/* Make an ASCII str object, or a bytes object, and return its address. */
remote_addr fake_python_str(struct fake_python *py, const char *ascii);
remote_addr fake_python_bytes(struct fake_python *py, const void *bytes, size_t size_bytes);

/*
 * Make a code object with the next version. fake_python_code_at() writes it at addr, where
 * fake_python_code_bytes() must be mapped already.
 */
remote_addr fake_python_code(struct fake_python *py, const struct fake_code *code);
void fake_python_code_at(struct fake_python *py, remote_addr addr, const struct fake_code *code);

/* Make one code object refer to another one, and to no other (3.11 and later). */
void fake_python_code_names(struct fake_python *py, remote_addr addr, remote_addr named_addr);
size_t fake_python_code_bytes(const struct fake_python *py, const struct fake_code *code);

/*
 * The bytecode in which frames of the code object at addr execute: its own or, in builds with
 * thread-local bytecode, the copy that fake_python_code() made.
 */
remote_addr fake_python_bytecode(struct fake_python *py, remote_addr addr);

/*
 * Move the bytecode in which the code's frames execute to a new copy in a new array, as when
 * another thread makes a copy; anything known about the old array is stale.
 */
void fake_python_move_bytecode(struct fake_python *py, remote_addr addr,
			       const struct fake_code *code);

/* Free a code object as CPython does: the memory stays mapped and the generation rises. */
void fake_python_code_free(struct fake_python *py, remote_addr addr);

/* The code clock of a copy at tick, from the current counters. */
struct code_clock fake_python_clock(const struct fake_python *py, uint64_t tick);

/*
 * Add a thread state at the head of the list. fake_python_thread_at() writes one at addr, into
 * memory that another one had.
 */
remote_addr fake_python_thread(struct fake_python *py, uint64_t tid);
void fake_python_thread_at(struct fake_python *py, remote_addr addr, uint64_t tid,
			   remote_addr next_addr);
void fake_python_set_threads(struct fake_python *py, remote_addr head_addr);

/* Set the thread state's fields for its stack. */
void fake_python_set_stack(struct fake_python *py, remote_addr thread_addr, remote_addr chunk_addr,
			   remote_addr top_addr, remote_addr current_addr);

/* The bottom of a thread's stack: its base frame (3.15), or 0. */
remote_addr fake_python_base(const struct fake_python *py, remote_addr thread_addr);

/* A data-stack chunk on top of previous_addr (0: it is the oldest). */
remote_addr fake_python_chunk(struct fake_python *py, remote_addr previous_addr,
			      uint64_t size_bytes);

/*
 * Write a frame at addr, which must be mapped. Bytes outside the fields of frame keep their
 * value.
 */
void fake_python_frame(struct fake_python *py, remote_addr addr, const struct fake_frame *frame);
void fake_python_frame_object(struct fake_python *py, remote_addr addr,
			      const struct fake_frame_object *frame);
