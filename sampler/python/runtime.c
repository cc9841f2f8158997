/* SPDX-License-Identifier: MIT */
#include "sampler/python/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/python/debug_offsets.h"
#include "symbols/symtab.h"

/* The cookie scan reads so much at a time, and no mapping beyond so much. */
#define SCAN_BLOCK_BYTES (64u << 10)
#define SCAN_MAX_BYTES	 (64u << 20)

/* What is being searched, and the first refusal of something that was found. */
struct search {
	const struct process *process;
	const struct maps *maps;
	struct remote_memory *memory;
	struct runtime *ret_runtime;
	struct message refusal;
	int refusal_err; /* 0 while nothing was refused */
};

/*
 * Try runtime_addr as _PyRuntime. True if the search is over. A candidate that
 * is a CPython we must refuse is remembered: another module may hold a better
 * one, and if none does the refusal is the answer.
 */
static bool search_try(struct search *search, remote_addr runtime_addr, uint32_t version_hex,
		       const char *found_by, const struct mapping *mapping)
{
	struct runtime *runtime = search->ret_runtime;
	struct message refusal = {0};
	int err =
		offsets_load(search->memory, runtime_addr, version_hex, &runtime->build, &refusal);

	if (err) {
		if (!search->refusal_err || search->refusal_err == -EFAULT) {
			search->refusal = refusal;
			search->refusal_err = err;
		}
		return false;
	}
	runtime->addr = runtime_addr;
	runtime->found_by = found_by;
	(void)snprintf(runtime->image_path, sizeof(runtime->image_path), "%s", mapping->path);
	return true;
}

/* PY_VERSION_HEX from the variable Py_Version that 3.11 and newer export; 0 if there is none. */
static uint32_t read_version(const struct search *search, const struct image *image,
			     uint64_t load_bias)
{
	uint64_t vaddr, size_bytes, value;

	if (symtab_find(image, "Py_Version", &vaddr, &size_bytes) != 0 ||
	    remote_memory_read_u64(search->memory, vaddr + load_bias, &value) != 0)
		return 0;
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

/*
 * Before Py_Version there is only the name of the file to go by, "python3.10" or
 * "libpython2.7.so.1.0"; used for refusals alone. The patch level stays 0: unknown.
 */
static uint32_t version_from_path(const char *path)
{
	const char *name = strrchr(path, '/');
	const char *version = NULL;
	char *end;
	unsigned long major, minor;

	name = name ? name + 1 : path;
	if (strncmp(name, "libpython", 9) == 0)
		version = name + 9;
	else if (strncmp(name, "python", 6) == 0)
		version = name + 6;
	if (!version || *version < '2' || *version > '3' || version[1] != '.')
		return 0;
	major = (unsigned long)(*version - '0');
	minor = strtoul(version + 2, &end, 10);
	if (end == version + 2 || minor > 99)
		return 0;
	return (uint32_t)(major << 24 | minor << 16);
}

static void keep_build_id(struct runtime *runtime, const struct image *image)
{
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t size_bytes = image_build_id(image, build_id);

	for (size_t i = 0; i < size_bytes; i++)
		(void)snprintf(runtime->build_id + 2 * i, 3, "%02x", build_id[i]);
}

static bool search_image(struct search *search, const struct image *image,
			 const struct mapping *mapping)
{
	uint64_t vaddr, size_bytes, load_bias;
	const char *found_by = "section";
	uint32_t version_hex;

	if (image_load_bias(image, mapping, &load_bias) != 0)
		return false;
	if (image_section(image, ".PyRuntime", &vaddr, &size_bytes) != 0) {
		found_by = "symbol";
		if (symtab_find(image, "_PyRuntime", &vaddr, &size_bytes) != 0)
			return false;
	}
	version_hex = read_version(search, image, load_bias);
	if (!version_hex)
		version_hex = version_from_path(mapping->path);
	if (!search_try(search, vaddr + load_bias, version_hex, found_by, mapping))
		return false;
	keep_build_id(search->ret_runtime, image);
	return true;
}

enum module_kind { MODULE_EXECUTABLE, MODULE_LIBPYTHON, MODULE_OTHER, NR_MODULE_KINDS };

static enum module_kind module_kind(const struct search *search, const struct mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');
	char exe[sizeof(((struct runtime *)0)->image_path)];
	ssize_t length = readlinkat(search->process->proc_fd, "exe", exe, sizeof(exe) - 1);

	if (length > 0) {
		exe[length] = '\0';
		if (strncmp(exe, mapping->path, strlen(mapping->path)) == 0 && *mapping->path)
			return MODULE_EXECUTABLE;
	}
	return name && strncmp(name, "/libpython", 10) == 0 ? MODULE_LIBPYTHON : MODULE_OTHER;
}

static bool search_modules(struct search *search, enum module_kind kind)
{
	const struct maps *maps = search->maps;
	size_t end;

	for (size_t i = 0; i < maps->nr_mappings; i = end) {
		const struct mapping *mapping = &maps->mappings[i];
		struct image *image = NULL;
		bool found;

		end = maps_module_end(maps, i);
		if (!mapping->inode || module_kind(search, mapping) != kind)
			continue;
		if (image_open(search->process, mapping, &image) != 0)
			continue;
		found = search_image(search, image, mapping);
		image_close(image);
		if (found)
			return true;
	}
	return false;
}

/* Look for the cookie in one mapping; blocks that cannot be read are passed over. */
static bool scan_mapping(struct search *search, const struct mapping *mapping, uint8_t *block)
{
	remote_addr end = mapping->end;

	if (end - mapping->start > SCAN_MAX_BYTES)
		end = mapping->start + SCAN_MAX_BYTES;
	for (remote_addr addr = mapping->start; addr < end; addr += SCAN_BLOCK_BYTES) {
		size_t size = end - addr < SCAN_BLOCK_BYTES ? end - addr : SCAN_BLOCK_BYTES;

		if (remote_memory_read(search->memory, addr, block, size) != 0)
			continue;
		for (size_t i = 0; i + 8 <= size; i += 8)
			if (memcmp(block + i, DEBUG_OFFSETS_COOKIE, 8) == 0 &&
			    search_try(search, addr + i, 0, "cookie", mapping))
				return true;
	}
	return false;
}

static bool search_cookie(struct search *search)
{
	cleanup_free uint8_t *block = malloc(SCAN_BLOCK_BYTES);

	if (!block)
		return false;
	for (size_t i = 0; i < search->maps->nr_mappings; i++) {
		const struct mapping *mapping = &search->maps->mappings[i];

		if (mapping->inode && mapping->readable && mapping->writable &&
		    scan_mapping(search, mapping, block))
			return true;
	}
	return false;
}

/* -EPERM or -ESRCH if the process cannot be read at all, else 0. */
static int check_readable(const struct search *search)
{
	uint8_t byte;
	int err = 0;

	for (size_t i = 0; i < search->maps->nr_mappings; i++) {
		if (!search->maps->mappings[i].readable)
			continue;
		err = remote_memory_read(search->memory, search->maps->mappings[i].start, &byte, 1);
		if (err != -EFAULT)
			return err;
	}
	return err == -EFAULT ? 0 : err;
}

/*
 * Nothing of a known CPython was found. If a file is mapped that by its name is an
 * old one (before 3.7 there was no _PyRuntime), say that instead of "not Python".
 */
static bool refuse_by_name(const struct maps *maps, struct message *reterr)
{
	char version[VERSION_MAX_BYTES];

	for (size_t i = 0; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		uint32_t version_hex = mapping->executable ? version_from_path(mapping->path) : 0;

		if (!version_hex)
			continue;
		version_format(version_hex, version);
		message_set(reterr,
			    "the target maps %s, a Python %s that this pysample cannot "
			    "read; it knows CPython " SUPPORTED_VERSIONS,
			    mapping->path, version);
		return true;
	}
	return false;
}

/*
 * Whether the process has ended or called exec since its mappings were read. A process
 * that ends loses its memory before it is a zombie, and is there without mappings for a
 * moment; the memory that was opened is given up shortly after no read can reach it.
 */
static bool ended_meanwhile(const struct search *search)
{
	return search->maps->nr_mappings == 0 || check_readable(search) == -ESRCH ||
	       remote_memory_check(search->memory) == -ESRCH;
}

/* Why nothing was found. Errors of runtime_find(). */
static int refuse(const struct search *search, struct message *reterr)
{
	if (ended_meanwhile(search))
		return -ESRCH;
	if (search->refusal_err && search->refusal.text[0]) {
		if (reterr)
			*reterr = search->refusal;
		return search->refusal_err;
	}
	if (refuse_by_name(search->maps, reterr))
		return -ENOTSUP;
	message_set(reterr,
		    "no CPython interpreter was found in process %d: give the id of the Python "
		    "process itself (pgrep -f NAME finds one), or try again if it is just starting",
		    search->process->pid);
	return -ENOENT;
}

int runtime_find(const struct process *process, const struct maps *maps,
		 struct remote_memory *memory, struct runtime *ret_runtime, struct message *reterr)
{
	struct runtime runtime = {0};
	struct search search = {
		.process = process,
		.maps = maps,
		.memory = memory,
		.ret_runtime = &runtime,
	};
	bool found = false;
	int err = check_readable(&search);

	if (err)
		return err;
	for (int kind = 0; !found && kind < NR_MODULE_KINDS; kind++)
		found = search_modules(&search, (enum module_kind)kind);
	if (!found && !search.refusal_err)
		found = search_cookie(&search);
	if (found) {
		*ret_runtime = runtime;
		return 0;
	}
	return refuse(&search, reterr);
}
