/* SPDX-License-Identifier: MIT */
/*
 * Where the copies of a code object's bytecode lie. In free-threaded builds since 3.14
 * each thread but the first to run it has one for itself, and a frame's instr_ptr lies in
 * that. A copy is as long as the bytecode behind the code object and has the same
 * instructions at the same places (specialised on their own), so an address in it stands
 * for one in the code object, and tables are about that.
 *
 * Source: CPython 3.14 and 3.15 Include/cpython/code.h (_PyCodeArray), Objects/codeobject.c
 * (create_tlbc_lock_held).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

/*
 * Entries beyond are not looked at: one is used by each thread that is alive. Frames of
 * threads that have no copy within are not shown.
 */
enum { MAX_CODE_COPIES = 2048 };

/* All zero it is empty. */
struct code_copies {
	remote_addr *starts; /* by rising address; owned */
	size_t nr;
	uint64_t tick;	     /* when they were read last */
	uint32_t generation; /* of the interpreter's tlbc_generation, at that time */
};

/*
 * Read where the copies of the code object at code_addr lie. Those that were known are
 * forgotten, also where it fails: 0; -EBADMSG (there is no array that could be),
 * -EFAULT, -ENOMEM, -ESRCH, -EPERM. code_copies_done() frees them; it is empty then.
 */
int code_copies_read(struct code_copies *copies, struct remote_memory *memory,
		     const struct py_build *build, remote_addr code_addr);
void code_copies_done(struct code_copies *copies);

/*
 * How far into the copy that it lies in an address is, if copies have size_bytes each;
 * *ret_offset then, and true.
 */
bool code_copies_find(const struct code_copies *copies, uint64_t size_bytes, remote_addr addr,
		      uint64_t *ret_offset);
