/* SPDX-License-Identifier: MIT */
#include "symbols/core_file_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/descriptor_limit.h"
#include "procmem/file_blocks.h"
#include "symbols/memory_image.h"

/* What proves a file without a build ID, if all of it is in the core: its first page. */
enum { PAGE_BYTES = 4096 };

/* More leading folders are not taken off a path: a debugger's core names one or two dozen. */
enum { MAX_LEADING_FOLDERS = 64 };

struct search {
	struct core_files *files;
	struct core_file *file;
	/* What the core has of the beginning of the file, without help of any file. */
	uint8_t page[PAGE_BYTES];
	size_t page_bytes;
};

/* What is to be compared. */

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
 * As read_page(), out of the core alone: what a header leads to may lie in another file,
 * which would be searched for first, and its header may lead to a third.
 */
static void read_saved_page(struct search *search)
{
	struct core_memory *memory = &search->files->core->memory;
	struct core_backing *backing = memory->backing;

	core_memory_set_backing(memory, NULL);
	read_page(search);
	core_memory_set_backing(memory, backing);
}

/* Whether the core has enough to tell the file from any other. */
static bool has_proof(const struct search *search)
{
	return search->file->build_id_bytes || search->page_bytes == PAGE_BYTES;
}

/* What is mapped begins, as the core has it, in a way that no program does. */
static bool is_no_elf(const struct search *search)
{
	return search->page_bytes >= SELFMAG && memcmp(search->page, ELFMAG, SELFMAG) != 0;
}

/* Whether the image is all that the core has of the file: without a proof it may be nothing. */
static bool is_same(const struct search *search, const struct image *image)
{
	const struct core_file *file = search->file;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint8_t page[PAGE_BYTES] = {0}; /* behind the end of a file a page has zeros */

	if (file->build_id_bytes)
		return image_build_id(image, build_id) == file->build_id_bytes &&
		       memcmp(build_id, file->build_id, file->build_id_bytes) == 0;
	(void)file_read_at(image_fd(image), 0, page, search->page_bytes);
	return memcmp(page, search->page, search->page_bytes) == 0;
}

/* One place. */

/* Who said that the file is there. */
enum origin { ORIGIN_CORE, ORIGIN_USER };

/* Use the image, or say what it was; the first that was found is told. */
static void settle(struct search *search, enum core_file_state state, const char *path)
{
	struct core_file *file = search->file;

	if (state < CORE_FILE_PROVEN && file->state != CORE_FILE_NOT_FOUND)
		return;
	file->state = state;
	free(file->found_path);
	file->found_path = strdup(path);
}

/* Say why there may be a file that could not be opened. */
static void settle_error(struct search *search, int err, const char *path)
{
	if (err == -EPERM)
		settle(search, CORE_FILE_FORBIDDEN, path);
	else if (err == -EMFILE || err == -ENFILE)
		settle(search, CORE_FILE_TOO_MANY, path);
}

/* Use the file of that descriptor, which is taken over, or an error, if it is the one. */
static bool try_fd(struct search *search, int fd, const char *path, enum origin origin)
{
	struct image *image;

	if (fd >= 0 && descriptor_limit_is_near(fd)) {
		(void)close(fd);
		fd = -EMFILE;
	}
	if (fd < 0) {
		settle_error(search, fd, path);
		return false;
	}
	if (image_open_fd(fd, &image))
		return false;
	if (!is_same(search, image)) {
		settle(search, CORE_FILE_DIFFERS, path);
	} else if (!has_proof(search) && origin == ORIGIN_CORE) {
		settle(search, CORE_FILE_UNPROVEN, path);
	} else {
		settle(search, has_proof(search) ? CORE_FILE_PROVEN : CORE_FILE_TRUSTED, path);
		search->file->image = image;
		return true;
	}
	image_close(image);
	return false;
}

/* As try_fd(), of a path in our own root. */
static bool try_path(struct search *search, const char *path, enum origin origin)
{
	const struct sysroot own = SYSROOT_OWN;

	return try_fd(search,
		      origin == ORIGIN_USER ? sysroot_open_named(path)
					    : sysroot_open_file(&own, path),
		      path, origin);
}

/* The places. */

static bool try_executable(struct search *search)
{
	const struct core_files *files = search->files;

	return files->places.executable && files->executable_inode &&
	       search->file == &files->files[files->executable_inode - 1] &&
	       try_path(search, files->places.executable, ORIGIN_USER);
}

/* The path below the sysroot, without slashes before it. */
static bool try_below_sysroot(struct search *search, const char *path)
{
	const struct core_files *files = search->files;
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", files->places.sysroot, path) < 0) {
		name = NULL;
		return false;
	}
	return try_fd(search, sysroot_open_file(&files->sysroot, path), name, ORIGIN_USER);
}

/* The path below the sysroot, then without its first folder, and so on. */
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

/* The last name of the path in each of the folders. */
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
		found = length && try_path(search, path, ORIGIN_USER);
		folder += length + (folder[length] == ':');
	}
	return found;
}

void core_file_search(struct core_files *files, struct core_file *file)
{
	struct search search = {.files = files, .file = file};

	file->state = CORE_FILE_NOT_FOUND;
	read_saved_page(&search);
	if (is_no_elf(&search)) {
		file->state = CORE_FILE_NO_ELF;
		return;
	}
	(void)(try_executable(&search) || try_sysroot(&search) ||
	       (file->path[0] == '/' && try_path(&search, file->path, ORIGIN_CORE)) ||
	       try_folders(&search));
}
