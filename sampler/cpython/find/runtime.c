/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/bounded_memory.h"
#include "sampler/cpython/find/build.h"
#include "sampler/cpython/find/elf_modules.h"
#include "sampler/cpython/find/file_names.h"
#include "sampler/cpython/find/interpreter_scan.h"
#include "sampler/cpython/find/version_text.h"
#include "symbols/elf/memory_image.h"

/* Limit on the variables that are scanned, in all modules; nothing is found beyond it. */
#define SCAN_MAX_BYTES (256u << 20)

/*
 * Number of pieces (bounded_memory.h) that a search may read, half a second to a second; after that
 * it finds nothing. A scan of SCAN_MAX_BYTES takes half of them; CPython in a large server is found
 * with 2,000.
 */
#define SEARCH_MAX_PIECES (1u << 19)

/* Number of places that are tried; most processes have one CPython, few have two. */
#define SEARCH_MAX_TRIES 64

/* The state of a search, and the most informative reason for a refusal. */
struct search {
	const struct program *program;
	struct remote_memory *memory;	   /* the program's, read through a budget */
	const volatile sig_atomic_t *stop; /* may be NULL */
	struct elf_modules modules;
	struct elf_module whole; /* all mappings as one module; only if the program is not alive */
	struct file_names_cache files;
	struct runtime *ret_runtime;
	uint64_t scanned_bytes;
	unsigned int nr_tries;
	struct message refusal;
	int refusal_err; /* 0 if nothing was refused yet */
};

/* Where a module has its CPython. */
struct place {
	remote_addr runtime_addr;
	uint32_t version_hex; /* 0 if unknown */
	const char *found_by;
};

/* How informative a refusal is: "no interpreter yet" ranks below "must be refused". */
static int refusal_rank(int err)
{
	/* -E2BIG concerns our own reads and says nothing about the target. */
	if (!err || err == -E2BIG)
		return 0;
	return err == -EFAULT ? 1 : err == -EAGAIN ? 2 : 3;
}

/* Remember a reason for refusal, unless a better one is known. */
static void search_refuse(struct search *search, int err, const struct message *refusal)
{
	if (refusal_rank(err) <= refusal_rank(search->refusal_err))
		return;
	search->refusal = *refusal;
	search->refusal_err = err;
}

/* Remember that module has a CPython without an interpreter. */
static void search_refuse_idle(struct search *search, const struct elf_module *module)
{
	struct message refusal = {0};

	message_set(&refusal,
		    "%s has CPython loaded (%s), but no interpreter is running: it has not started "
		    "yet, or has "
		    "ended%s",
		    search->program->name, module->code->path,
		    search->program->is_alive ? ": try again in a moment" : "");
	search_refuse(search, -EAGAIN, &refusal);
}

/*
 * Whether there is a runtime at place whose version is unknown and must come from elsewhere. The
 * text with the version is written when the interpreter begins.
 */
static bool lacks_version(const struct search *search, const struct place *place)
{
	uint64_t word;

	return !place->version_hex &&
	       remote_memory_read_u64(search->memory, place->runtime_addr, &word) == 0 &&
	       memcmp(&word, DEBUG_OFFSETS_COOKIE, sizeof(word)) != 0;
}

/* Try a place. Returns true if the search is over; remembers a refusal. */
static bool search_try(struct search *search, const struct elf_module *module,
		       const struct place *place)
{
	struct runtime *runtime = search->ret_runtime;
	struct message refusal = {0};
	remote_addr head_addr = 0;
	int err;

	if (search->nr_tries == SEARCH_MAX_TRIES)
		return false;
	search->nr_tries++;
	if (lacks_version(search, place)) {
		search_refuse_idle(search, module);
		return false;
	}
	err = build_load(search->memory, place->runtime_addr, place->version_hex, &runtime->build,
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

/* PY_VERSION_HEX from the variable Py_Version, exported by 3.11 and newer; 0 if it is invalid. */
static uint32_t read_version(const struct search *search, remote_addr addr)
{
	uint64_t value;

	if (remote_memory_read_u64(search->memory, addr, &value) != 0)
		return 0;
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* Fill place, which is zero, from the symbols in memory. An error means that they lack it. */
static int place_in_memory(const struct search *search, const struct elf_module *module,
			   struct place *place)
{
	struct memory_image image = {0};
	remote_addr version_addr;
	int err = module->header ? memory_image_open(search->memory, module->header->start, &image)
				 : -ENOENT;

	if (!err)
		err = memory_image_symbol(&image, "_PyRuntime", &place->runtime_addr);
	if (!err && memory_image_symbol(&image, "Py_Version", &version_addr) == 0)
		place->version_hex = read_version(search, version_addr);
	place->found_by = "symbol in memory";
	memory_image_close(&image);
	return err;
}

/* Variables. */

/* Find the text of sys.version. */
static bool find_version_text(struct search *search, const struct elf_module *module,
			      struct version_text *ret_version)
{
	struct module_data data;
	bool found = false;

	module_data_init(&data, search->memory, search->program->maps, module);
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
static bool search_cookie(struct search *search, const struct elf_module *module)
{
	struct place place = {.found_by = "cookie"};
	struct module_data data;
	bool found = false;

	module_data_init(&data, search->memory, search->program->maps, module);
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

/*
 * Search a module that has the text of a version but no name or cookie for its runtime: its list of
 * interpreters is in the same module.
 */
static bool search_by_version(struct search *search, const struct elf_module *module,
			      const struct version_text *version)
{
	struct place place = {.version_hex = version->version_hex, .found_by = "symbol"};
	struct message refusal = {0};
	struct file_names names;
	struct py_build build;
	uint64_t load_bias;
	int err = version->is_pypy ? -ENOTSUP
				   : offsets_of_version(version->version_hex, &build, &refusal);

	if (version->is_pypy)
		message_set(&refusal,
			    "%s runs PyPy, which is not CPython: pysample supports "
			    "CPython " SUPPORTED_VERSIONS,
			    search->program->name);
	if (!err) {
		/* 3.6 has no runtime, only the variable interp_head. */
		if (!build.offsets.runtime.interpreters_head &&
		    file_names_find(&search->files, search->program->images, module->code, &names,
				    &load_bias) == 0 &&
		    names.interp_head_vaddr) {
			place.runtime_addr = names.interp_head_vaddr + load_bias;
		} else {
			place.found_by = "scan";
			err = interpreter_scan(search->memory, search->program->maps, module,
					       &build, &place.runtime_addr);
		}
	}
	if (!err)
		return search_try(search, module, &place);
	if (err == -ENOENT) {
		search_refuse_idle(search, module);
		return false;
	}
	if (err == -E2BIG) {
		err = -ENOENT;
		message_set(&refusal,
			    "the search for an interpreter in %s was given up: too many false "
			    "candidates",
			    search->program->name);
	}
	search_refuse(search, err, &refusal);
	return false;
}

/* The search. */

static bool search_names(struct search *search, const struct elf_module *module)
{
	struct place place = {0};
	struct version_text version;
	struct file_names names;
	uint64_t load_bias;
	int err = file_names_find(&search->files, search->program->images, module->code, &names,
				  &load_bias);

	if (err) {
		err = place_in_memory(search, module, &place);
	} else if (names.runtime_vaddr) {
		place.runtime_addr = names.runtime_vaddr + load_bias;
		place.found_by = names.found_by;
		if (names.version_vaddr)
			place.version_hex = read_version(search, names.version_vaddr + load_bias);
	}
	if (err || !place.runtime_addr)
		return false;
	if (lacks_version(search, &place) && find_version_text(search, module, &version))
		place.version_hex = version.version_hex;
	return search_try(search, module, &place);
}

static bool search_variables(struct search *search, const struct elf_module *module)
{
	struct version_text version;

	return search_cookie(search, module) || (find_version_text(search, module, &version) &&
						 search_by_version(search, module, &version));
}

static bool is_stopped(const struct search *search)
{
	return search->stop && *search->stop;
}

/*
 * Find the module of the interpreter: first by names in all modules, then by variables. If the
 * program is not alive, all writable memory is searched as well, because a core file may lack the
 * note with its files.
 */
static const struct elf_module *search_modules(struct search *search)
{
	static bool (*const ways[])(struct search * search, const struct elf_module *module) = {
		search_names, search_variables};
	const struct elf_modules *list = &search->modules;
	const struct maps *maps = search->program->maps;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < list->nr_modules && !is_stopped(search); i++)
			if (ways[way](search, &list->modules[i]))
				return &list->modules[i];
	if (search->program->is_alive || !maps->nr_mappings)
		return NULL;
	search->whole = (struct elf_module){
		.kind = MODULE_OTHER, .code = maps->mappings, .end = maps->nr_mappings};
	return search_variables(search, &search->whole) ? &search->whole : NULL;
}

/* Count the further running CPythons in the modules after module. */
static unsigned int count_others(struct search *search, const struct elf_module *module)
{
	const struct elf_modules *list = &search->modules;
	struct runtime *found = search->ret_runtime;
	struct runtime other = {0};
	unsigned int nr_others = 0;

	search->ret_runtime = &other;
	for (module++; module < list->modules + list->nr_modules; module++)
		if (module->kind != MODULE_OTHER)
			nr_others += search_names(search, module);
	search->ret_runtime = found;
	return nr_others;
}

static void keep_build_id(struct search *search, const struct elf_module *module)
{
	struct runtime *runtime = search->ret_runtime;
	struct memory_image memory_image = {0};
	struct image *image = NULL;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t size_bytes = 0;

	if (image_source_open(search->program->images, module->code, &image) == 0)
		size_bytes = image_build_id(image, build_id);
	else if (module->header &&
		 memory_image_open(search->memory, module->header->start, &memory_image) == 0)
		size_bytes = memory_image_build_id(&memory_image, build_id);
	memory_image_close(&memory_image);
	image_close(image);
	for (size_t i = 0; i < size_bytes; i++)
		(void)snprintf(runtime->build_id + 2 * i, 3, "%02x", build_id[i]);
}

/* Returns -EPERM or -ESRCH if the process cannot be read at all, else 0. */
static int check_readable(const struct search *search)
{
	uint8_t byte;
	int err = 0;

	for (size_t i = 0; i < search->program->maps->nr_mappings; i++) {
		if (!search->program->maps->mappings[i].readable)
			continue;
		err = remote_memory_read(search->memory, search->program->maps->mappings[i].start,
					 &byte, 1);
		if (err != -EFAULT)
			return err;
	}
	return err == -EFAULT ? 0 : err;
}

/* '2' or '3' if the file is named like a Python, such as libpython3.10.so.1.0; else 0. */
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

/* No CPython was found. Name a mapped file that is called like a Python, if there is one. */
static int refuse_by_name(const struct search *search, struct message *reterr)
{
	for (size_t i = 0; i < search->program->maps->nr_mappings; i++) {
		const struct mapping *mapping = &search->program->maps->mappings[i];
		int major = mapping->executable ? major_in_name(mapping->path) : 0;

		if (major == '2') {
			message_set(reterr,
				    "the target maps %s, which is Python 2; pysample supports "
				    "CPython " SUPPORTED_VERSIONS,
				    mapping->path);
			return -ENOTSUP;
		}
		if (major) {
			message_set(reterr,
				    "%s has %s mapped, but no interpreter was found in it%s; "
				    "pysample supports CPython " SUPPORTED_VERSIONS,
				    search->program->name, mapping->path,
				    search->program->is_alive ? ": try again if it is just starting"
							      : "");
			return -EAGAIN;
		}
	}
	message_set(reterr, "no CPython interpreter was found in %s%s", search->program->name,
		    search->program->is_alive
			    ? ": give the id of the Python process itself (pysample ls lists "
			      "them), or try again if it is just starting"
			    : "");
	return -ENOENT;
}

/* Say why nothing was found. Returns an error of runtime_find(). */
static int refuse(const struct search *search, struct message *reterr)
{
	if (is_stopped(search))
		return -EINTR;
	/*
	 * The process has ended or called exec since its mappings were read. A process that ends
	 * loses its memory before it becomes a zombie, so it exists for a moment without mappings.
	 * The memory that was opened is released shortly after reads stop reaching it.
	 */
	if (search->program->maps->nr_mappings == 0 || check_readable(search) == -ESRCH ||
	    remote_memory_check(search->memory) == -ESRCH)
		return -ESRCH;
	if (!search->refusal_err || !search->refusal.text[0])
		return refuse_by_name(search, reterr);
	if (reterr)
		*reterr = search->refusal;
	return search->refusal_err;
}

int runtime_find(const struct program *program, const volatile sig_atomic_t *stop,
		 struct runtime *ret_runtime, struct message *reterr)
{
	struct runtime runtime = {0};
	struct bounded_memory bounded;
	struct search search = {
		.program = program,
		.memory = &bounded.memory,
		.stop = stop,
		.ret_runtime = &runtime,
	};
	const struct elf_module *module;
	int err;

	bounded_memory_init(&bounded, program->memory, SEARCH_MAX_PIECES, NULL, UINT64_MAX);
	err = check_readable(&search);
	if (!err)
		err = elf_modules_list(program->maps, program->exe_path, &search.modules);
	if (err)
		return err;
	module = search_modules(&search);
	if (module) {
		keep_build_id(&search, module);
		if (module != &search.whole)
			runtime.nr_others = count_others(&search, module);
		*ret_runtime = runtime;
	} else {
		err = refuse(&search, reterr);
	}
	elf_modules_done(&search.modules);
	file_names_cache_done(&search.files);
	return err;
}
