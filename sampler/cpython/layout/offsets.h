/* SPDX-License-Identifier: MIT */
/*
 * The layout of the structs of one CPython build. It is loaded once per target, checked once, and
 * constant afterwards; nothing else in pysample depends on a version.
 *
 * CPython 3.13 and newer carry the numbers themselves (_Py_DebugOffsets at the start of _PyRuntime:
 * sampler/cpython/find/build.h). What those lack is in debug_offsets.def, all numbers of older
 * versions are in offsets.def, and what is not an offset is in traits.def. Each table has a row per
 * field and a column per version. The tests prove each number against CPython's own headers
 * (tests/offsets/).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "procmem/message.h"
#include "sampler/cpython/code/linetable.h"

/* The versions that build_load() accepts, for messages. */
#define SUPPORTED_VERSIONS "3.6 to 3.15"

/* The same as minor versions, and the first one that carries its own offsets. */
enum { OLDEST_MINOR = 6, FIRST_MINOR_WITH_DEBUG_OFFSETS = 13, NEWEST_MINOR = 15 };

/* No struct of CPython is larger: the runtime of 3.15 has 350 kB. */
#define STRUCT_MAX_BYTES (4u << 20)

/* The version does not have the field. Not 0, which is a valid offset. */
#define OFFSET_ABSENT UINT32_MAX

/*
 * Buffers for one struct each. A target is refused if the fields used do not fit. Measured: the
 * used part of a thread state ends at 280 (3.15), code objects have 144 to 216 bytes, frames 80 to
 * 88, and of frame objects 133 bytes are read (3.6).
 */
#define THREAD_STATE_MAX_BYTES 1024
#define CODE_MAX_BYTES	       512
#define FRAME_MAX_BYTES	       136
#define EXC_ITEM_MAX_BYTES     32 /* 32 (3.7), 16 (3.11) */
#define DICT_KEYS_MAX_BYTES    64 /* in front of the hash table: 40 (3.10), 32 (3.11+) */

/*
 * Offsets of the fields in each struct; OFFSET_ABSENT if the version has no such field. Every
 * member is a uint32_t, because the struct is also read as an array of them (NR_OFFSETS). Each has
 * a row in offsets.def.
 */
struct py_offsets {
	struct {
		uint32_t size;
		uint32_t finalizing; /* thread state that finalizes the interpreter, or NULL */
		uint32_t interpreters_head;
		uint32_t gil_locked; /* in the runtime before 3.12 */
		uint32_t gil_last_holder;
		uint32_t gc; /* the collector's struct; in the runtime before 3.9 (3.7, 3.8) */
	} runtime;
	struct {
		uint32_t size;
		uint32_t id;
		uint32_t next;
		uint32_t threads_head;
		uint32_t modules; /* sys.modules */
		uint32_t gil_locked;
		uint32_t gil_last_holder;
		uint32_t code_object_generation; /* u64, counts freed code objects */
		uint32_t next_code_version;	 /* u32, above every existing co_version */
		uint32_t gc;			 /* the collector's struct (3.9+) */
	} interpreter;
	struct {
		uint32_t collecting; /* int; 1 during a collection */
		uint32_t frame;	     /* the frame that began it, else NULL (3.15) */
	} gc;
	struct {
		uint32_t size;
		uint32_t next;
		uint32_t interp;
		uint32_t current_frame;
		uint32_t cframe; /* address of the innermost _PyCFrame (3.10 to 3.12) */
		uint32_t base_frame;
		uint32_t thread_id; /* pthread_t; threading calls it ident */
		uint32_t native_thread_id;
		uint32_t unique_id; /* u64, never reused; only for 3.7 to 3.10, which need it */
		uint32_t datastack_chunk;
		uint32_t datastack_top;
		uint32_t last_profiled_frame;	  /* see sampler/frame_cache.h (3.15) */
		uint32_t last_profiled_frame_seq; /* u64, counts the pops of that frame */
		uint32_t gil_requested;		  /* int; 1 while it waits for the GIL (3.15) */
		uint32_t raised;       /* the exception being raised; its type before 3.12 */
		uint32_t exc_info;     /* address of the innermost exception item (3.7+) */
		uint32_t exc_state;    /* the outermost exception item, in the thread state */
		uint32_t dict;	       /* for extensions: asyncio's running loop (to 3.12) */
		uint32_t running_loop; /* asyncio's, after the public part of the state (3.13) */
	} thread;
	struct {
		uint32_t value;	   /* exception being handled, NULL or None; its type before 3.11 */
		uint32_t previous; /* the next outer item (3.7+) */
	} exc_item;
	struct {
		uint32_t current_frame; /* of the loop that owns the _PyCFrame (3.11, 3.12) */
		uint32_t previous;	/* address of the _PyCFrame of the next outer loop */
	} cframe; /* _PyCFrame: one in the C frame of each call of the interpreter's loop */
	struct {
		uint32_t size;
		uint32_t executable; /* before 3.11: f_code */
		uint32_t previous;   /* before 3.11: f_back */
		uint32_t instr_ptr;  /* 3.11, 3.12: prev_instr */
		uint32_t lasti;	     /* int; index of the current instruction (before 3.11) */
		uint32_t state;	     /* char; f_executing; f_state in 3.10 (before 3.11) */
		uint32_t stacktop;   /* int; -1 while the frame executes (3.11–3.13) */
		uint32_t is_entry;   /* bool; called from C (3.11) */
		/* end of its evaluation stack, while it calls (3.14+) or is suspended (to 3.9) */
		uint32_t stackpointer;
		uint32_t stackdepth; /* int; words on that stack, while it is suspended (3.10) */
		uint32_t owner;	     /* char, enum _frameowner */
		uint32_t localsplus;
		uint32_t heap_locals; /* f_localsplus of a frame object (before 3.11) */
	} frame;
	struct {
		uint32_t iframe;      /* the frame inside a generator, coroutine, … object */
		uint32_t frame;	      /* gi_frame, or NULL if it has finished (before 3.11) */
		uint32_t frame_state; /* char, see struct generator_states (3.11+) */
	} generator;
	struct {
		uint32_t previous;
		uint32_t size;
		uint32_t top; /* words used; valid if there is a newer chunk */
		uint32_t data;
	} chunk;
	struct {
		uint32_t size;
		uint32_t ob_size; /* code units in co_code_adaptive */
		uint32_t filename;
		uint32_t qualname;  /* before 3.11: co_name */
		uint32_t linetable; /* before 3.10: co_lnotab */
		uint32_t firstlineno;
		uint32_t framesize; /* words; absent before 3.12 */
		uint32_t nlocalsplus;
		uint32_t stacksize;
		uint32_t version;	 /* u32, unique to the object; 0 when the numbers ran out */
		uint32_t firsttraceable; /* int, code units */
		uint32_t argcount;	 /* int; arguments that may be given by position */
		uint32_t names; /* tuple of str: co_localsplusnames; co_varnames before 3.11 */
		uint32_t kinds; /* bytes, one per name: co_localspluskinds (3.11+) */
		uint32_t code_adaptive;
		uint32_t bytecode;	 /* co_code, a bytes object (before 3.11) */
		uint32_t kwonlyargcount; /* int; keyword-only arguments, which follow those */
		uint32_t flags;		 /* int; CO_VARARGS, CO_VARKEYWORDS */
		uint32_t cellvars;	 /* tuples; these variables follow names (before 3.11) */
		uint32_t freevars;
	} code;
	struct {
		uint32_t ob_type;
		uint32_t tp_name;
	} object;
	struct {
		uint32_t flags;
		uint32_t basicsize;
		uint32_t dictoffset;
		uint32_t cached_keys; /* of a heap type: keys shared by its instances */
	} type;
	struct {
		/* Distance in bytes in front of the object; see enum attribute_rule. */
		uint32_t dict_before;
		uint32_t values_before;
	} instance;
	struct {
		uint32_t keys;
		uint32_t values;
	} dict;
	struct {
		uint32_t size; /* Py_ssize_t, number of slots in the hash table (before 3.11) */
		uint32_t log2_size;
		uint32_t log2_index_bytes;
		uint32_t kind;
		uint32_t nr_entries;
		uint32_t indices; /* the hash table; the entries follow it */
	} dict_keys;
	struct {
		uint32_t valid; /* u8, of values inside an object (3.13+) */
		uint32_t values;
	} dict_values;
	struct {
		uint32_t size;	     /* number of digits, above size_shift other bits */
		uint32_t size_shift; /* number of those bits */
		uint32_t digits;     /* u32 each, holding 30 bits */
	} integer;
	struct {
		uint32_t length;
		uint32_t state;
		uint32_t state_kind_shift; /* of the 3-bit kind; compact and ascii follow */
		uint32_t ascii_data;
		uint32_t compact_data;
		uint32_t data; /* data.any of a non-compact str */
	} unicode;
	struct {
		uint32_t ob_size;
		uint32_t ob_sval;
	} bytes;
};

/* The struct as an array: its length, and the index of a member. */
#define NR_OFFSETS (sizeof(struct py_offsets) / sizeof(uint32_t))
/* NOLINTNEXTLINE(bugprone-macro-parentheses): the arguments are names of members */
#define OFFSET_INDEX(of, field) (offsetof(struct py_offsets, of.field) / sizeof(uint32_t))

/* A field of a struct that was read, or 0 if the version does not have it. */
static inline uint64_t optional_u64(const void *buffer, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u64(buffer, offset);
}

static inline uint32_t optional_u32(const void *buffer, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u32(buffer, offset);
}

/* The values of CPython's enum _frameowner that are the same in all versions. */
enum frame_owner { OWNED_BY_THREAD = 0, OWNED_BY_GENERATOR = 1 };

/* How many bytes of a frame are copied: those before its locals, or up to the last field used. */
static inline uint32_t frame_head_bytes(const struct py_offsets *offsets)
{
	return offsets->frame.lasti == OFFSET_ABSENT
		       ? offsets->frame.localsplus
		       : offsets->frame.state + (uint32_t)sizeof(char);
}

/* Where a thread state leads to its innermost frame, at once or through a _PyCFrame. */
static inline uint32_t thread_current_offset(const struct py_offsets *offsets)
{
	return offsets->thread.cframe != OFFSET_ABSENT ? offsets->thread.cframe
						       : offsets->thread.current_frame;
}

/* How many bytes of a thread state are copied, from its start. */
static inline uint32_t thread_head_bytes(const struct py_offsets *offsets)
{
	uint32_t last = offsets->thread.datastack_top;

	if (last == OFFSET_ABSENT)
		last = offsets->thread.unique_id;
	if (last == OFFSET_ABSENT)
		last = offsets->thread.thread_id;
	if (offsets->thread.exc_state != OFFSET_ABSENT && offsets->thread.exc_state > last)
		last = offsets->thread.exc_state;
	return last + (uint32_t)sizeof(uint64_t);
}

/* How many bytes of a code object are read, from its start. */
static inline uint32_t code_head_bytes(const struct py_offsets *offsets)
{
	return offsets->code.code_adaptive == OFFSET_ABSENT ? offsets->code.size
							    : offsets->code.code_adaptive;
}

/* How to tell the innermost live frame of a data stack from popped ones. */
enum leaf_rule {
	LEAF_BY_EXECUTABLE, /* the executable of a popped frame is NULL (3.14+) */
	LEAF_BY_STACKTOP,   /* by stacktop; popped frames keep their contents (3.11 to 3.13) */
};

/*
 * Thread-local bytecode of free-threaded builds, 3.14 and newer: each thread has its own copy of a
 * code object's instructions, and instr_ptr of its frames points into it. All 0 if the build has
 * none. Source: _PyCodeArray of Include/cpython/code.h.
 */
struct py_tlbc {
	uint32_t code_array; /* in a code object: address of the array of copies */
	uint32_t generation; /* in an interpreter: u32, changes when copies are assigned anew */
};

/* Where an instance keeps its attributes if its type has no dict at tp_dictoffset. */
enum attribute_rule {
	ATTRIBUTES_IN_DICT,	   /* there is no other place (3.10 and older) */
	ATTRIBUTES_BY_TWO_WORDS,   /* two pointers in front of it: values, dict (3.11) */
	ATTRIBUTES_BY_TAGGED_WORD, /* one word in front of it: a dict, or values + 1 (3.12) */
	ATTRIBUTES_INLINE,	   /* a dict in front of it, else values after it (3.13+) */
};

/*
 * The values of the frame state of a generator or coroutine. While it awaits, the awaited object is
 * on its own evaluation stack, awaited_words words below the top (0: not read in this version).
 * Up to 3.12 the states do not tell awaiting from yielding; the instruction after the current one
 * does: it is YIELD_FROM (to 3.10), or a RESUME with one of the higher arguments (3.11, 3.12).
 * Source: enum _framestate of pycore_frame.h, and _PyGen_yf() of Objects/genobject.c.
 */
struct generator_states {
	int8_t first_awaiting, last_awaiting;
	int8_t first_finished; /* from this value on there is no frame any more */
	uint8_t awaited_words;
	uint8_t awaiting_opcode; /* YIELD_FROM, or 0 */
	uint8_t awaiting_oparg;	 /* the lowest such argument, or 0 */
};

/* Differences between versions that are not offsets. Each member has a row in traits.def. */
struct py_traits {
	enum leaf_rule leaf_rule;
	enum attribute_rule attribute_rule;
	enum linetable_format linetable_format;
	bool handled_none;	    /* an item that handles nothing may hold None (to 3.12) */
	bool has_unnamed_executors; /* its JIT does not announce code to debuggers (3.14) */
	bool frames_on_heap;	    /* frames are objects (before 3.11), not on data stacks */
	bool swaps_states;	    /* other interpreters' code runs on swapped states (to 3.12) */
	bool raised_has_type;	    /* thread.raised is the type; the exception follows (to 3.11) */
	uint8_t lasti_unit_bytes;   /* of lasti, in frame objects */
	uint8_t executing;	    /* state of a frame object that runs or calls */
	uint8_t shim_owner;	    /* a frame with this owner or a higher one is a shim */
	uint8_t tuple_items_after_type;	  /* bytes between a tuple's ob_type and its items */
	uint8_t qualname_after_type;	  /* bytes between a function's ob_type and func_qualname */
	uint8_t closure_after_type;	  /* bytes between a function's ob_type and func_closure */
	uint8_t oserror_errno_after_type; /* bytes between an OSError's ob_type and myerrno */
	uint8_t extra_frame_words;	  /* without framesize: nlocalsplus + stacksize + this */
	struct generator_states generator_states;
};

/* Everything known about one CPython build. */
struct py_build {
	uint32_t version_hex;	/* PY_VERSION_HEX */
	bool free_threaded;	/* built without the GIL */
	bool newer_than_tested; /* no table here covers its minor version or its layout */
	struct py_offsets offsets;
	struct py_tlbc tlbc;
	struct py_traits traits;
};

/*
 * Fill ret_build, from the tables alone, for a version that does not carry its own offsets. Returns
 * 0, or -ENOTSUP with a message.
 */
int offsets_of_version(uint32_t version_hex, struct py_build *ret_build, struct message *reterr);

/*
 * The traits of 3.minor, which is at least OLDEST_MINOR. A version newer than NEWEST_MINOR gets the
 * traits of NEWEST_MINOR, except that its generator states are not read: those numbers have changed
 * in each version.
 */
struct py_traits traits_of_version(uint32_t minor);

#define VERSION_MAX_BYTES 24 /* with its NUL */

/* Format a PY_VERSION_HEX: "3.15.2", "3.14.0rc1"; "3.10" if all of the rest is 0 (unknown). */
void version_format(uint32_t version_hex, char ret_text[VERSION_MAX_BYTES]);

/*
 * Macros for the tables (offsets.def, debug_offsets.def, traits.def), which have a row per field
 * and a column per version. A file that includes a table defines a macro for its rows; the table
 * undefines it.
 */

/* The numbers of a row without their parentheses: {CELLS cells} initialises an array. */
#define CELLS(...) __VA_ARGS__

/* The number of cells. A row with a number missing must not compile. */
#define NR_CELLS(cells) (sizeof((long long[]){CELLS cells}) / sizeof(long long))
