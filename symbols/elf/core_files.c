/* SPDX-License-Identifier: MIT */
#include "symbols/elf/core_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/core/file_blocks.h"
#include "procmem/descriptor_limit.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf/memory_image.h"
#include "symbols/elf/vdso_image.h"

/* A file without a build ID is proven by its first page, if the core has all of it. */
enum { PAGE_BYTES = 4096 };

/* Limit on the leading folders removed from a path: a debugger's core has one or two dozen. */
enum { MAX_LEADING_FOLDERS = 64 };

struct search {
	struct core_files *files;
	struct core_file *file;
	/* The start of the file as the core has it, without bytes from any file. */
	uint8_t page[PAGE_BYTES];
	size_t page_bytes;
};

/* The proof. */

static void read_page(struct search *search)
{
	struct core_file *file = search->file;
	struct remote_memory *memory = core_memory(search->files->core);
	struct remote_range range = {
		.addr = file->header_addr,
		.buffer = search->page,
		.size = PAGE_BYTES,
	};
	struct memory_image image;

	if (!file->header_addr || remote_memory_read_ranges(memory, &range, 1))
		return;
	search->page_bytes = range.done_bytes;
	if (memory_image_open(memory, file->header_addr, &image) == 0) {
		file->build_id_bytes = memory_image_build_id(&image, file->build_id);
		memory_image_close(&image);
	}
}

/*
 * As read_page(), from the core alone. With a backing, an address in the header could lead into
 * another file, which would be searched for first, and whose header could lead to a third.
 */
static void read_saved_page(struct search *search)
{
	struct core_memory *memory = &search->files->core->memory;
	struct core_backing *backing = memory->backing;

	core_memory_set_backing(memory, NULL);
	read_page(search);
	core_memory_set_backing(memory, backing);
}

/* Whether the core has enough to distinguish the file from any other. */
static bool has_proof(const struct search *search)
{
	return search->file->build_id_bytes || search->page_bytes == PAGE_BYTES;
}

/* Whether the saved start of the file is not that of an ELF file. */
static bool is_no_elf(const struct search *search)
{
	return search->page_bytes >= SELFMAG && memcmp(search->page, ELFMAG, SELFMAG) != 0;
}

/* Whether the image matches all that the core has of the file: nothing, if there is no proof. */
static bool is_same(const struct search *search, const struct image *image)
{
	const struct core_file *file = search->file;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint8_t page[PAGE_BYTES] = {0}; /* a page has zeros after the end of its file */

	if (file->build_id_bytes)
		return image_build_id(image, build_id) == file->build_id_bytes &&
		       memcmp(build_id, file->build_id, file->build_id_bytes) == 0;
	(void)file_read_at(image_fd(image), 0, page, search->page_bytes);
	return memcmp(page, search->page, search->page_bytes) == 0;
}

/* One place. */

/* Who named the path. */
enum path_source { PATH_FROM_CORE, PATH_FROM_USER };

/* Record the state and the path. Of several files that are not used the first one is kept. */
static void record_state(struct search *search, enum core_file_state state, const char *path)
{
	struct core_file *file = search->file;

	if (state < CORE_FILE_PROVEN && file->state != CORE_FILE_NOT_FOUND)
		return;
	file->state = state;
	free(file->found_path);
	file->found_path = strdup(path);
}

/* Record why a file could not be opened. */
static void record_error(struct search *search, int err, const char *path)
{
	if (err == -EPERM)
		record_state(search, CORE_FILE_FORBIDDEN, path);
	else if (err == -EMFILE || err == -ENFILE)
		record_state(search, CORE_FILE_TOO_MANY, path);
}

/*
 * Use the file of descriptor fd if it is the one searched for. Takes ownership of fd, which may
 * be a negative errno instead.
 */
static bool try_fd(struct search *search, int fd, const char *path, enum path_source source)
{
	struct image *image;

	if (fd >= 0 && descriptor_limit_is_near(fd)) {
		(void)close(fd);
		fd = -EMFILE;
	}
	if (fd < 0) {
		record_error(search, fd, path);
		return false;
	}
	if (image_open_fd(fd, &image))
		return false;
	if (!is_same(search, image)) {
		record_state(search, CORE_FILE_DIFFERS, path);
	} else if (!has_proof(search) && source == PATH_FROM_CORE) {
		record_state(search, CORE_FILE_UNPROVEN, path);
	} else {
		record_state(search, has_proof(search) ? CORE_FILE_PROVEN : CORE_FILE_TRUSTED,
			     path);
		search->file->image = image;
		return true;
	}
	image_close(image);
	return false;
}

/* As try_fd(), for a path in our own root. */
static bool try_path(struct search *search, const char *path, enum path_source source)
{
	const struct sysroot own = SYSROOT_OWN;

	return try_fd(search,
		      source == PATH_FROM_USER ? sysroot_open_named(path)
					       : sysroot_open_file(&own, path),
		      path, source);
}

/* The places. */

static bool try_executable(struct search *search)
{
	const struct core_files *files = search->files;

	return files->places.executable && files->executable_inode &&
	       search->file == &files->files[files->executable_inode - 1] &&
	       try_path(search, files->places.executable, PATH_FROM_USER);
}

/* Try the path below the sysroot. path has no leading slash. */
static bool try_below_sysroot(struct search *search, const char *path)
{
	const struct core_files *files = search->files;
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", files->places.sysroot, path) < 0) {
		name = NULL;
		return false;
	}
	return try_fd(search, sysroot_open_file(&files->sysroot, path), name, PATH_FROM_USER);
}

/* Try the path below the sysroot, then without its first folder, and so on. */
static bool try_sysroot(struct search *search)
{
	const char *path = search->file->path;
	bool found = false;

	if (search->files->sysroot.fd < 0)
		return false;
	for (size_t i = 0; i <= MAX_LEADING_FOLDERS && !found; i++) {
		path += strspn(path, "/");
		if (!*path)
			break;
		found = try_below_sysroot(search, path);
		path += strcspn(path, "/");
	}
	return found;
}

/* Try the last component of the path in each of the folders. */
static bool try_folders(struct search *search)
{
	const char *slash = strrchr(search->file->path, '/');
	const char *folder = search->files->places.folders;
	bool found = false;

	while (slash && folder && *folder && !found) {
		size_t length = strcspn(folder, ":");
		cleanup_free char *path = NULL;

		if (asprintf(&path, "%.*s%s", (int)length, folder, slash) < 0) {
			path = NULL;
			break;
		}
		found = length && try_path(search, path, PATH_FROM_USER);
		folder += length + (folder[length] == ':');
	}
	return found;
}

static void core_file_search(struct core_files *files, struct core_file *file)
{
	struct search search = {.files = files, .file = file};

	file->state = CORE_FILE_NOT_FOUND;
	read_saved_page(&search);
	if (is_no_elf(&search)) {
		file->state = CORE_FILE_NO_ELF;
		return;
	}
	(void)(try_executable(&search) || try_sysroot(&search) ||
	       (file->path[0] == '/' && try_path(&search, file->path, PATH_FROM_CORE)) ||
	       try_folders(&search));
}

const char *core_file_state_text(enum core_file_state state)
{
	switch (state) {
	case CORE_FILE_NOT_FOUND:
		return "not found";
	case CORE_FILE_DIFFERS:
		return "build ID differs";
	case CORE_FILE_UNPROVEN:
		return "not verified: the core has too little of it";
	case CORE_FILE_NO_ELF:
		return "not an ELF file";
	case CORE_FILE_FORBIDDEN:
		return "permission denied";
	case CORE_FILE_TOO_MANY:
		return "too many open files";
	case CORE_FILE_PROVEN:
		return "used";
	case CORE_FILE_TRUSTED:
		return "used, not verified";
	case CORE_FILE_NOT_LOOKED_FOR:
		break;
	}
	return "not searched for";
}

/* The files. */

/* The file of a mapping, searched for or not. */
static struct core_file *file_of(const struct core_files *files, const struct mapping *mapping)
{
	return mapping->inode ? &files->files[mapping->inode - 1] : NULL;
}

static struct core_file *find_file(struct core_files *files, const struct mapping *mapping)
{
	struct core_file *file = file_of(files, mapping);

	if (file && file->state == CORE_FILE_NOT_LOOKED_FOR)
		core_file_search(files, file);
	return file;
}

const struct core_file *core_files_find(struct core_files *files, const struct mapping *mapping)
{
	return find_file(files, mapping);
}

static int source_open(struct image_source *source, const struct mapping *mapping,
		       struct image **ret_image)
{
	struct core_files *files = (struct core_files *)source;
	const struct core_file *file = find_file(files, mapping);

	if (mapping_is_vdso(mapping))
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
	const struct core_file *file = find_file(files, mapping);
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

/* The backing of the memory. */

/*
 * The mapping of the start of the file of which mapping is a part; it determines the load bias
 * reliably. mapping itself if there is none.
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
 * Whether a part of the mapping belongs to a writable segment, so that its memory may differ from
 * the file. Memory that is read-only now may have been relocated before.
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
		/* Modulo 2^64; the comparisons below are, too. */
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
		const struct core_file *file = find_file(own->files, mapping);

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

/* Add the mappings [first, end) of one file if it is a program or library. */
static int add_module(struct core_files *files, struct module_list *list, size_t first, size_t end)
{
	const struct mapping *mappings = files->core->maps.mappings;
	const struct core_file *file = find_file(files, &mappings[first]);

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
