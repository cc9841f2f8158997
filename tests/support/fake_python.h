/* SPDX-License-Identifier: MIT */
/*
 * A CPython made by a test in fake memory: runtime, interpreter, threads, code
 * objects and frames laid out as a version has them. Everything lies in a piece
 * of its own size, so that a read beyond an object fails.
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

/* The minor versions whose frames lie on data stacks; older ones can be made, too. */
extern const uint32_t fake_python_minors[];
#define NR_FAKE_PYTHONS 8

/* The pthread_t of the thread whose id is 0; each thread's is so much further. All C stacks lie below. */
#define FAKE_THREAD_ID UINT64_C(0x7f0000000000)

/* Added to a minor version of 3.13 to 3.15: its free-threaded build. */
enum { FAKE_FREE_THREADED = 100 };

/* enum _frameowner. */
enum { FAKE_OWNED_BY_THREAD = 0, FAKE_OWNED_BY_GENERATOR = 1, FAKE_SHIM = 3 };

enum { FAKE_EXECUTING = -1, FAKE_SUSPENDED = 2 }; /* stacktop */

struct fake_python {
	struct fake_memory fake;
	uint32_t minor;
	struct py_build build; /* as build_load() has it */
	remote_addr runtime_addr;
	remote_addr interp_addr;
	remote_addr code_type_addr;
	remote_addr str_type_addr, bytes_type_addr;
	remote_addr none_addr;	/* some object that is no code object */
	remote_addr free_addr;	/* the next object goes here */
	remote_addr stack_addr; /* what calls of the loop have on the C stacks goes below it */
	uint32_t next_version;	/* func_state.next_version */
	uint64_t generation;	/* _code_object_generation */
	uint32_t tlbc_generation;
};

/* A code object. Each unit has a line of its own: first_line, first_line + 1, … */
struct fake_code {
	const char *name;	  /* its path is "/NAME.py" */
	uint32_t first_line;	  /* 0: 1 */
	uint32_t frame_words;	  /* of a frame, specials included; 0: 20 */
	uint32_t nr_units;	  /* 0: 8 */
	uint32_t first_traceable; /* unit */
};

/* The words of a frame that a walk looks at. */
struct fake_frame {
	remote_addr executable;
	remote_addr previous;
	uint32_t unit; /* of the instruction that is executed */
	int32_t stacktop;
	uint8_t owner;
	bool is_entry;
};

/* A frame that is an object, before 3.11. */
struct fake_frame_object {
	remote_addr code;
	remote_addr back;
	int32_t unit;	/* of the instruction that is executed; -1: it has not begun */
	bool suspended; /* it does not run, nor does anything that it called */
};

/*
 * An interpreter of 3.minor without threads. fake_python_done() unmaps and frees
 * everything; it accepts NULL.
 */
void fake_python_init(struct fake_python *py, uint32_t minor);
void fake_python_done(struct fake_python *py);

/* PY_VERSION_HEX of the fake of minor. */
uint32_t fake_version_hex(uint32_t minor);

/*
 * The _Py_DebugOffsets image of minor, of size_bytes at most: what a release
 * build of Debian has. Returns its size.
 */
size_t fake_debug_offsets(uint32_t minor, uint8_t *image, size_t size_bytes);

/* Map size_bytes somewhere. */
remote_addr fake_python_alloc(struct fake_python *py, size_t size_bytes);

/* A str object of ASCII characters; a bytes object. Their addresses. */
remote_addr fake_python_str(struct fake_python *py, const char *ascii);
remote_addr fake_python_bytes(struct fake_python *py, const void *bytes, size_t size_bytes);

/*
 * A code object with the next version, or the same at an address where as much as
 * fake_python_code_bytes() says is mapped already.
 */
remote_addr fake_python_code(struct fake_python *py, const struct fake_code *code);
void fake_python_code_at(struct fake_python *py, remote_addr addr, const struct fake_code *code);

/* Have one code object name another one, and no other (3.11 and later). */
void fake_python_code_names(struct fake_python *py, remote_addr addr, remote_addr named_addr);
size_t fake_python_code_bytes(const struct fake_python *py, const struct fake_code *code);

/*
 * The bytecode that frames of the code object at addr stand in: its own or, where there
 * is thread-local bytecode, a copy that fake_python_code() made with it.
 */
remote_addr fake_python_bytecode(struct fake_python *py, remote_addr addr);

/*
 * Have another thread make a copy of the bytecode at the copy's old place and the code's
 * frames stand in a new one: what was known of the array is wrong.
 */
void fake_python_move_bytecode(struct fake_python *py, remote_addr addr,
			       const struct fake_code *code);

/* Free a code object as CPython does: the memory stays, the generation rises. */
void fake_python_code_free(struct fake_python *py, remote_addr addr);

/* The code clock of a copy at tick, by the counters as they are now. */
struct code_clock fake_python_clock(const struct fake_python *py, uint64_t tick);

/* A thread state, put at the head of the list; and one in memory that was another's. */
remote_addr fake_python_thread(struct fake_python *py, uint64_t tid);
void fake_python_thread_at(struct fake_python *py, remote_addr addr, uint64_t tid,
			   remote_addr next_addr);
void fake_python_set_threads(struct fake_python *py, remote_addr head_addr);

/* What the thread state says of the stack. */
void fake_python_set_stack(struct fake_python *py, remote_addr thread_addr, remote_addr chunk_addr,
			   remote_addr top_addr, remote_addr current_addr);

/* The bottom of a thread's stack: its base frame (3.15), or 0. */
remote_addr fake_python_base(const struct fake_python *py, remote_addr thread_addr);

/* A data-stack chunk above previous_addr (0: the oldest). */
remote_addr fake_python_chunk(struct fake_python *py, remote_addr previous_addr,
			      uint64_t size_bytes);

/* Write a frame at addr, where it is mapped already; what frame does not tell stays. */
void fake_python_frame(struct fake_python *py, remote_addr addr, const struct fake_frame *frame);
void fake_python_frame_object(struct fake_python *py, remote_addr addr,
			      const struct fake_frame_object *frame);
