/* SPDX-License-Identifier: MIT */
#include "symbols/core_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/descriptor_limit.h"
#include "symbols/core_file_search.h"
#include "symbols/debug_file.h"
#include "symbols/vdso_image.h"

const char *core_file_state_text(enum core_file_state state)
{
	switch (state) {
	case CORE_FILE_NOT_FOUND:
		return "not found";
	case CORE_FILE_DIFFERS:
		return "build ID differs";
	case CORE_FILE_UNPROVEN:
		return "not in the core to be compared";
	case CORE_FILE_NO_ELF:
		return "no program";
	case CORE_FILE_FORBIDDEN:
		return "permission denied";
	case CORE_FILE_TOO_MANY:
		return "too many open files";
	case CORE_FILE_PROVEN:
		return "used";
	case CORE_FILE_TRUSTED:
		return "used without proof";
	case CORE_FILE_NOT_LOOKED_FOR:
		break;
	}
	return "not looked for";
}

/* The files. */

/* The file of a mapping as it is known by now. */
static struct core_file *file_of(const struct core_files *files, const struct mapping *mapping)
{
	return mapping->inode ? &files->files[mapping->inode - 1] : NULL;
}

static struct core_file *find(struct core_files *files, const struct mapping *mapping)
{
	struct core_file *file = file_of(files, mapping);

	if (file && file->state == CORE_FILE_NOT_LOOKED_FOR)
		core_file_search(files, file);
	return file;
}

const struct core_file *core_files_find(struct core_files *files, const struct mapping *mapping)
{
	return find(files, mapping);
}

static int source_open(struct image_source *source, const struct mapping *mapping,
		       struct image **ret_image)
{
	struct core_files *files = (struct core_files *)source;
	const struct core_file *file = find(files, mapping);

	if (vdso_image_is(mapping))
		return vdso_image_open(core_memory(files->core), mapping, ret_image);
	if (!file || !file->image)
		return -ENOENT;
	int fd = fcntl(image_fd(file->image), F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : image_open_fd(fd, ret_image);
}

int core_files_open_debug(struct core_files *files, const struct mapping *mapping,
			  struct image **ret_image)
{
	const struct sysroot own = SYSROOT_OWN;
	const struct core_file *file = find(files, mapping);
	int err = -ENOENT;

	if (!file || !file->build_id_bytes)
		return -ENOENT;
	if (files->sysroot.fd >= 0)
		err = debug_file_open(&files->sysroot, file->build_id, file->build_id_bytes,
				      ret_image);
	if (err)
		err = debug_file_open(&own, file->build_id, file->build_id_bytes, ret_image);
	return err;
}

static int source_open_debug(struct image_source *source, const struct mapping *mapping,
			     struct image **ret_image)
{
	return core_files_open_debug((struct core_files *)source, mapping, ret_image);
}

/* What backs the memory. */

/*
 * The mapping of the beginning of the file that mapping is a part of, which tells the load
 * bias surely; mapping itself if there is none.
 */
static const struct mapping *first_of_module(const struct maps *maps, const struct mapping *mapping)
{
	for (const struct mapping *at = mapping; at >= maps->mappings; at--) {
		if (at->inode && at->inode != mapping->inode)
			break;
		if (at->inode && at->file_offset == 0)
			return at;
	}
	return mapping;
}

/*
 * Whether a part of the mapping is of a segment that the program may write: what it has there
 * is not what the file has. Memory that is read-only by now may have been relocated before.
 */
static bool may_be_written(const struct core_files *files, const struct core_file *file,
			   const struct mapping *mapping)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	size_t nr_segments;
	const Elf64_Phdr *segments = image_segments(file->image, &nr_segments);
	uint64_t load_bias;

	if (mapping->writable ||
	    image_load_bias(file->image, first_of_module(&files->core->maps, mapping), &load_bias))
		return true;
	for (size_t i = 0; i < nr_segments; i++) {
		/* Modulo 2^64: what wraps is compared with what wraps. */
		remote_addr start = (segments[i].p_vaddr & ~page_mask) + load_bias;
		uint64_t size = (segments[i].p_vaddr & page_mask) + segments[i].p_memsz;

		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_W) &&
		    (mapping->start - start < size ||
		     start - mapping->start < mapping->end - mapping->start))
			return true;
	}
	return false;
}

static int backing_fd(struct core_backing *backing, const struct mapping *mapping)
{
	struct core_files_backing *own = (struct core_files_backing *)backing;

	if (own->last_mapping != mapping) {
		const struct core_file *file = find(own->files, mapping);

		own->last_fd = file && file->image && !may_be_written(own->files, file, mapping)
				       ? image_fd(file->image)
				       : -1;
		own->last_mapping = mapping;
	}
	return own->last_fd;
}

/* Opening. */

static int list_files(struct core_files *files)
{
	const struct maps *maps = &files->core->maps;

	for (size_t i = 0; i < maps->nr_mappings; i++)
		if (maps->mappings[i].inode > files->nr_files)
			files->nr_files = maps->mappings[i].inode;
	files->files = calloc(files->nr_files ? files->nr_files : 1, sizeof(*files->files));
	if (!files->files)
		return -ENOMEM;
	for (size_t i = 0; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		struct core_file *file = file_of(files, mapping);

		if (!file)
			continue;
		file->path = mapping->path;
		if (mapping->file_offset == 0 && !file->header_addr)
			file->header_addr = mapping->start;
	}
	return 0;
}

int core_files_open(struct core *core, const struct core_file_places *places,
		    struct core_files **ret_files, struct message *reterr)
{
	static const struct image_source_ops ops = {
		.open = source_open,
		.open_debug = source_open_debug,
	};
	struct core_files *files = calloc(1, sizeof(*files));
	const struct mapping *executable = core_executable(core);
	int err = 0;

	if (!files)
		return -ENOMEM;
	*files = (struct core_files){
		.source = {.ops = &ops},
		.backing = {.backing = {.file_fd = backing_fd}, .files = files},
		.core = core,
		.places = *places,
		.sysroot = SYSROOT_OWN,
		.executable_inode = executable ? executable->inode : 0,
	};
	descriptor_limit_raise();
	if (places->sysroot)
		err = sysroot_open(places->sysroot, &files->sysroot, reterr);
	if (!err)
		err = list_files(files);
	if (err) {
		core_files_close(files);
		return err;
	}
	core_memory_set_backing(&core->memory, &files->backing.backing);
	*ret_files = files;
	return 0;
}

const struct sysroot *core_files_sysroot(const struct core_files *files)
{
	return files->sysroot.fd >= 0 ? &files->sysroot : NULL;
}

void core_files_close(struct core_files *files)
{
	if (!files)
		return;
	core_memory_set_backing(&files->core->memory, NULL);
	for (size_t i = 0; files->files && i < files->nr_files; i++) {
		image_close(files->files[i].image);
		free(files->files[i].found_path);
	}
	sysroot_close(&files->sysroot);
	free(files->files);
	free(files);
}

/* The list of modules. */

struct module_list {
	struct core_module *modules;
	uint32_t nr_modules;
	uint32_t max_modules;
};

static bool has_executable(const struct maps *maps, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (maps->mappings[i].inode && maps->mappings[i].executable)
			return true;
	return false;
}

/* Take the mappings [first, end) of one file if it is a program. */
static int add_module(struct core_files *files, struct module_list *list, size_t first, size_t end)
{
	const struct mapping *mappings = files->core->maps.mappings;
	const struct core_file *file = find(files, &mappings[first]);

	if (!file || file->state == CORE_FILE_NO_ELF ||
	    (!file->build_id_bytes && !has_executable(&files->core->maps, first, end)))
		return 0;
	struct core_module *grown = array_reserve(list->modules, list->nr_modules + 1,
						  &list->max_modules, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->modules = grown;
	list->modules[list->nr_modules++] = (struct core_module){
		.start = mappings[first].start,
		.end = mappings[end - 1].end,
		.file = file,
	};
	return 0;
}

int core_files_modules(struct core_files *files, struct core_module **ret_modules,
		       size_t *ret_nr_modules)
{
	const struct maps *maps = &files->core->maps;
	struct module_list list = {.modules = NULL};
	int err = 0;

	for (size_t i = 0, end; !err && i < maps->nr_mappings; i = end) {
		end = maps_module_end(maps, i);
		err = add_module(files, &list, i, end);
	}
	if (err) {
		free(list.modules);
		return err;
	}
	*ret_modules = list.modules;
	*ret_nr_modules = list.nr_modules;
	return 0;
}
