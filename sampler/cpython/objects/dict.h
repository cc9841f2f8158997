/* SPDX-License-Identifier: MIT */
/*
 * Reads dicts, sets and the attributes of instances in the target: a table of keys, and where the
 * value of each is. A lookup reads the entries in order and compares characters, because the hash
 * of a str is the target's secret.
 *
 * The target may run meanwhile and replace the table at any moment. A result is what the memory
 * showed; callers that need certainty check it against something that the value itself states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * A larger table, which would take 50 GB, is not opened: -E2BIG. Callers that visit all entries
 * limit their number by what such a dict should hold, or use a struct bounded_memory.
 */
#define DICT_MAX_ENTRIES (1u << 31)

/* Entries read at a time. */
#define DICT_PIECE_ENTRIES 64

/* A key for a lookup is ASCII with at most this many characters. */
#define DICT_KEY_MAX_CHARS 31

/* A dict at the time when it was opened; owns nothing. */
struct dict {
	struct remote_memory *memory; /* borrowed, like build */
	const struct py_build *build;
	remote_addr entries_addr;
	remote_addr values_addr; /* the separate array of a split table; else 0 */
	uint32_t nr_entries;	 /* in use, including removed ones */
	bool has_hashes;	 /* each entry begins with its key's hash */
};

struct dict_entry {
	uint64_t hash; /* 0 without has_hashes; then all keys are str */
	remote_addr key_addr;
	remote_addr value_addr;
};

/*
 * Open the dict object at addr. Returns 0; -EBADMSG (it is no dict, or was torn); -E2BIG, -EFAULT,
 * -ESRCH, -EPERM.
 *
 * Source: CPython Objects/dict-common.h (3.6 to 3.10), Include/internal/pycore_dict.h.
 */
int dict_open(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
	      struct dict *ret_dict);

/*
 * Open the attributes of the instance at addr (or of a module), wherever it keeps them: in a dict,
 * or in values whose keys are in its class. Returns 0; -ENOENT (it has none); the errors of
 * dict_open().
 *
 * Source: _PyObject_GetDictPtr() in Objects/object.c, Include/internal/pycore_object.h.
 */
int dict_open_attributes(struct remote_memory *memory, const struct py_build *build,
			 remote_addr addr, struct dict *ret_dict);

/*
 * Open sys.modules of the interpreter at interp_addr. Returns 0; -ENOENT (it has none, or its
 * offset is unknown in this version); the errors of dict_open().
 */
int dict_open_modules(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct dict *ret_dict);

/* Iterates over a dict. Set dict, and next to start after entry 0; the rest begins as zero. */
struct dict_walk {
	struct dict dict;
	uint32_t next; /* index of the next entry, in table order */

	/* Private: the entries [first, end), as read. */
	uint32_t first, end;
	struct dict_entry entries[DICT_PIECE_ENTRIES];
};

/*
 * Get the next entry that is set, in table order, which is the order of insertion. Instances of a
 * class that share their keys each have an order of their own (3.11 and newer). Returns 0; -ENOENT
 * (there are no more); -EBADMSG, -EFAULT, -ESRCH, -EPERM.
 */
int dict_next(struct dict_walk *walk, struct dict_entry *ret_entry);

/*
 * Look up a str key among the first max_entries. hint may be NULL; else *hint is the entry to try
 * first, and becomes the one where the key was found: similar dicts of a program usually have it at
 * the same index. Returns 0; -ENOENT; -EBADMSG, -EFAULT, -ESRCH, -EPERM.
 */
int dict_find(const struct dict *dict, uint32_t max_entries, const char *key, uint32_t *hint,
	      remote_addr *ret_value_addr);

/*
 * Look up a module in sys.modules, like dict_find(), and open its attributes. Errors of dict_find()
 * and dict_open_attributes().
 */
int dict_open_module(const struct dict *modules, uint32_t max_entries, const char *name,
		     uint32_t *hint, struct dict *ret_dict);

/* Slots read at a time. */
#define SET_PIECE_SLOTS 64

/* A set or frozenset at the time when it was opened: slots, some of which have a member. */
struct set {
	uint64_t nr_used;  /* members */
	uint64_t nr_slots; /* a power of two */

	/* Private. */
	struct remote_memory *memory; /* borrowed */
	remote_addr table_addr;
	uint64_t next; /* index of the next slot */
	uint8_t slots[SET_PIECE_SLOTS][SET_ENTRY_BYTES];
};

/*
 * Open the set object at addr. Returns 0; -EBADMSG (it is no set, or was torn); -EFAULT, -ESRCH,
 * -EPERM.
 *
 * Source: CPython Include/setobject.h (cpython/setobject.h), Objects/setobject.c.
 */
int set_open(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	     struct set *ret_set);

/*
 * Get the next member, in the order of the slots, like repr(). Returns 0; -ENOENT (there are no
 * more); -EFAULT, -ESRCH, -EPERM.
 */
int set_next(struct set *set, remote_addr *ret_member_addr);
