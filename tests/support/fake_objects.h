/* SPDX-License-Identifier: MIT */
/*
 * Dicts, ints and instances in the memory of a fake CPython, laid out as its version has
 * them, and a threading module made of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/fake_python.h"

/* All minor versions there are, those whose frames are objects among them. */
extern const uint32_t fake_versions[];
#define NR_FAKE_VERSIONS 10

/* A key and its value. Without a text the key is the int number. */
struct fake_item {
	const char *text;
	uint64_t number;
	remote_addr value_addr; /* 0: removed, or not set */
};

/* Where a fake dict and its parts lie, for tests that damage them. */
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
	FAKE_NO_DICT,	 /* values with the keys of its class; until 3.10 as FAKE_SPLIT_DICT */
	NR_FAKE_FORMS,
};

/* An object of a static type of that name, with so many words behind its type. */
remote_addr fake_object(struct fake_python *py, const char *type_name, const uint64_t *words,
			size_t nr_words);

remote_addr fake_int(struct fake_python *py, uint64_t value);

/* A dict with a table of its own. */
struct fake_dict fake_dict(struct fake_python *py, const struct fake_item *items, size_t nr_items);

/* The same, but that so many entries, all as pad, are before the items. */
struct fake_dict fake_long_dict(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
				const struct fake_item *items, size_t nr_items);

/* An instance of a class of its own; *ret_dict, if asked for, has the parts that there are. */
remote_addr fake_instance(struct fake_python *py, enum fake_form form,
			  const struct fake_item *items, size_t nr_items,
			  struct fake_dict *ret_dict);

/* A Thread that says its ident, an id of the kernel's made of that, and its name. */
#define FAKE_NATIVE_ID(ident) ((ident) % 1000 + 1)
remote_addr fake_thread_object(struct fake_python *py, enum fake_form form, uint64_t ident,
			       const char *name);

/* A Thread with so many attributes as pad before its name and ident. */
remote_addr fake_long_thread(struct fake_python *py, const struct fake_item *pad, size_t nr_pads,
			     uint64_t ident, const char *name);

/* A module that has this dict as _active. */
remote_addr fake_threading_module(struct fake_python *py, const struct fake_dict *active);

/* Have the interpreter's sys.modules be this dict. */
void fake_set_modules(struct fake_python *py, const struct fake_dict *modules);

/* Have sys.modules["threading"]._active be a dict of these; its parts. */
struct fake_dict fake_threading(struct fake_python *py, const struct fake_item *threads,
				size_t nr_threads);
