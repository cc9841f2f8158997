/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "procmem/ancestry.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/machine.h"
#include "procmem/mapped_file.h"
#include "procmem/maps.h"
#include "procmem/procfile.h"
#include "symbols/elf/live_images.h"
#include "symbols/elf/module_symbols.h"
#include "symbols/jit/gdb_jit.h"
#include "symbols/jit/jit_lists.h"
#include "symbols/jit/jitdump_body.h"
#include "symbols/jit/trampoline_arenas.h"

/* The kernel reports the start of a process in hundredths of a second. */
#define START_STEP_NS 10000000u

struct jit_sources {
	const struct process *process; /* borrowed */
	struct remote_memory *memory;  /* borrowed */
	struct live_images images;
	struct jit_map *map;
	struct jit_lists *lists;      /* NULL: files only */
	const struct maps *core_maps; /* borrowed, like core_images; NULL: not a core */
	struct image_source *core_images;
	struct jit_file files[JIT_SOURCES_MAX_FILES];
	uint32_t nr_files;
};

/* A process whose files are searched for. */
struct owner {
	const struct process *process;
	uint64_t age_ns; /* UINT64_MAX: unknown */
	uint64_t end_ns; /* CLOCK_MONOTONIC; what it did later does not count */
};

struct jit_sources *jit_sources_create(const struct process *process, struct remote_memory *memory)
{
	struct jit_sources *sources = calloc(1, sizeof(*sources));

	if (!sources)
		return NULL;
	sources->process = process;
	sources->memory = memory;
	sources->map = jit_map_create();
	if (process)
		live_images_init(&sources->images, process);
	if (memory)
		sources->lists = jit_lists_create(memory);
	if (sources->map && (sources->lists || !memory))
		return sources;
	jit_sources_destroy(sources);
	return NULL;
}

struct jit_sources *jit_sources_create_of_core(struct remote_memory *memory,
					       const struct maps *maps, struct image_source *images)
{
	struct jit_sources *sources = jit_sources_create(NULL, memory);

	if (!sources)
		return NULL;
	sources->core_maps = maps;
	sources->core_images = images;
	return sources;
}

void jit_sources_destroy(struct jit_sources *sources)
{
	if (!sources)
		return;
	for (uint32_t i = 0; i < sources->nr_files; i++) {
		free(sources->files[i].path);
		jitdump_close(sources->files[i].jitdump);
		perf_map_close(sources->files[i].perf_map);
		file_tail_done(&sources->files[i].tail);
	}
	jit_lists_destroy(sources->lists);
	jit_map_destroy(sources->map);
	free(sources);
}

const struct jit_map *jit_sources_map(const struct jit_sources *sources)
{
	return sources->map;
}

const struct jit_file *jit_sources_files(const struct jit_sources *sources, uint32_t *ret_nr_files)
{
	*ret_nr_files = sources->nr_files;
	return sources->files;
}

/* Whether the times of a code are processor ticks. */
static bool has_ticks(const struct jit_sources *sources, const struct jit_code *code)
{
	return code->source == JIT_SOURCE_JITDUMP &&
	       jitdump_header(sources->files[code->file_index].jitdump)->has_ticks;
}

const struct jit_code *jit_sources_find(const struct jit_sources *sources, remote_addr addr,
					uint64_t time_ns)
{
	const struct jit_code *code = jit_map_find(sources->map, addr, time_ns);

	if (code && !has_ticks(sources, code))
		return code;
	code = jit_map_find_in(sources->map, JIT_SOURCE_JITDUMP, addr, JIT_MAP_NOW_NS);
	return code && has_ticks(sources, code) ? code : NULL;
}

/* Times. */

/* The start of a process of that age, by the given clock; 0 if unknown. */
static uint64_t start_ns(uint64_t age_ns, clockid_t clock)
{
	const uint64_t now_ns = clock_ns(clock);

	return age_ns < now_ns ? now_ns - age_ns : 0;
}

/* Files. */

static const struct jit_file *find_file(const struct jit_sources *sources, const struct stat *st)
{
	for (uint32_t i = 0; i < sources->nr_files; i++)
		if (sources->files[i].device == st->st_dev && sources->files[i].inode == st->st_ino)
			return &sources->files[i];
	return NULL;
}

/* Whether the file is a regular one and belongs to the process's user or to root. */
static bool is_trusted(const struct stat *st, const struct process *process)
{
	return S_ISREG(st->st_mode) && (st->st_uid == process->uid || st->st_uid == 0);
}

/* Create the reader of a file. Takes ownership of fd. */
static int open_file(struct jit_file *file, uint32_t index, int fd, const struct owner *owner)
{
	if (file->source == JIT_SOURCE_PERF_MAP)
		return perf_map_open(fd, index, start_ns(owner->age_ns, CLOCK_MONOTONIC),
				     &file->perf_map);
	int err = jitdump_open(fd, index, &file->jitdump);

	if (!err)
		jitdump_set_end(file->jitdump, owner->end_ns);
	return err;
}

/*
 * Add a file, unless it is already known or there is no room. If it has an owner process it must
 * be trusted. Takes ownership of fd. Returns 0 or -ENOMEM.
 */
static int add_file(struct jit_sources *sources, const struct owner *owner, enum jit_source source,
		    int fd, const char *path)
{
	cleanup_close int guard = fd;
	const uint32_t index = sources->nr_files;
	struct jit_file file = {.source = source};
	struct stat st;
	int err = 0;

	if (index == JIT_SOURCES_MAX_FILES || fstat(fd, &st) || find_file(sources, &st))
		return 0;
	file.path = strdup(path);
	if (!file.path)
		return -ENOMEM;
	file.device = st.st_dev;
	file.inode = st.st_ino;
	file.pid = owner->process ? owner->process->pid : 0;
	if (owner->process && !is_trusted(&st, owner->process))
		file.error = -EPERM;
	else
		err = open_file(&file, index, take_fd(guard), owner);
	if (err) {
		free(file.path);
		return err;
	}
	sources->files[sources->nr_files++] = file;
	return 0;
}

/* Searching for files. */

/* Whether a path is that of a jitdump: …/jit-NUMBER.dump. */
static bool is_jitdump_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t nr_digits;

	if (strncmp(name, "jit-", strlen("jit-")) != 0)
		return false;
	name += strlen("jit-");
	nr_digits = strspn(name, "0123456789");
	return nr_digits > 0 && strcmp(name + nr_digits, ".dump") == 0;
}

/* Whether a file starts like a jitdump. */
static bool is_jitdump(int fd)
{
	uint8_t bytes[JITDUMP_HEADER_BYTES];
	struct jitdump_header header;
	const ssize_t nr = pread(fd, bytes, sizeof(bytes), 0);

	return nr >= 4 && jitdump_header_decode(bytes, (size_t)nr, &header) != -EBADMSG;
}

int jit_sources_add_file(struct jit_sources *sources, int fd, const char *path)
{
	const struct owner nobody = {.age_ns = UINT64_MAX, .end_ns = UINT64_MAX};
	const bool is_dump = is_jitdump(fd) || is_jitdump_path(path);

	return add_file(sources, &nobody, is_dump ? JIT_SOURCE_JITDUMP : JIT_SOURCE_PERF_MAP, fd,
			path);
}

static int find_jitdumps(struct jit_sources *sources, const struct owner *owner,
			 const struct maps *maps)
{
	int err = 0;

	for (size_t i = 0; !err && i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (!mapping->executable || !is_jitdump_path(mapping->path))
			continue;
		int fd = mapped_file_open(owner->process, mapping);

		if (fd >= 0)
			err = add_file(sources, owner, JIT_SOURCE_JITDUMP, fd, mapping->path);
		else if (fd == -ENOMEM)
			err = fd;
	}
	return err;
}

/* The process id in its own PID namespace. */
static pid_t own_pid(const struct process *process)
{
	cleanup_free char *status = NULL;
	size_t size;

	if (process_read_whole_file(process, "status", PROCFILE_STATUS_MAX_BYTES, &status, &size))
		return process->pid;
	return procfile_innermost_id(status, process->pid);
}

/* Open a file in the process's /tmp, following no link. Returns the descriptor, or -ENOENT. */
static int open_in_tmp(const struct process *process, const char *name)
{
	char root[PROCESS_THREAD_PATH_MAX_BYTES];
	pid_t tid;

	if (process_live_thread(process, &tid))
		return -ENOENT;
	process_thread_path(root, tid, "root/tmp");
	cleanup_close int tmp_fd =
		openat(process->proc_fd, root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = tmp_fd < 0 ? -1
			    : openat(tmp_fd, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -ENOENT : fd;
}

/* Whether a file was last written before the process began, by an earlier process with its id. */
static bool is_stale(int fd, const struct owner *owner)
{
	struct stat st;

	if (owner->age_ns == UINT64_MAX || fstat(fd, &st))
		return false;
	return timespec_ns(st.st_mtim) + START_STEP_NS < start_ns(owner->age_ns, CLOCK_REALTIME);
}

static int find_perf_map(struct jit_sources *sources, const struct owner *owner)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", own_pid(owner->process));
	fd = open_in_tmp(owner->process, path + strlen("/tmp/"));
	if (fd < 0)
		return 0;
	if (is_stale(fd, owner)) {
		(void)close(fd);
		return 0;
	}
	return add_file(sources, owner, JIT_SOURCE_PERF_MAP, fd, path);
}

static int find_files_of(struct jit_sources *sources, const struct owner *owner)
{
	struct maps maps = {0};
	int err = maps_read(owner->process, &maps);

	if (!err)
		err = find_jitdumps(sources, owner, &maps);
	if (!err)
		err = find_perf_map(sources, owner);
	/* After a fork the lists are in the child's own memory. */
	if (!err && owner->process == sources->process)
		err = jit_lists_find(sources->lists, &maps, &sources->images.source);
	maps_done(&maps);
	return err;
}

/* Add the files of the ancestors. Errors other than -ENOMEM are ignored. Returns 0 or -ENOMEM. */
static int find_files_of_ancestors(struct jit_sources *sources, const struct owner *owner)
{
	struct process opened[JIT_SOURCES_MAX_ANCESTORS];
	struct owner child = *owner;
	size_t nr_opened = 0;
	int err = 0;

	while (nr_opened < JIT_SOURCES_MAX_ANCESTORS && err != -ENOMEM &&
	       !ancestry_parent(child.process, &opened[nr_opened])) {
		const struct owner parent = {
			.process = &opened[nr_opened++],
			.age_ns = process_age_ns(&opened[nr_opened - 1]),
			.end_ns = start_ns(child.age_ns, CLOCK_MONOTONIC) + START_STEP_NS,
		};

		err = find_files_of(sources, &parent);
		child = parent;
	}
	while (nr_opened > 0)
		process_close(&opened[--nr_opened]);
	return err == -ENOMEM ? err : 0;
}

/* Reading files. */

/* How a file is read. */
enum manner {
	READ_NEW,   /* only if the file or its tail has changed */
	READ_AGAIN, /* in any case: it may have been replaced or rewritten in place */
	READ_FINAL, /* nothing more will be written */
};

/* Read a jitdump and its tail, which the process has not written to the file yet. */
static int read_jitdump(struct jit_sources *sources, struct jit_file *file, enum manner manner)
{
	struct file_tail *tail = &file->tail;
	bool is_new;
	int err = file_tail_read(tail, sources->memory, jitdump_fd(file->jitdump), &is_new);

	jitdump_set_tail(file->jitdump, tail->offset, tail->bytes, tail->nr_bytes);
	if (err || (manner == READ_NEW && !is_new))
		return err;
	return jitdump_read(file->jitdump, sources->map, manner == READ_FINAL);
}

static int read_file(struct jit_sources *sources, struct jit_file *file, enum manner manner)
{
	int err;

	if (file->error)
		return 0;
	if (file->jitdump)
		err = read_jitdump(sources, file, manner);
	else
		err = perf_map_read(file->perf_map, sources->map, manner == READ_FINAL);
	if (err == -ENOMEM)
		return err;
	file->error = err;
	return 0;
}

/* Read what is new in the files. Returns 0 or -ENOMEM. */
static int read_files(struct jit_sources *sources, enum manner manner)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < sources->nr_files; i++)
		err = read_file(sources, &sources->files[i], manner);
	return err;
}

int jit_sources_read_new(struct jit_sources *sources)
{
	return read_files(sources, READ_NEW);
}

/* Find the FILEs through which the process writes its jitdumps. */
static void find_writers(struct jit_sources *sources)
{
	uint32_t nr_lists;
	const remote_addr *lists = jit_lists_stdio(sources->lists, &nr_lists);

	for (uint32_t i = 0; i < sources->nr_files; i++) {
		struct jit_file *file = &sources->files[i];

		if (file->jitdump)
			file_tail_find(&file->tail, sources->process, sources->memory, lists,
				       nr_lists, jitdump_fd(file->jitdump));
	}
}

/* Search for files of the process and its ancestors. Returns as jit_sources_refresh(). */
static int find_files(struct jit_sources *sources)
{
	const struct owner owner = {
		.process = sources->process,
		.age_ns = process_age_ns(sources->process),
		.end_ns = UINT64_MAX,
	};
	int found = find_files_of(sources, &owner);
	int err = found ? 0 : find_files_of_ancestors(sources, &owner);

	if (sources->lists)
		find_writers(sources);
	return err ? err : found;
}

int jit_sources_refresh(struct jit_sources *sources, bool is_final)
{
	int found = 0;
	int err;

	if (sources->process)
		found = find_files(sources);
	else if (sources->core_maps)
		found = jit_lists_find(sources->lists, sources->core_maps, sources->core_images);
	err = found == -ENOMEM ? found : 0;
	if (!err)
		err = read_files(sources, is_final ? READ_FINAL : READ_AGAIN);
	if (!found && sources->lists) {
		/* A core's codes exist at all times. */
		const uint64_t first_ns =
			sources->process
				? start_ns(process_age_ns(sources->process), CLOCK_MONOTONIC)
				: 0;

		found = jit_lists_read(sources->lists, sources->map, first_ns,
				       clock_ns(CLOCK_MONOTONIC));
	}
	return err ? err : found;
}

/* Trampolines. */

int jit_sources_add_trampolines(struct jit_sources *sources)
{
	static const char *const names[] = {"_PyRuntime"};
	struct module_symbols *runtimes = module_symbols_create(sources->memory, names, 1);
	const uint64_t from_ns = start_ns(process_age_ns(sources->process), CLOCK_MONOTONIC);
	struct maps maps = {.mappings = NULL};
	const remote_addr *places = NULL;
	uint32_t nr_places = 0;
	int err = runtimes ? maps_read(sources->process, &maps) : -ENOMEM;

	if (!err)
		err = module_symbols_find(runtimes, &maps, &sources->images.source);
	if (!err)
		places = module_symbols_places(runtimes, 0, &nr_places);
	for (uint32_t i = 0; !err && i < nr_places; i++)
		err = trampoline_arenas_read(sources->memory, &maps, places[i], sources->map,
					     from_ns);
	maps_done(&maps);
	module_symbols_destroy(runtimes);
	return err;
}

int jit_sources_add_code(struct jit_sources *sources, enum jit_source source,
			 remote_addr start_addr, uint64_t nr_bytes, const char *name)
{
	const struct jit_code code = {
		.start_addr = start_addr,
		.nr_bytes = nr_bytes,
		.from_ns = start_ns(process_age_ns(sources->process), CLOCK_MONOTONIC),
		.to_ns = JIT_MAP_OPEN_NS,
		.name = name,
		.source = source,
	};
	int err = jit_map_find(sources->map, start_addr, JIT_MAP_NOW_NS)
			  ? 0
			  : jit_map_add(sources->map, &code, strlen(name), NULL);

	return err == -ENOMEM ? err : 0;
}

/* Instructions, lines and unwind information. */

/* Replace the instructions by those in memory if the code still exists. */
static void read_code(const struct jit_sources *sources, const struct jit_code *code,
		      struct jit_body *body)
{
	cleanup_free uint8_t *bytes = NULL;

	if (!sources->memory || code->to_ns != JIT_MAP_OPEN_NS ||
	    code->nr_bytes > JITDUMP_MAX_RECORD_BYTES)
		return;
	bytes = malloc(code->nr_bytes);
	if (!bytes || remote_memory_read(sources->memory, code->start_addr, bytes, code->nr_bytes))
		return;
	free(body->code);
	body->code = take_ptr(bytes);
}

int jit_sources_read_body(const struct jit_sources *sources, const struct jit_code *code,
			  struct jit_body *ret_body)
{
	struct jit_body body = {.elf_machine = MACHINE_ELF};
	int err = 0;

	if (code->source == JIT_SOURCE_JITDUMP)
		err = jitdump_read_body(sources->files[code->file_index].jitdump, code, &body);
	else if (code->unwind_place)
		err = gdb_jit_read_body(sources->memory, code, &body);
	if (err == -ENOMEM)
		return err;
	read_code(sources, code, &body);
	if (!body.code) {
		jit_body_done(&body);
		return err ? err : -ENOENT;
	}
	*ret_body = body;
	return 0;
}
