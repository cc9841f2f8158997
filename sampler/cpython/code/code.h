/* SPDX-License-Identifier: MIT */
/*
 * Code objects: what a frame needs of one, cached by address, and the proof that
 * the object at that address is still the one that it was.
 *
 * CPython frees code objects and uses their memory again. Two of its own counters tell: every code
 * object gets a co_version from interp->func_state.next_version (3.12+), and
 * _code_object_generation counts those that were freed (3.14+). While either stands still since an
 * entry was checked, the entry holds. Else, and where there is neither (to 3.11), the object's
 * identity is read again within the look that met it: its version or, without one, its tables, first
 * line and the characters of its name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/addr_map.h"
#include "sampler/cpython/base/function_table.h"
#include "sampler/cpython/code/linetable.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * A location table that with the lines decoded from it takes more gives no lines. Seen:
 * 67 kB of table for a 5,000-line function, and three times as much of lines.
 */
#define LINETABLE_MAX_BYTES (16u << 20)

/*
 * What the tables of all code objects together may take. A thousand bytes are usual for
 * a function, so that is 100,000 functions that were seen running. Code that comes on
 * top is not taken in this tick, and before the next one all is forgotten.
 */
#define CODE_TABLES_MAX_BYTES (128u << 20)

/*
 * Whenever so many addresses have been looked at for the first time, those that no stack and no look
 * has asked for since the last time are dropped: 1 kB each, of programs that make and drop code all
 * the time. So many addresses there may be at all (500 MB of ours): code at others is not taken.
 */
#define CODES_OF_A_TURN 512u
#define MAX_CODES	(1u << 20)

/* So many new executables, most of them of looks that did not hold, are looked through at once. */
#define EXECUTABLES_OF_A_TURN 128u

/*
 * Functions stay until the end: profiles name them. Names and paths may take so much, 150
 * bytes are usual for a function; new ones beyond share one name.
 */
#define FUNCTIONS_MAX_BYTES (128u << 20)

/* CPython's counters, copied together with the frames that code_cache_get() is asked about. */
struct code_clock {
	remote_addr interp_addr;  /* whose counters they are */
	uint64_t tick;		  /* ours: rises with every snapshot */
	uint64_t generation;	  /* _code_object_generation */
	uint32_t next_version;	  /* func_state.next_version; 0: exhausted */
	uint32_t tlbc_generation; /* of thread-local bytecode, where there is any */
	bool has_generation;
	bool has_next_version;
	bool is_past; /* the frames are of an earlier moment than the look: code_cache_get_told() */
	uint64_t past_tick; /* what was read from that one on they did not know; 0: tick */
};

/* What a code object names: two str objects, and a bytes object. */
enum code_text { CODE_QUALNAME, CODE_FILENAME, CODE_LINETABLE, NR_CODE_TEXTS };

/* What can only change when the object at the address is another one. */
struct code_fingerprint {
	uint64_t text_addrs[NR_CODE_TEXTS];
	uint64_t bytecode; /* the object of it; 0 where it is part of this one */
	uint64_t ob_size;
	uint32_t first_line, framesize, version, first_traceable;
};

/* Room for the first characters or bytes of all of them, each from its length on. */
enum { CODE_TEXTS_BYTES = 128 + 256 + 256 };

/*
 * What tells objects apart that have no version (to 3.11): one may take another one's place with
 * every pointer and number the same, when a function of that name is made anew, of another file or
 * with other lines. All zero behind what could be read, and behind the end of each.
 */
struct code_texts {
	uint8_t bytes[CODE_TEXTS_BYTES];
	uint64_t bytecode_length; /* where that is an object of its own */
};

/*
 * Copies of a code object's bytecode, one for each thread that is alive (code_place()). Beyond so
 * many they are not looked at: frames of threads that have no copy within are not shown.
 */
enum { MAX_CODE_COPIES = 2048 };

/* All zero it is empty. */
struct code_copies {
	remote_addr *starts; /* by rising address; owned */
	size_t nr;
	uint64_t tick;	     /* when they were read last */
	uint32_t generation; /* of the interpreter's tlbc_generation, at that time */
};

/* What an executable of a frame is (executable_get()). */
enum executable_kind {
	EXECUTABLE_UNREAD,
	EXECUTABLE_NOTHING, /* None: the frame is not shown */
	EXECUTABLE_CODE,    /* a code object, which has an entry of its own */
	EXECUTABLE_NAMED,   /* what the function says */
};

struct code {
	remote_addr addr;
	const struct function *function; /* NULL: the address no longer holds a code object */
	remote_addr code_start_addr;	 /* the bytecode, [start, end) */
	remote_addr code_end_addr;
	remote_addr first_traceable_addr; /* a frame before it has not begun; 0: none has not */
	uint32_t frame_size_bytes; /* of a frame on the data stack, specials included; or 0 */
	uint32_t stack_offset;	   /* where a frame's own stack begins, behind its locals */
	struct code_fingerprint fingerprint;
	struct code_texts texts;
	uint64_t identity; /* as it was told last; 0: it was not */
	bool in_use;	   /* since unused ones were dropped last */
	uint32_t nr_loads; /* rises when another object is found at the address */
	bool has_gaps;	   /* something that it names is not in the memory: code_cache.is_still */
	bool foreign; /* no code object (executable_get()): of the rest only function, nr_loads, kind,
			 checked and since_tick are set */
	enum executable_kind kind;
	uint64_t since_tick;	   /* from that one on every look has found the same there */
	struct code_clock checked; /* when the entry was last known to hold */
	struct code_copies copies; /* of its bytecode; empty until a frame stands in one */
	uint8_t *linetable;	   /* owned; NULL if it could not be read */
	size_t linetable_bytes;
	int32_t *lines;	    /* owned; of the first nr_lines code units; NULL until asked for */
	size_t nr_lines;    /* the others have none: the table is too short */
	size_t table_bytes; /* what the tables count for in the cache's */
};

/* A str or bytes object from its length on. */
struct told_text {
	const uint8_t *bytes;
	size_t nr_bytes; /* so many were told; 0: it was not in memory */
	bool is_whole;	 /* there are no more */
};

/* A code object that the thread that ran it has met, alive, with what it names. */
struct told_code {
	remote_addr addr;
	uint64_t identity;     /* tells it from those that lie there before and after it; not 0 */
	const uint8_t *object; /* code_head_bytes() of it */
	struct told_text texts[NR_CODE_TEXTS];
	uint64_t bytecode_length; /* where that is an object of its own */
};

/* Who tells of code, of each object once. */
struct code_teller {
	/* Have the object at that address told again when it is met. */
	void (*forget)(struct code_teller *teller, remote_addr code_addr);
};

/* So many executables of frames that are not shown are known at once: None, and before 3.13 one
   of each interpreter. The others are looked at again in every tick. */
enum { MAX_NOTHINGS = 16 };

struct code_cache {
	struct remote_memory *memory;	 /* borrowed */
	const struct py_build *build;	 /* borrowed */
	struct function_table functions; /* live until code_cache_done() */
	struct addr_map codes;
	struct addr_map executables;	    /* what need not be a code object */
	uint32_t nr_new_executables;	    /* of those, since unused ones were dropped last */
	remote_addr nothings[MAX_NOTHINGS]; /* executables of frames that are not shown */
	uint32_t nr_nothings;		    /* so many were found; the first make room */
	remote_addr code_type_addr;	    /* &PyCode_Type, once it is known */
	bool next_version_unusable;	    /* the counter is not where our table says */
	/*
	 * The memory does not change, and may lack pieces: that of a core file. What an object
	 * names and is not there has "<name not in the core>" or the like in its place.
	 */
	bool is_still;
	struct code missing;	    /* what frames of no readable code object run; foreign */
	size_t table_bytes;	    /* of all entries, lines not decoded yet included */
	bool tables_full;	    /* something was refused for that */
	uint32_t nr_new;	    /* entries since unused ones were dropped last */
	uint64_t nr_cleared;	    /* entries that stopped to say what they said */
	struct code_teller *teller; /* borrowed; NULL: nobody tells */
};

/*
 * A cache without entries; memory and build are borrowed until code_cache_done(), which
 * frees all entries, and the functions that they and samples name. It accepts NULL and
 * one that is all zero.
 */
void code_cache_init(struct code_cache *cache, struct remote_memory *memory,
		     const struct py_build *build);
void code_cache_done(struct code_cache *cache);

/*
 * Whether no code object can have come (or gone) at clock since the entry was
 * checked, so that it needs no second look.
 */
static inline bool code_cache_holds(const struct code_cache *cache, const struct code *code,
				    const struct code_clock *clock)
{
	const struct code_clock *checked = &code->checked;

	if (checked->interp_addr != clock->interp_addr)
		return false;
	if (checked->tick == clock->tick ||
	    (clock->has_generation && checked->generation == clock->generation))
		return true;
	return !cache->next_version_unusable && clock->has_next_version && clock->next_version &&
	       checked->next_version == clock->next_version;
}

/*
 * Between two ticks: forget what the entries say if there was no room for another one's
 * tables. The entries stay, like those of objects that were replaced. Whether any was forgotten.
 */
bool code_cache_relieve(struct code_cache *cache);

/* Whether so many entries of either kind are new that those not in use are to be dropped. */
bool code_cache_is_due(const struct code_cache *cache);

/*
 * Between two ticks: drop the entries that are not in_use, which whoever still has a
 * pointer to one has set before, and begin anew with the others; of code objects only if many
 * of these are new. Out of memory all stay.
 */
void code_cache_drop_unused(struct code_cache *cache);

/*
 * The entry of an address in one of the two tables; a new one is zero but for its address, and counted.
 * 0, -E2BIG (there are max_entries) or -ENOMEM.
 */
int code_entry_get(struct addr_map *map, uint32_t max_entries, uint32_t *nr_new, remote_addr addr,
		   struct code **ret_code);

/*
 * The code object at addr for a frame of the look whose clock that is.
 *
 * 0; -EBADMSG (there is none), -EAGAIN (it changed while it was read: the look does not hold),
 * -E2BIG (a limit above leaves no room for it), -EFAULT, -ENOMEM, -ESRCH,
 * -EPERM.
 * *ret_code is valid until the next call for the same addr, or until unused ones are dropped.
 */
int code_cache_get(struct code_cache *cache, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);

/*
 * Take a code object as it was told. 0; -EBADMSG (it is none, or has what no code object has), which
 * is known then. After any other error it has to be told again: -EAGAIN (something was not in memory, and
 * is by now), -EFAULT (it goes on behind what was told, and that is gone), -E2BIG, -ENOMEM, -ESRCH,
 * -EPERM.
 */
int code_cache_tell(struct code_cache *cache, const struct told_code *told,
		    const struct code_clock *clock);

/*
 * The code object at addr that was told with that identity. 0; -EBADMSG (there was none); -EAGAIN: it
 * is not known, or not any more, and is to be told again.
 */
int code_cache_get_told(struct code_cache *cache, remote_addr addr, uint64_t identity,
			struct code **ret_code);

/*
 * What stands for the code object of a frame that has none to be read; valid as long as the
 * cache. NULL if out of memory.
 */
struct code *code_cache_missing(struct code_cache *cache);

/*
 * The address in the code object's own bytecode that instr_addr stands for: itself, or
 * where the same instruction is if it lies in a thread's copy (free-threaded builds, 3.14
 * and newer). 0; -ENOENT (it lies in neither), -E2BIG (no room for so many copies),
 * -ENOMEM, -ESRCH, -EPERM. The copies are read again when threads came or went, and at
 * most once a tick for an address that lies in none.
 */
int code_place(struct code_cache *cache, struct code *code, const struct code_clock *clock,
	       remote_addr instr_addr, remote_addr *ret_addr);

/*
 * The same by what code_place() has read. False if the address lies nowhere by that: then
 * *ret_addr stays.
 */
bool code_known_place(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr);

/*
 * The line of the instruction at instr_addr, which is inside the code (or a copy of it that
 * code_place() found) or just before it;
 * 0 if it has none. The lines of code are decoded when it is first asked, and kept. What is
 * no code object has one line for all.
 */
int32_t code_line(const struct code_cache *cache, struct code *code, remote_addr instr_addr);

/*
 * The same with its columns, decoded anew at each call: for those who look once. What is no code
 * object has no position.
 */
struct linetable_position code_position(const struct code_cache *cache, const struct code *code,
					remote_addr instr_addr);

/*
 * What frames run that CPython has not made itself: extensions link frames from the C stack
 * or the heap whose executable is a code object, another of CPython's kinds of executables
 * (PyUnstable_EXECUTABLE_KIND_* of Include/cpython/pyframe.h), a tuple (name, file name, line), or
 * any other object. Of what is no code object only what people call it is told.
 *
 * An object is of a kind if its type has that name and is a static one: no Python code can
 * make such a type. The table PyUnstable_ExecutableKinds of 3.13 and newer says no more, and
 * is not there in 3.12: it has the addresses of four of these types (for builtins that of
 * `method`, not of `builtin_function_or_method`).
 *
 * No counter tells when such objects come and go, so each is described anew in every look that meets
 * it. A look has read ahead what the last one read (sampler/look_memory.h), so this costs no
 * system call. Programs without such frames pay for the first look at None, which all shims run,
 * alone.
 */

/* A longer C string is cut after so many bytes and ends in "…". */
enum { EXECUTABLE_NAME_MAX_BYTES = 256 };

/*
 * So many addresses may have held an executable, about 1 kB of ours each. What is new beyond is not
 * taken (LOSS_CODE).
 */
#define MAX_EXECUTABLES (1u << 14)

/* Whether a frame with that executable is known to be not shown: NULL, None, 3.12's trampoline. */
static inline bool executable_is_nothing(const struct code_cache *codes, remote_addr addr)
{
	if (!addr)
		return true;
	for (uint32_t i = 0; i < codes->nr_nothings && i < MAX_NOTHINGS; i++)
		if (codes->nothings[i] == addr)
			return true;
	return false;
}

/*
 * The executable at addr for a frame of the look whose clock that is: a code object, or an entry
 * that is `foreign` and has a function and nothing else; NULL if its frames are not shown. A tuple
 * that is not (str, str, int) is called by its type, as is everything unknown: "<tuple>",
 * "<mod.Type>".
 *
 * 0; -EBADMSG or -EFAULT (there is no object), -EAGAIN (the frame is of an earlier moment, when
 * another object may have been there), -E2BIG (no room), -ENOMEM, -ESRCH, -EPERM. *ret_code is valid
 * as that of code_cache_get() is.
 */
int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);
