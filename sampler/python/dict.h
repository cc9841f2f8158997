/* SPDX-License-Identifier: MIT */
/*
 * Dicts and the attributes of instances in the target: a table of keys, and where the
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
#include "sampler/python/offsets.h"

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
	remote_addr entries_addr;
	remote_addr values_addr; /* of a split table: an array of their own; else 0 */
	uint32_t nr_entries;	 /* used ones, removed ones among them */
	bool has_hashes;	 /* each entry begins with the hash of its key */
};

struct dict_entry {
	uint64_t hash;		/* 0 without has_hashes: then all keys are str */
	remote_addr key_addr;	/* 0: removed */
	remote_addr value_addr; /* 0: removed, or an attribute that is not set */
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
 * Read nr entries, DICT_PIECE_ENTRIES at most, from the entry first on; all of them have
 * to be there. 0; -EFAULT, -ESRCH, -EPERM.
 */
int dict_read(struct remote_memory *memory, const struct dict *dict, uint32_t first, uint32_t nr,
	      struct dict_entry *ret_entries);

/*
 * Look up a str key. *hint is the entry where it is looked for first, and becomes that
 * where it was found: a program's dicts of one kind mostly have it at one place. 0;
 * -ENOENT; the errors of dict_read().
 */
int dict_find(struct remote_memory *memory, const struct py_build *build, const struct dict *dict,
	      const char *key, uint32_t *hint, remote_addr *ret_value_addr);
