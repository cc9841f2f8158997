/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/integer.h"
#include "sampler/cpython/objects/strings.h"

/* What all steps of a pass need. */
struct pass {
	struct remote_memory *memory;
	const struct py_build *build;
	struct thread_name_hints *hints;
};

/*
 * The dict threading._active of an interpreter; that there is no such module is remembered: it is so of
 * many.
 */
static int find_active(const struct pass *pass, remote_addr interp_addr, struct dict *ret_dict)
{
	struct thread_name_hints *hints = pass->hints;
	remote_addr active_addr;
	struct dict modules, dict;
	int err = dict_open_modules(pass->memory, pass->build, interp_addr, &modules);

	if (err)
		return err;
	if (modules.entries_addr == hints->missing_entries_addr &&
	    modules.nr_entries == hints->nr_missing_entries)
		return -ENOENT;
	err = dict_open_module(pass->memory, pass->build, &modules, THREAD_NAMES_MAX_KEYS,
			       "threading", &hints->threading, &dict);
	hints->missing_entries_addr = err == -ENOENT ? modules.entries_addr : 0;
	hints->nr_missing_entries = modules.nr_entries;
	if (!err)
		err = dict_find(pass->memory, pass->build, dict, THREAD_NAMES_MAX_KEYS, "_active",
				&hints->active, &active_addr);
	return err ? err : dict_open(pass->memory, pass->build, active_addr, ret_dict);
}

/* Copy text, cut between two code points. */
static void copy_name(char name[THREAD_NAME_MAX_BYTES], const char *text)
{
	size_t length = strnlen(text, THREAD_NAME_MAX_BYTES);

	if (length == THREAD_NAME_MAX_BYTES) {
		length--;
		while (length > 0 && (text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(name, text, length);
	name[length] = '\0';
}

/* Whether the attribute key is the int wanted: 0, -EBADMSG (it is not), -ENOENT, or worse. */
static int check_number(const struct pass *pass, const struct dict *attributes, const char *key,
			uint32_t *hint, uint64_t wanted)
{
	remote_addr addr;
	uint64_t number;
	int err = dict_find(pass->memory, pass->build, *attributes, THREAD_MAX_ATTRIBUTES, key,
			    hint, &addr);

	if (!err)
		err = integer_read(pass->memory, &pass->build->offsets, addr, &number);
	if (!err && number != wanted)
		err = -EBADMSG;
	return err;
}

/* Whether the Thread with these attributes is the thread: as check_number(). */
static int check_thread(const struct pass *pass, const struct dict *attributes,
			const struct named_thread *thread)
{
	int err = check_number(pass, attributes, "_ident", &pass->hints->ident, thread->ident);

	if (err || !thread->native_id)
		return err;
	err = check_number(pass, attributes, "_native_id", &pass->hints->native_id,
			   thread->native_id);
	return err == -ENOENT ? 0 : err; /* before 3.8 */
}

/* Take the name of the Thread object at addr, if it is the thread's. */
static int read_thread(const struct pass *pass, remote_addr addr, struct named_thread *thread)
{
	const struct py_offsets *offsets = &pass->build->offsets;
	cleanup_free char *name = NULL;
	struct dict attributes;
	remote_addr name_addr;
	int err = dict_open_attributes(pass->memory, pass->build, addr, &attributes);

	if (!err)
		err = check_thread(pass, &attributes, thread);
	if (!err)
		err = dict_find(pass->memory, pass->build, attributes, THREAD_MAX_ATTRIBUTES,
				"_name", &pass->hints->name, &name_addr);
	if (!err)
		err = string_read(pass->memory, offsets, name_addr, &name);
	if (!err)
		copy_name(thread->name, name);
	return err;
}

static int compare_idents(const void *a, const void *b)
{
	uint64_t x = ((const struct named_thread *)a)->ident;
	uint64_t y = ((const struct named_thread *)b)->ident;

	return (x > y) - (x < y);
}

/* The threads whose names are wanted. */
struct wanted {
	struct named_thread *threads; /* sorted */
	size_t nr_threads;
	size_t nr_found; /* so many of them have been */
};

/*
 * Read the threads among the entries of _active from the next one on. The hash of an int below
 * 2^61 - 1 is the int (Python/pyhash.c), so the keys need no look; the _ident of the Thread proves
 * it.
 */
static int read_threads(const struct pass *pass, struct dict_walk *walk, struct wanted *wanted)
{
	struct dict_entry entry;
	int err = 0;

	while (wanted->nr_found < wanted->nr_threads) {
		struct named_thread key = {.ident = 0};
		struct named_thread *thread;

		err = dict_next(walk, &entry);
		if (err)
			break;
		key.ident = entry.hash;
		thread = key.ident ? bsearch(&key, wanted->threads, wanted->nr_threads, sizeof(key),
					     compare_idents)
				   : NULL;
		if (!thread || thread->name[0])
			continue;
		err = read_thread(pass, entry.value_addr, thread);
		if (remote_error_is_fatal(err))
			break;
		if (err)
			continue;
		wanted->nr_found++;
		pass->hints->next_entry = walk->next;
	}
	return remote_error_is_fatal(err) ? err : 0;
}

int thread_names_read(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct thread_name_hints *hints,
		      struct named_thread *threads, size_t nr_threads)
{
	const struct pass pass = {.memory = memory, .build = build, .hints = hints};
	struct wanted wanted = {.threads = threads, .nr_threads = nr_threads};
	struct dict_walk walk = {.memory = memory, .build = build};
	struct dict active;
	int err = find_active(&pass, interp_addr, &active);

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	for (size_t i = 0; i < nr_threads; i++)
		threads[i].name[0] = '\0';
	qsort(threads, nr_threads, sizeof(*threads), compare_idents);
	if (!active.has_hashes)
		return 0;
	/* Threads are listed in the order in which they began, and mostly asked for in it. */
	walk.dict = active;
	walk.next = hints->next_entry < active.nr_entries ? hints->next_entry : 0;
	active.nr_entries = walk.next;
	err = read_threads(&pass, &walk, &wanted);
	if (err)
		return err;
	walk = (struct dict_walk){.memory = memory, .build = build, .dict = active};
	return read_threads(&pass, &walk, &wanted);
}
