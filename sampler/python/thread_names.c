/* SPDX-License-Identifier: MIT */
#include "sampler/python/thread_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/python/dict.h"
#include "sampler/python/strings.h"

/* What all steps of a pass need. */
struct pass {
	struct remote_memory *memory;
	const struct py_build *build;
	struct thread_name_hints *hints;
};

/* Whether an error is of what was read, and not of the reading. */
static bool is_damage(int err)
{
	return err == -ENOENT || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/* The dict threading._active of an interpreter. */
static int find_active(const struct pass *pass, remote_addr interp_addr, struct dict *ret_dict)
{
	remote_addr modules_addr, module_addr, active_addr;
	struct dict dict;
	int err;

	if (pass->build->offsets.interpreter.modules == OFFSET_ABSENT)
		return -ENOENT;
	err = remote_memory_read_u64(pass->memory,
				     interp_addr + pass->build->offsets.interpreter.modules,
				     &modules_addr);

	if (!err)
		err = dict_open(pass->memory, pass->build, modules_addr, &dict);
	if (!err)
		err = dict_find(pass->memory, pass->build, &dict, "threading",
				&pass->hints->threading, &module_addr);
	if (!err)
		err = dict_open_attributes(pass->memory, pass->build, module_addr, &dict);
	if (!err)
		err = dict_find(pass->memory, pass->build, &dict, "_active", &pass->hints->active,
				&active_addr);
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
	int err = dict_find(pass->memory, pass->build, attributes, key, hint, &addr);

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
		err = dict_find(pass->memory, pass->build, &attributes, "_name", &pass->hints->name,
				&name_addr);
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

/*
 * Read the threads among the entries. The hash of an int below 2^61 - 1 is the int
 * (Python/pyhash.c), so the keys need no look; the _ident of the Thread proves it.
 */
static int read_entries(const struct pass *pass, const struct dict_entry *entries, uint32_t nr,
			struct named_thread *threads, size_t nr_threads)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct named_thread wanted = {.ident = entries[i].hash};
		struct named_thread *thread;
		int err;

		if (!entries[i].key_addr || !entries[i].value_addr || !wanted.ident)
			continue;
		thread = bsearch(&wanted, threads, nr_threads, sizeof(wanted), compare_idents);
		if (!thread || thread->name[0])
			continue;
		err = read_thread(pass, entries[i].value_addr, thread);
		if (err && !is_damage(err))
			return err;
	}
	return 0;
}

int thread_names_read(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct thread_name_hints *hints,
		      struct named_thread *threads, size_t nr_threads)
{
	const struct pass pass = {.memory = memory, .build = build, .hints = hints};
	struct dict_entry entries[DICT_PIECE_ENTRIES];
	struct dict active;
	uint32_t nr = 0;
	int err = find_active(&pass, interp_addr, &active);

	if (err)
		return is_damage(err) ? -ENOENT : err;
	for (size_t i = 0; i < nr_threads; i++)
		threads[i].name[0] = '\0';
	qsort(threads, nr_threads, sizeof(*threads), compare_idents);
	for (uint32_t i = 0; !err && active.has_hashes && i < active.nr_entries; i += nr) {
		nr = active.nr_entries - i;
		if (nr > DICT_PIECE_ENTRIES)
			nr = DICT_PIECE_ENTRIES;
		err = dict_read(memory, &active, i, nr, entries);
		if (!err)
			err = read_entries(&pass, entries, nr, threads, nr_threads);
	}
	return err && !is_damage(err) ? err : 0;
}
