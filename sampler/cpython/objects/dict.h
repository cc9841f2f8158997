/* SPDX-License-Identifier: MIT */
/*
 * Dicts, sets and the attributes of instances in the target: a table of keys, and where the
 * value of each lies. Looking one up reads the entries one after the other and compares
 * characters: the hash of a str is the target's secret.
 *
 * The target goes on meanwhile, and may make the table anew at any moment: what is
 * found is what the memory said, and whoever needs the truth proves it by something
 * that the value itself says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * A table with more entries is not opened: -E2BIG. It would take 50 GB. Who goes through all
 * entries of a dict bounds that by what is in such a dict, or by a struct bounded_memory.
 */
#define DICT_MAX_ENTRIES (1u << 31)

/* So many entries are read at a time. */
#define DICT_PIECE_ENTRIES 64

/* A key that is looked up is ASCII and has so many characters at most. */
#define DICT_KEY_MAX_CHARS 31

/* A dict as it was when it was opened; nothing of it is owned. */
struct dict {
	struct remote_memory *memory; /* borrowed, as is the build: what it was opened with */
	const struct py_build *build;
	remote_addr entries_addr;
	remote_addr values_addr; /* of a split table: an array of their own; else 0 */
	uint32_t nr_entries;	 /* used ones, removed ones among them */
	bool has_hashes;	 /* each entry begins with the hash of its key */
};

struct dict_entry {
	uint64_t hash; /* 0 without has_hashes: then all keys are str */
	remote_addr key_addr;
	remote_addr value_addr;
};

/*
 * Open the dict object at addr. 0; -EBADMSG (this is no dict, or it was torn), -E2BIG,
 * -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Objects/dict-common.h (3.6 to 3.10), Include/internal/pycore_dict.h.
 */
int dict_open(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
	      struct dict *ret_dict);

/*
 * Open the attributes of the instance at addr, of a module as well, wherever it keeps
 * them: in a dict, or in values that its class has the keys of. 0; -ENOENT (it has none);
 * the errors of dict_open().
 *
 * Source: _PyObject_GetDictPtr() in Objects/object.c, Include/internal/pycore_object.h.
 */
int dict_open_attributes(struct remote_memory *memory, const struct py_build *build,
			 remote_addr addr, struct dict *ret_dict);

/*
 * Open sys.modules of the interpreter at interp_addr. 0; -ENOENT (it has none, or this version's
 * are not known); the errors of dict_open().
 */
int dict_open_modules(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct dict *ret_dict);

/* Goes through a dict. What is not set is zero, or where to begin. */
struct dict_walk {
	struct dict dict;
	uint32_t next; /* index of the entry to come, in the table's order */

	/* Private: what was read, [first, end) of the entries. */
	uint32_t first, end;
	struct dict_entry entries[DICT_PIECE_ENTRIES];
};

/*
 * The next entry that is set, in the order of the table, which is that in which keys were put
 * into the dict; of instances of one class that share their keys each has an order of its own (3.11
 * and newer). 0; -ENOENT (there are no more); -EBADMSG, -EFAULT, -ESRCH, -EPERM.
 */
int dict_next(struct dict_walk *walk, struct dict_entry *ret_entry);

/*
 * Look up a str key among the first max_entries. *hint, if hint is not NULL, is the entry where it
 * is looked for first, and becomes that where it was found: a program's dicts of one kind mostly
 * have it at one place. 0; -ENOENT; -EBADMSG, -EFAULT, -ESRCH, -EPERM.
 */
int dict_find(const struct dict *dict, uint32_t max_entries, const char *key, uint32_t *hint,
	      remote_addr *ret_value_addr);

/*
 * Open the attributes of a module, which is looked up in sys.modules as dict_find() does. Errors
 * of dict_find() and dict_open_attributes().
 */
int dict_open_module(const struct dict *modules, uint32_t max_entries, const char *name,
		     uint32_t *hint, struct dict *ret_dict);

/* So many slots are read at a time. */
#define SET_PIECE_SLOTS 64

/* A set or frozenset as it was when it was opened: slots, a member in some of them. */
struct set {
	uint64_t nr_used;  /* members */
	uint64_t nr_slots; /* a power of two */

	/* Private. */
	struct remote_memory *memory; /* borrowed */
	remote_addr table_addr;
	uint64_t next; /* slot */
	uint8_t slots[SET_PIECE_SLOTS][SET_ENTRY_BYTES];
};

/*
 * Open the set object at addr. 0; -EBADMSG (this is no set, or it was torn), -EFAULT, -ESRCH,
 * -EPERM.
 *
 * Source: CPython Include/setobject.h (cpython/setobject.h), Objects/setobject.c.
 */
int set_open(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	     struct set *ret_set);

/*
 * The next member, in the order of the slots, which is that of repr(). 0; -ENOENT (there are no
 * more); -EFAULT, -ESRCH, -EPERM.
 */
int set_next(struct set *set, remote_addr *ret_member_addr);
