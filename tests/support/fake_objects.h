/* SPDX-License-Identifier: MIT */
/*
 * Dicts, ints and instances in the memory of a fake CPython, laid out as in its version, and a
 * threading module made of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/fake_python.h"

/* All minor versions that can be faked, except free-threaded builds. */
extern const uint32_t fake_minors[];
#define NR_FAKE_MINORS 11

/* A key and its value. If text is NULL the key is the int number. */
struct fake_item {
	const char *text;
	uint64_t number;
	remote_addr value_addr; /* 0: removed, or not set */
};

/* Addresses of a fake dict and its parts, for tests that damage them. */
struct fake_dict {
	remote_addr addr;
	remote_addr keys_addr;
	remote_addr entries_addr;
	remote_addr values_addr; /* 0: a combined table */
};

/* How an instance keeps its attributes. */
enum fake_form {
	FAKE_OWN_DICT,	 /* a dict with a table of its own */
	FAKE_SPLIT_DICT, /* a dict with the keys of its class */
	FAKE_NO_DICT,	 /* values with the keys of its class; up to 3.10 FAKE_SPLIT_DICT */
	NR_FAKE_FORMS,
};

/* An object of a static type with this name; words follow the type pointer. */
remote_addr fake_object(struct fake_python *py, const char *type_name, const uint64_t *words,
			size_t nr_words);

remote_addr fake_int(struct fake_python *py, uint64_t value);

/* A dict with a table of its own. */
struct fake_dict fake_dict(struct fake_python *py, const struct fake_item *items, size_t nr_items);

/* The same with nr_pads copies of the entry *pad before the items. */
struct fake_dict fake_long_dict(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
				const struct fake_item *items, size_t nr_items);

/* An instance of a class of its own. *ret_dict, if not NULL, gets the parts that exist. */
remote_addr fake_instance(struct fake_python *py, enum fake_form form,
			  const struct fake_item *items, size_t nr_items,
			  struct fake_dict *ret_dict);

/* A Thread with an ident, a native id of FAKE_NATIVE_ID(ident), and a name. */
#define FAKE_NATIVE_ID(ident) ((ident) % 1000 + 1)
remote_addr fake_thread_object(struct fake_python *py, enum fake_form form, uint64_t ident,
			       const char *name);

/* A Thread with nr_pads copies of the attribute *pad before its name and ident. */
remote_addr fake_long_thread(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
			     uint64_t ident, const char *name);

/* A module with this dict as _active. */
remote_addr fake_threading_module(struct fake_python *py, const struct fake_dict *active);

/* Make this dict the interpreter's sys.modules. */
void fake_set_modules(struct fake_python *py, const struct fake_dict *modules);

/* Set sys.modules["threading"]._active to a dict of these threads. Returns that dict's parts. */
struct fake_dict fake_threading(struct fake_python *py, const struct fake_item *threads,
				size_t nr_threads);
