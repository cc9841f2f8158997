/* SPDX-License-Identifier: MIT */
/*
 * Where things lie in the structs of one CPython build. Loaded once per target,
 * checked once, constant afterwards: nothing else in pysample asks for a
 * version.
 *
 * 3.13 and newer carry the numbers themselves (_Py_DebugOffsets at the start of
 * _PyRuntime: sampler/cpython/find/build.h). What those lack stands in debug_offsets.def, everything of
 * older versions in offsets.def, and what is no offset in traits.def: tables with a row a
 * field and a column a version, each number of which is proved against CPython's own
 * headers when the tests are run (tests/offsets/).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/message.h"
#include "sampler/cpython/code/linetable.h"

/* The versions that build_load() accepts, for sentences. */
#define SUPPORTED_VERSIONS "3.6 to 3.15"

/* The same as minor versions, and the first that tells its offsets itself. */
enum { OLDEST_MINOR = 6, FIRST_MINOR_THAT_TELLS = 13, NEWEST_MINOR = 15 };

/* No struct of CPython is larger: 3.15's runtime has 350 kB. */
#define STRUCT_MAX_BYTES (4u << 20)

/* A field that this version does not have. Never 0: 0 is a valid offset. */
#define OFFSET_ABSENT UINT32_MAX

/*
 * Buffers for one struct each; a target whose struct's used fields do not fit is
 * refused. Measured: thread states end their used part at 280 (3.15), code
 * objects have 144 to 216 bytes, frames 80 to 88; of frame objects 133 are read (3.6).
 */
#define THREAD_STATE_MAX_BYTES 1024
#define CODE_MAX_BYTES	       512
#define FRAME_MAX_BYTES	       136
#define EXC_ITEM_MAX_BYTES     32 /* 32 (3.7), 16 (3.11) */
#define DICT_KEYS_MAX_BYTES    64 /* in front of the hash table: 40 (3.10), 32 (3.11+) */

/*
 * What a version does not have is OFFSET_ABSENT. Every member is a uint32_t: the struct
 * is also read as an array of them, see NR_OFFSETS. Each has a row in offsets.def.
 */
struct py_offsets {
	struct {
		uint32_t size;
		uint32_t finalizing; /* the thread state that ends the interpreter, or NULL */
		uint32_t interpreters_head;
		uint32_t gil_locked; /* before 3.12 the GIL is the runtime's */
		uint32_t gil_last_holder;
		uint32_t gc; /* the collector's struct, the runtime's before 3.9 (3.7, 3.8) */
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
		uint32_t next_code_version;	 /* u32, above every co_version there is */
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
		uint32_t thread_id; /* pthread_t, what threading calls ident */
		uint32_t native_thread_id;
		uint32_t unique_id; /* u64, never used again; only where 3.7 to 3.10 need it */
		uint32_t datastack_chunk;
		uint32_t datastack_top;
		uint32_t last_profiled_frame;	  /* see sampler/frame_cache.h (3.15) */
		uint32_t last_profiled_frame_seq; /* u64, counts how often its frame was popped */
		uint32_t gil_requested;		  /* int; 1 while it waits for the GIL (3.15) */
		uint32_t raised;    /* the exception on its way up; until 3.11 its type */
		uint32_t exc_info;  /* address of the innermost item of those handled (3.7+) */
		uint32_t exc_state; /* the outermost of these items, in the thread state */
	} thread;
	struct {
		uint32_t value;	   /* the exception handled, NULL or None; until 3.10 its type */
		uint32_t previous; /* the item around it (3.7+) */
	} exc_item;
	struct {
		uint32_t current_frame; /* of the loop it belongs to (3.11, 3.12) */
		uint32_t previous;	/* address of the one of the loop around it */
	} cframe; /* each call of the interpreter's loop has one in its C frame */
	struct {
		uint32_t size;
		uint32_t executable;   /* before 3.11: f_code */
		uint32_t previous;     /* before 3.11: f_back */
		uint32_t instr_ptr;    /* 3.11, 3.12: prev_instr */
		uint32_t lasti;	       /* int; the instruction as an index (before 3.11) */
		uint32_t state;	       /* char; f_executing, in 3.10 f_state (before 3.11) */
		uint32_t stacktop;     /* int; -1 while the frame executes (3.11–3.13) */
		uint32_t is_entry;     /* bool; called from C (3.11) */
		uint32_t stackpointer; /* where its own stack ends, while it calls (3.14+) */
		uint32_t owner;	       /* char, enum _frameowner */
		uint32_t localsplus;
		uint32_t heap_locals; /* the same of a frame that is an object (before 3.11) */
	} frame;
	struct {
		uint32_t iframe;      /* the frame inside of a generator, coroutine, … object */
		uint32_t frame_state; /* char, see generator_states (3.14+) */
	} generator;
	struct {
		uint32_t previous;
		uint32_t size;
		uint32_t top; /* words used, of a chunk that has a newer one */
		uint32_t data;
	} chunk;
	struct {
		uint32_t size;
		uint32_t ob_size; /* code units in co_code_adaptive */
		uint32_t filename;
		uint32_t qualname;  /* before 3.11: co_name */
		uint32_t linetable; /* before 3.10: co_lnotab */
		uint32_t firstlineno;
		uint32_t framesize; /* words; absent in 3.11 */
		uint32_t nlocalsplus;
		uint32_t stacksize;
		uint32_t version;	 /* u32, unique to the object; 0 once they ran out */
		uint32_t firsttraceable; /* int, code units */
		uint32_t argcount;	 /* int; of those that may be given by position */
		uint32_t names; /* tuple of str: co_localsplusnames; before 3.11 co_varnames */
		uint32_t kinds; /* bytes, one for each name: co_localspluskinds (3.11+) */
		uint32_t code_adaptive;
		uint32_t bytecode;	 /* the bytes object of it (before 3.11) */
		uint32_t kwonlyargcount; /* int; the arguments that follow those */
		uint32_t flags;		 /* int; CO_VARARGS, CO_VARKEYWORDS */
		uint32_t cellvars; /* tuples: the variables behind those of names (before 3.11) */
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
		uint32_t cached_keys; /* of a heap type: what its instances' attributes share */
	} type;
	struct {
		/* In front of the object, so many bytes; see enum attribute_rule. */
		uint32_t dict_before;
		uint32_t values_before;
	} instance;
	struct {
		uint32_t keys;
		uint32_t values;
	} dict;
	struct {
		uint32_t size; /* Py_ssize_t, slots of the hash table (before 3.11) */
		uint32_t log2_size;
		uint32_t log2_index_bytes;
		uint32_t kind;
		uint32_t nr_entries;
		uint32_t indices; /* the hash table; the entries follow it */
	} dict_keys;
	struct {
		uint32_t valid; /* u8, of the values inside of an object (3.13+) */
		uint32_t values;
	} dict_values;
	struct {
		uint32_t size;	     /* how many digits, and more bits below that */
		uint32_t size_shift; /* so many */
		uint32_t digits;     /* u32 each, of 30 bits */
	} integer;
	struct {
		uint32_t length;
		uint32_t state;
		uint32_t state_kind_shift; /* bit of the 3-bit kind; compact and ascii follow */
		uint32_t ascii_data;
		uint32_t compact_data;
		uint32_t data; /* data.any of a str that is not compact */
	} unicode;
	struct {
		uint32_t ob_size;
		uint32_t ob_sval;
	} bytes;
};

/* The struct as an array: how many there are, and which one a member is. */
#define NR_OFFSETS (sizeof(struct py_offsets) / sizeof(uint32_t))
/* NOLINTNEXTLINE(bugprone-macro-parentheses): the names of members */
#define OFFSET_INDEX(of, field) (offsetof(struct py_offsets, of.field) / sizeof(uint32_t))

/* A field of a struct that was read, or 0 where the version does not have it. */
static inline uint64_t optional_u64(const void *buffer, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u64(buffer, offset);
}

static inline uint32_t optional_u32(const void *buffer, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u32(buffer, offset);
}

/* enum _frameowner of CPython, what is the same in all versions. */
enum frame_owner { OWNED_BY_THREAD = 0, OWNED_BY_GENERATOR = 1 };

/* How much of a frame is copied: what lies before its locals, or up to the last field used. */
static inline uint32_t frame_head_bytes(const struct py_offsets *offsets)
{
	return offsets->frame.lasti == OFFSET_ABSENT
		       ? offsets->frame.localsplus
		       : offsets->frame.state + (uint32_t)sizeof(char);
}

/* How much of a thread state is copied, from its start. */
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

/* How much of a code object is read, from its start. */
static inline uint32_t code_head_bytes(const struct py_offsets *offsets)
{
	return offsets->code.code_adaptive == OFFSET_ABSENT ? offsets->code.size
							    : offsets->code.code_adaptive;
}

/* How the innermost live frame of a data stack is told from what lies behind it. */
enum leaf_rule {
	LEAF_BY_EXECUTABLE, /* a popped frame's executable is NULL (3.14 and newer) */
	LEAF_BY_STACKTOP,   /* popped frames keep all contents; stacktop tells (3.11–3.13) */
};

/*
 * Thread-local bytecode of free-threaded builds, 3.14 and newer: each thread has a copy
 * of a code object's instructions for itself, and its frames' instr_ptr lies in that.
 * All 0 where there is none. Source: _PyCodeArray of Include/cpython/code.h.
 */
struct py_tlbc {
	uint32_t code_array; /* in the code object: address of the array of copies */
	uint32_t generation; /* in the interpreter: u32, changes with who has which copy */
};

/* Where an instance has its attributes, if its type does not keep a dict at tp_dictoffset. */
enum attribute_rule {
	ATTRIBUTES_IN_DICT,	   /* there is no other way (3.10 and older) */
	ATTRIBUTES_BY_TWO_WORDS,   /* in front of it values or a dict, a pointer each (3.11) */
	ATTRIBUTES_BY_TAGGED_WORD, /* in front of it one word: a dict, or values + 1 (3.12) */
	ATTRIBUTES_INLINE,	   /* in front of it a dict; else values behind it (3.13+) */
};

/*
 * What the state of a generator's or coroutine's frame says. While it awaits something that is
 * on its own stack, so many words below its top (0: this version is not asked for it). Source:
 * enum _framestate of pycore_frame.h, and _PyGen_yf() of Objects/genobject.c.
 */
struct generator_states {
	int8_t first_awaiting, last_awaiting;
	int8_t first_finished; /* this one and those above have no frame any more */
	uint8_t awaited_words;
};

/* What differs between versions and is no offset. Each member has a row in traits.def. */
struct py_traits {
	enum leaf_rule leaf_rule;
	enum attribute_rule attribute_rule;
	enum linetable_format linetable_format;
	bool handled_none; /* while no exception is handled, an item may be None (to 3.12) */
	bool has_unnamed_executors;	/* its JIT tells debuggers nothing of its code (3.14) */
	bool frames_on_heap;		/* frames are objects (before 3.11), else on data stacks */
	uint8_t lasti_unit_bytes;	/* of such a frame's lasti */
	uint8_t executing;		/* such a frame's state while it runs, or calls */
	uint8_t shim_owner;		/* frames with this owner or a higher one are entry shims */
	uint8_t tuple_items_after_type; /* bytes between a tuple's ob_type and its items */
	uint8_t qualname_after_type;	/* and a function's ob_type and its func_qualname */
	uint8_t oserror_errno_after_type; /* and an OSError's ob_type and its myerrno */
	uint8_t extra_frame_words;	  /* without framesize: nlocalsplus + stacksize + this */
	struct generator_states generator_states;
};

/* Everything known about one CPython build. */
struct py_build {
	uint32_t version_hex;	/* PY_VERSION_HEX */
	bool free_threaded;	/* built without the GIL */
	bool newer_than_tested; /* a minor version, or a layout, that no table of ours is of */
	struct py_offsets offsets;
	struct py_tlbc tlbc;
	struct py_traits traits;
};

/*
 * Fill ret_build for a version that does not carry its offsets itself, from the tables
 * alone. 0 or -ENOTSUP with a sentence.
 */
int offsets_of_version(uint32_t version_hex, struct py_build *ret_build, struct message *reterr);

/*
 * The traits of 3.minor, OLDEST_MINOR or newer. Of one that is newer than all those of the newest,
 * but that no generator of it is asked for its state: what the numbers mean changed each time.
 */
struct py_traits traits_of_version(uint32_t minor);

/* "3.15.2", "3.14.0rc1" of a PY_VERSION_HEX; "3.10" where the rest of it is 0: not known. */
#define VERSION_MAX_BYTES 24
void version_format(uint32_t version_hex, char ret_text[VERSION_MAX_BYTES]);

/* asyncio. */

/* Room for the C part of a task: 200 bytes in 3.15, 232 in its debug builds. */
#define TASK_MAX_BYTES 512

/*
 * So much writable memory of files is looked through, and so much of one mapping: the whole
 * _asyncio or libpython has a few MiB of variables, larger ones are a program's data. Where there
 * is more, tasks may not be found.
 */
#define ASYNCIO_SEARCH_MAX_BYTES  (256u << 20)
#define ASYNCIO_MAPPING_MAX_BYTES (32u << 20)

/*
 * Where asyncio's tasks lie: the numbers that CPython's _asyncio module carries of its structs,
 * from 3.14 on, in a variable of its data (section .AsyncioDebug). No symbol leads there, and
 * section names are in files alone, which may be gone: so the variable is found in memory, by
 * what it says. One of its numbers is the exact size of the interpreter state, which the
 * runtime tells as well, and all others have to fit theirs. These are its words, in its order.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c, Py_AsyncioModuleDebugOffsets.
 */
struct asyncio_offsets {
	struct {
		uint32_t size;
		uint32_t name;		    /* str, or int: the number of one that has no name */
		uint32_t awaited_by;	    /* a task or future, or a set of them, or NULL */
		uint32_t is_task;	    /* char; futures have it, too */
		uint32_t awaited_by_is_set; /* char */
		uint32_t coro;
		uint32_t node; /* of a list of tasks: address of the next node, of the one before */
	} task;
	struct {
		uint32_t size;
		uint32_t tasks_head; /* a node: tasks of threads that have ended */
	} interpreter;
	struct {
		uint32_t size;
		uint32_t running_loop;
		uint32_t running_task;
		uint32_t tasks_head;
	} thread;
};

/* So many words the variable has, and bytes. */
enum {
	NR_ASYNCIO_WORDS = sizeof(struct asyncio_offsets) / sizeof(uint32_t),
	ASYNCIO_DEBUG_BYTES = NR_ASYNCIO_WORDS * sizeof(uint64_t),
};

/* Whether bytes are the variable, in a build with those offsets. */
bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio);

/*
 * Find it in what the modules of maps have in memory. 0; -ENOENT (asyncio is not loaded; or,
 * where *ret_whole is false, in what could not be read or is beyond the limits above), -ENOTSUP
 * (a version that is not asked for tasks: older than 3.14, or newer than those known), -ENOMEM,
 * -ESRCH, -EPERM. *ret_whole is set with 0 and -ENOENT.
 */
int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole);

/*
 * The tables of numbers (offsets.def, debug_offsets.def, traits.def) have a row a field and a column
 * a version. A file that includes one defines a macro for its rows; the table undefines it again.
 */

/* The numbers of a row without their parentheses: {CELLS cells} initializes an array. */
#define CELLS(...) __VA_ARGS__

/* How many there are. A row with one too few for its table must not compile. */
#define NR_CELLS(cells) (sizeof((long long[]){CELLS cells}) / sizeof(long long))
