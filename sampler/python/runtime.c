/* SPDX-License-Identifier: MIT */
#include "sampler/python/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/debug_offsets.h"
#include "sampler/python/interpreter_scan.h"
#include "sampler/python/modules.h"
#include "sampler/python/version_text.h"
#include "symbols/memory_image.h"
#include "symbols/symtab.h"

/* So much of all modules' variables is looked at; beyond it nothing is found by a scan. */
#define SCAN_MAX_BYTES (256u << 20)

/* What is being searched, and the best reason against what was found. */
struct search {
	const struct process *process;
	const struct maps *maps;
	struct remote_memory *memory;
	struct modules modules;
	struct runtime *ret_runtime;
	uint64_t scanned_bytes;
	struct message refusal;
	int refusal_err; /* 0 while nothing was refused */
};

/* Where a module says that its CPython is. */
struct place {
	remote_addr runtime_addr;
	uint32_t version_hex; /* 0: not told */
	const char *found_by;
};

/* How much a refusal says: an interpreter to come is less than one that must be refused. */
static int refusal_rank(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -EFAULT:
		return 1;
	case -EAGAIN:
		return 2;
	default:
		return 3;
	}
}

/* Remember why something was refused: another module may hold a better one. */
static void search_refuse(struct search *search, int err, const struct message *refusal)
{
	if (refusal_rank(err) <= refusal_rank(search->refusal_err))
		return;
	search->refusal = *refusal;
	search->refusal_err = err;
}

/* Remember that module has a CPython without an interpreter. */
static void search_refuse_idle(struct search *search, const struct module *module)
{
	struct message refusal = {0};

	message_set(&refusal,
		    "process %d has CPython loaded (%s), but no interpreter runs in it yet, or "
		    "none any more: try again in a moment",
		    search->process->pid, module->code->path);
	search_refuse(search, -EAGAIN, &refusal);
}

/*
 * Whether a runtime is at addr whose version has to be known from elsewhere; the text
 * that tells it is written when the interpreter begins.
 */
static bool lacks_version(const struct search *search, const struct place *place)
{
	uint64_t word;

	return !place->version_hex &&
	       remote_memory_read_u64(search->memory, place->runtime_addr, &word) == 0 &&
	       memcmp(&word, DEBUG_OFFSETS_COOKIE, sizeof(word)) != 0;
}

/* Try a place. True if the search is over; a refusal is remembered. */
static bool search_try(struct search *search, const struct module *module,
		       const struct place *place)
{
	struct runtime *runtime = search->ret_runtime;
	struct message refusal = {0};
	remote_addr head_addr = 0;
	int err;

	if (lacks_version(search, place)) {
		search_refuse_idle(search, module);
		return false;
	}
	err = offsets_load(search->memory, place->runtime_addr, place->version_hex, &runtime->build,
			   &refusal);
	if (!err)
		err = remote_memory_read_u64(
			search->memory,
			place->runtime_addr + runtime->build.offsets.runtime.interpreters_head,
			&head_addr);
	if (err)
		search_refuse(search, err, &refusal);
	else if (!head_addr)
		search_refuse_idle(search, module);
	if (err || !head_addr)
		return false;
	runtime->addr = place->runtime_addr;
	runtime->found_by = place->found_by;
	(void)snprintf(runtime->image_path, sizeof(runtime->image_path), "%s", module->code->path);
	return true;
}

/* Names. */

/* PY_VERSION_HEX from the variable Py_Version that 3.11 and newer export; 0 if it is none. */
static uint32_t read_version(const struct search *search, remote_addr addr)
{
	uint64_t value;

	if (remote_memory_read_u64(search->memory, addr, &value) != 0)
		return 0;
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* The address of a symbol, by the file of the module. 0 or a negative errno. */
static int file_symbol(const struct search *search, const struct module *module, const char *name,
		       remote_addr *ret_addr)
{
	struct image *image = NULL;
	uint64_t vaddr, size_bytes, load_bias;
	int err = image_open(search->process, module->code, &image);

	if (!err)
		err = symtab_find(image, name, &vaddr, &size_bytes);
	if (!err)
		err = image_load_bias(image, module->code, &load_bias);
	image_close(image);
	if (!err)
		*ret_addr = vaddr + load_bias;
	return err;
}

static int place_in_image(const struct search *search, const struct module *module,
			  const struct image *image, struct place *ret_place)
{
	struct place place = {.found_by = "section"};
	uint64_t vaddr, size_bytes, load_bias;
	int err = image_load_bias(image, module->code, &load_bias);

	if (!err && image_section(image, ".PyRuntime", &vaddr, &size_bytes) != 0) {
		place.found_by = "symbol";
		err = symtab_find(image, "_PyRuntime", &vaddr, &size_bytes);
	}
	if (err)
		return err;
	place.runtime_addr = vaddr + load_bias;
	if (symtab_find(image, "Py_Version", &vaddr, &size_bytes) == 0)
		place.version_hex = read_version(search, vaddr + load_bias);
	*ret_place = place;
	return 0;
}

static int place_in_file(const struct search *search, const struct module *module,
			 struct place *ret_place, bool *ret_opened)
{
	struct image *image = NULL;
	int err = image_open(search->process, module->code, &image);

	*ret_opened = !err;
	if (!err)
		err = place_in_image(search, module, image, ret_place);
	image_close(image);
	return err;
}

static int place_in_memory(const struct search *search, const struct module *module,
			   struct place *ret_place)
{
	struct place place = {.found_by = "symbol in memory"};
	struct memory_image image = {0};
	remote_addr version_addr;
	int err = module->header ? memory_image_open(search->memory, module->header->start, &image)
				 : -ENOENT;

	if (!err)
		err = memory_image_symbol(&image, "_PyRuntime", &place.runtime_addr);
	if (!err && memory_image_symbol(&image, "Py_Version", &version_addr) == 0)
		place.version_hex = read_version(search, version_addr);
	memory_image_close(&image);
	if (!err)
		*ret_place = place;
	return err;
}

/* Variables. */

/* Find the text of sys.version. */
static bool find_version_text(struct search *search, const struct module *module,
			      struct version_text *ret_version)
{
	struct module_data data;
	bool found = false;

	module_data_init(&data, search->memory, search->maps, module);
	while (!found && search->scanned_bytes < SCAN_MAX_BYTES && module_data_next(&data)) {
		search->scanned_bytes += data.size;
		for (size_t i = 0; !found && i < data.size; i += 8)
			found = version_text_may_begin(data.block + i) &&
				version_text_parse((const char *)data.block + i, data.size - i,
						   ret_version);
	}
	module_data_done(&data);
	return found;
}

/* Find debug offsets by the cookie that they begin with. True if the search is over. */
static bool search_cookie(struct search *search, const struct module *module)
{
	struct place place = {.found_by = "cookie"};
	struct module_data data;
	bool found = false;

	module_data_init(&data, search->memory, search->maps, module);
	while (!found && search->scanned_bytes < SCAN_MAX_BYTES && module_data_next(&data)) {
		search->scanned_bytes += data.size;
		for (size_t i = 0; !found && i < data.size; i += 8) {
			place.runtime_addr = data.addr + i;
			found = memcmp(data.block + i, DEBUG_OFFSETS_COOKIE, 8) == 0 &&
				search_try(search, module, &place);
		}
	}
	module_data_done(&data);
	return found;
}

/* The list of interpreters of a version that has neither a symbol left nor debug offsets. */
static int place_by_scan(const struct search *search, const struct module *module,
			 const struct py_build *build, struct place *ret_place)
{
	struct place place = {.version_hex = build->version_hex, .found_by = "symbol"};
	int err = -ENOENT;

	/* 3.6 has no _PyRuntime, and this variable, which is not exported. */
	if (build->offsets.runtime.interpreters_head == 0)
		err = file_symbol(search, module, "interp_head", &place.runtime_addr);
	if (err) {
		place.found_by = "scan";
		err = interpreter_scan(search->memory, search->maps, module, build,
				       &place.runtime_addr);
	}
	if (!err)
		*ret_place = place;
	return err;
}

/* Module has the text of a version, but nothing that leads to its runtime. */
static bool search_by_version(struct search *search, const struct module *module,
			      const struct version_text *version)
{
	struct message refusal = {0};
	struct py_build build;
	struct place place;
	int err;

	if (version->is_pypy) {
		message_set(&refusal,
			    "process %d runs PyPy, which is no CPython: pysample reads "
			    "CPython " SUPPORTED_VERSIONS,
			    search->process->pid);
		search_refuse(search, -ENOTSUP, &refusal);
		return false;
	}
	err = offsets_of_version(version->version_hex, &build, &refusal);
	if (err) {
		search_refuse(search, err, &refusal);
		return false;
	}
	err = place_by_scan(search, module, &build, &place);
	if (!err)
		return search_try(search, module, &place);
	if (err == -ENOENT)
		search_refuse_idle(search, module);
	else
		search_refuse(search, err, &refusal);
	return false;
}

/* The search. */

static bool search_names(struct search *search, const struct module *module)
{
	struct version_text version;
	struct place place;
	bool opened;
	int err = place_in_file(search, module, &place, &opened);

	if (!opened)
		err = place_in_memory(search, module, &place);
	if (err)
		return false;
	if (lacks_version(search, &place) && find_version_text(search, module, &version))
		place.version_hex = version.version_hex;
	return search_try(search, module, &place);
}

static bool search_variables(struct search *search, const struct module *module)
{
	struct version_text version;

	return search_cookie(search, module) || (find_version_text(search, module, &version) &&
						 search_by_version(search, module, &version));
}

/* The module of the interpreter, by its names if there are any, else by its variables. */
static const struct module *search_modules(struct search *search)
{
	static bool (*const ways[])(struct search * search,
				    const struct module *module) = {search_names, search_variables};
	const struct modules *list = &search->modules;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < list->nr_modules; i++)
			if (ways[way](search, &list->modules[i]))
				return &list->modules[i];
	return NULL;
}

/* Count the CPythons that run besides the one that was found in module. */
static unsigned int count_others(const struct search *search, const struct module *module)
{
	const struct modules *list = &search->modules;
	struct runtime runtime = {0};
	struct search others = *search;
	unsigned int nr_others = 0;

	others.ret_runtime = &runtime;
	for (module++; module < list->modules + list->nr_modules; module++)
		if (module->kind != MODULE_OTHER)
			nr_others += search_names(&others, module);
	return nr_others;
}

static size_t read_build_id(const struct search *search, const struct module *module,
			    uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	struct memory_image memory_image = {0};
	struct image *image = NULL;
	size_t size_bytes = 0;

	if (image_open(search->process, module->code, &image) == 0)
		size_bytes = image_build_id(image, ret_build_id);
	else if (module->header &&
		 memory_image_open(search->memory, module->header->start, &memory_image) == 0)
		size_bytes = memory_image_build_id(&memory_image, ret_build_id);
	memory_image_close(&memory_image);
	image_close(image);
	return size_bytes;
}

static void keep_build_id(struct search *search, const struct module *module)
{
	struct runtime *runtime = search->ret_runtime;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t size_bytes = read_build_id(search, module, build_id);

	for (size_t i = 0; i < size_bytes; i++)
		(void)snprintf(runtime->build_id + 2 * i, 3, "%02x", build_id[i]);
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

/* '2' or '3' of a file whose name is that of a Python, like libpython3.10.so.1.0; else 0. */
static int major_in_name(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	if (strncmp(name, "python", 6) != 0)
		return 0;
	return name[6] == '2' || name[6] == '3' ? name[6] : 0;
}

/* Nothing was found. If a program is mapped that by its name is a Python, say that. */
static int refuse_by_name(const struct search *search, struct message *reterr)
{
	for (size_t i = 0; i < search->maps->nr_mappings; i++) {
		const struct mapping *mapping = &search->maps->mappings[i];
		int major = mapping->executable ? major_in_name(mapping->path) : 0;

		if (major == '2') {
			message_set(reterr,
				    "the target maps %s, a Python 2; pysample reads "
				    "CPython " SUPPORTED_VERSIONS,
				    mapping->path);
			return -ENOTSUP;
		}
		if (major) {
			message_set(reterr,
				    "process %d has %s mapped, but no interpreter was found in it: "
				    "try again if it is just starting; pysample reads "
				    "CPython " SUPPORTED_VERSIONS,
				    search->process->pid, mapping->path);
			return -EAGAIN;
		}
	}
	message_set(reterr,
		    "no CPython interpreter was found in process %d: give the id of the Python "
		    "process itself (pgrep -f NAME finds one), or try again if it is just starting",
		    search->process->pid);
	return -ENOENT;
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
	if (!search->refusal_err || !search->refusal.text[0])
		return refuse_by_name(search, reterr);
	if (reterr)
		*reterr = search->refusal;
	return search->refusal_err;
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
	const struct module *module;
	int err = check_readable(&search);

	if (!err)
		err = modules_list(process, maps, &search.modules);
	if (err)
		return err;
	module = search_modules(&search);
	if (module) {
		keep_build_id(&search, module);
		runtime.nr_others = count_others(&search, module);
		*ret_runtime = runtime;
	} else {
		err = refuse(&search, reterr);
	}
	modules_done(&search.modules);
	return err;
}
