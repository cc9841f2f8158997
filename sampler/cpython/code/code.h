/* SPDX-License-Identifier: MIT */
/*
 * A cache of code objects by address: what a frame needs of one, and the proof that the object at
 * an address is still the same.
 *
 * CPython frees code objects and reuses their memory. Two of its counters show this: every code
 * object gets a co_version from interp->func_state.next_version (3.12+), and
 * _code_object_generation counts freed objects (3.14+). An entry is valid as long as either counter
 * has not changed since the entry was checked. Otherwise, and if there is neither counter (to
 * 3.11), the object's identity is read again in the look that met it: its version or, without one,
 * its tables, first line and the characters of its name.
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
 * Limit on a location table together with the lines decoded from it; a larger one gives no lines.
 * Seen: 67 kB of table for a 5,000-line function, and three times as much for its lines.
 */
#define LINETABLE_MAX_BYTES (16u << 20)

/*
 * Limit on the tables of all code objects. A thousand bytes are usual for a function, so this is
 * enough for 100,000 functions seen running. Code beyond the limit is refused in this tick, and all
 * entries are cleared before the next one.
 */
#define CODE_TABLES_MAX_BYTES (128u << 20)

/*
 * After this many new addresses, entries are dropped that no stack and no look has used since the
 * last drop. An entry takes 1 kB, and some programs create and free code all the time. MAX_CODES
 * limits the entries in all (500 MB of our memory); code at further addresses is refused.
 */
#define DROP_AFTER_NEW_CODES 512u
#define MAX_CODES	     (1u << 20)

/* The same for executables; most new ones come from looks that were dropped. */
#define DROP_AFTER_NEW_EXECUTABLES 128u

/*
 * Functions are kept until the end, because profiles refer to them. This limits their names and
 * paths, of which 150 bytes are usual; further functions share one name.
 */
#define FUNCTIONS_MAX_BYTES (128u << 20)

/* CPython's counters, copied together with the frames for which code_cache_get() is called. */
struct code_clock {
	remote_addr interp_addr;  /* the interpreter that owns the counters */
	uint64_t tick;		  /* our own; rises with every snapshot */
	uint64_t generation;	  /* _code_object_generation */
	uint32_t next_version;	  /* func_state.next_version; 0: exhausted */
	uint32_t tlbc_generation; /* of thread-local bytecode, if the build has it */
	bool has_generation;
	bool has_next_version;
	bool frames_are_older; /* than the look: code_cache_get_reported() */
	/* Executables first read at this tick or later are newer than the frames; 0: tick. */
	uint64_t newer_from_tick;
};

/* The texts of a code object: two str objects and a bytes object. */
enum code_text { CODE_QUALNAME, CODE_FILENAME, CODE_LINETABLE, NR_CODE_TEXTS };

/* Values that change only if another object takes the address. */
struct code_fingerprint {
	uint64_t text_addrs[NR_CODE_TEXTS];
	uint64_t bytecode; /* its bytes object; 0 if it is part of the code object */
	uint64_t ob_size;
	uint32_t first_line, framesize, version, first_traceable;
};

/* How much is kept of each text, from its length on, and of all. */
enum {
	CODE_QUALNAME_BYTES = 128,
	CODE_FILENAME_BYTES = 256,
	CODE_LINETABLE_BYTES = 256,
	CODE_TEXTS_BYTES = CODE_QUALNAME_BYTES + CODE_FILENAME_BYTES + CODE_LINETABLE_BYTES,
};

/*
 * Distinguishes objects without a version (to 3.11). An object may replace another one with every
 * pointer and number the same, if a function of that name is created anew with another file or
 * other lines. Bytes that could not be read, or are past the end of a text, are 0.
 */
struct code_texts {
	uint8_t bytes[CODE_TEXTS_BYTES];
	uint64_t bytecode_length; /* if it is a separate object */
};

/*
 * Limit on copies of a code object's bytecode, one per live thread (code_place()). Further copies
 * are not read: frames of threads that use them are not shown.
 */
enum { MAX_CODE_COPIES = 2048 };

/* Empty if all zero. */
struct code_copies {
	remote_addr *starts; /* by ascending address; owned */
	size_t nr;
	uint64_t tick;	     /* when they were last read */
	uint32_t generation; /* the interpreter's tlbc_generation at that time */
};

/* Where the instructions of a code object are. */
struct code_bytecode {
	remote_addr start_addr; /* [start, end) */
	remote_addr end_addr;
	remote_addr first_traceable_addr; /* a frame before it has not begun; 0: all have begun */
	struct code_copies copies;	  /* empty until a frame uses one */
};

/* The line table of a code object, as read and as decoded. */
struct code_lines {
	uint8_t *table; /* owned; NULL if it could not be read */
	size_t table_bytes;
	int32_t *by_unit; /* owned; of the first nr_units code units; NULL until needed */
	size_t nr_units;  /* later units have no line: the table is too short */
};

/* What the executable of a frame is (executable_get()). */
enum executable_kind {
	EXECUTABLE_UNREAD,
	EXECUTABLE_HIDDEN, /* None: the frame is not shown */
	EXECUTABLE_CODE,   /* a code object, which has an entry in codes */
	EXECUTABLE_NAMED,  /* something else, described by function */
};

struct code {
	remote_addr addr;
	const struct function *function; /* NULL: there is no code object at the address any more */
	struct code_bytecode bytecode;
	struct code_lines lines;
	uint32_t frame_size_bytes; /* of a frame on the data stack with its specials; or 0 */
	uint32_t stack_offset;	   /* where a frame's evaluation stack begins, after its locals */
	struct code_fingerprint fingerprint;
	struct code_texts texts;
	uint64_t identity; /* as last reported; 0: it was not reported */
	bool in_use;	   /* since unused entries were last dropped */
	uint32_t nr_loads; /* rises if another object is found at the address */
	bool has_gaps;	   /* a part of it is not in memory: code_cache.is_core */
	/*
	 * Not a code object (executable_get()). Only function, nr_loads, kind, checked and
	 * since_tick are set.
	 */
	bool is_not_code;
	enum executable_kind kind;
	uint64_t since_tick;	   /* every look since has found the same object */
	struct code_clock checked; /* when the entry was last known to be valid */
	size_t table_bytes;	   /* what it adds to code_cache.table_bytes */
};

/* A str or bytes object as reported, from its length on. */
struct reported_text {
	const uint8_t *bytes;
	size_t nr_bytes; /* number of bytes reported; 0: it was not in memory */
	bool is_whole;	 /* nothing follows */
};

/*
 * A code object as reported, with its texts, by the thread that ran it while the object was alive.
 */
struct reported_code {
	remote_addr addr;
	uint64_t identity;     /* distinguishes objects at the same address; not 0 */
	const uint8_t *object; /* code_head_bytes() of it */
	struct reported_text texts[NR_CODE_TEXTS];
	uint64_t bytecode_length; /* if it is a separate object */
};

/* Reports code objects, each one once. */
struct code_reporter {
	/* Report the object at that address again when it is next met. */
	void (*forget)(struct code_reporter *reporter, remote_addr code_addr);
};

/*
 * Number of executables of hidden frames that are remembered: None, and before 3.13 one per
 * interpreter. Further ones are read again in every tick.
 */
enum { MAX_HIDDEN_EXECUTABLES = 16 };

struct code_cache {
	struct remote_memory *memory;	  /* borrowed */
	const struct py_build *build;	  /* borrowed */
	struct function_table *functions; /* own_functions, unless they are shared */
	struct function_table own_functions;
	struct addr_map codes;
	struct addr_map executables; /* executables that may not be code objects */
	uint32_t nr_new_executables; /* since unused ones were last dropped */
	/* those of frames that are not shown */
	remote_addr hidden_executables[MAX_HIDDEN_EXECUTABLES];
	uint32_t nr_hidden_executables; /* number found so far; the oldest make room */
	remote_addr code_type_addr;	/* &PyCode_Type; 0 until known */
	bool next_version_unusable;	/* the counter is not where our table has it */
	/*
	 * The memory does not change and may lack pieces: a core file. "<name not in the core>" or
	 * the like replaces a missing text.
	 */
	bool is_core;
	struct code missing;		/* for frames whose code object cannot be read */
	size_t table_bytes;		/* of all entries, including lines not decoded yet */
	bool tables_full;		/* an entry was refused for lack of room */
	uint32_t nr_new;		/* entries since unused ones were last dropped */
	uint64_t nr_cleared;		/* entries that have become invalid */
	struct code_reporter *reporter; /* borrowed; NULL: code is not reported */
};

/*
 * Initialise an empty cache. memory and build are borrowed until code_cache_done(), which frees all
 * entries, and the functions to which they and samples refer, unless these are shared. It accepts
 * NULL and a zeroed cache. The cache must not be moved.
 */
void code_cache_init(struct code_cache *cache, struct remote_memory *memory,
		     const struct py_build *build);
void code_cache_done(struct code_cache *cache);

/* While the cache is empty: keep its functions in a table that others use as well; borrowed. */
void code_cache_share_functions(struct code_cache *cache, struct function_table *functions);

/*
 * Whether no code object can have appeared (or gone) between the entry's last check and clock, so
 * that the entry need not be checked again.
 */
static inline bool code_cache_is_current(const struct code_cache *cache, const struct code *code,
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
 * Between two ticks: if an entry was refused for lack of room, clear all entries and return true.
 * Cleared entries remain, as if their objects had been replaced.
 */
bool code_cache_clear_if_full(struct code_cache *cache);

/* Whether so many entries are new, in either table, that unused ones should be dropped. */
bool code_cache_should_drop(const struct code_cache *cache);

/*
 * Between two ticks: drop the entries that are not in_use, and clear in_use of the others. The
 * caller has set in_use of every entry to which it holds a pointer. Entries of code objects are
 * only dropped if DROP_AFTER_NEW_CODES are new. If memory is short, all entries stay.
 */
void code_cache_drop_unused(struct code_cache *cache);

/*
 * The entry of an address in one of the two tables. A new entry is zero except for its address, and
 * counted in *nr_new. Returns 0, -E2BIG (there are max_entries) or -ENOMEM.
 */
int code_entry_get(struct addr_map *map, uint32_t max_entries, uint32_t *nr_new, remote_addr addr,
		   struct code **ret_code);

/*
 * Get the code object at addr for a frame of the look with that clock.
 *
 * *ret_code is valid until the next call for the same addr, or until unused entries are dropped.
 * Returns 0; -EBADMSG (there is none); -EAGAIN (it changed while it was read: drop the look);
 * -E2BIG (a limit above leaves no room); -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 */
int code_cache_get(struct code_cache *cache, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);

/*
 * Store a code object as reported. Returns 0, or -EBADMSG (it is no code object, or has impossible
 * values), which is remembered. After any other error the object must be reported again: -EAGAIN (a
 * text was not in memory, and has been requested), -EFAULT (a text is longer than reported, and the
 * rest is gone), -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
int code_cache_add_reported(struct code_cache *cache, const struct reported_code *reported,
			    const struct code_clock *clock);

/*
 * The code object at addr that was reported with that identity. Returns 0; -EBADMSG (there was
 * none); -EAGAIN (it is not known, or not any more; it will be reported again).
 */
int code_cache_get_reported(struct code_cache *cache, remote_addr addr, uint64_t identity,
			    struct code **ret_code);

/*
 * The stand-in for a code object that cannot be read; valid as long as the cache. Returns NULL if
 * out of memory.
 */
struct code *code_cache_missing(struct code_cache *cache);

/*
 * The address in the code object's own bytecode that corresponds to instr_addr: instr_addr itself,
 * or the same instruction if instr_addr is in a thread's copy (free-threaded builds, 3.14 and
 * newer). The copies are read again if threads came or went, and at most once a tick for an address
 * in none of them. Returns 0; -ENOENT (it is in neither); -E2BIG (no room for the copies); -ENOMEM,
 * -ESRCH, -EPERM.
 */
int code_place(struct code_cache *cache, struct code *code, const struct code_clock *clock,
	       remote_addr instr_addr, remote_addr *ret_addr);

/*
 * The same from what code_place() has already read. Returns false, and leaves *ret_addr alone, if
 * the address is not found.
 */
bool code_known_place(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr);

/*
 * The line of the instruction at instr_addr, which is in the code (or a copy known from
 * code_place()) or just before it; 0 if it has none. Lines are decoded at the first call and kept.
 * An executable that is not a code object has the same line everywhere.
 */
int32_t code_line(const struct code_cache *cache, struct code *code, remote_addr instr_addr);

/*
 * The same with columns, decoded anew at each call. An executable that is not a code object has no
 * position.
 */
struct linetable_position code_position(const struct code_cache *cache, const struct code *code,
					remote_addr instr_addr);
