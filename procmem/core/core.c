/* SPDX-License-Identifier: MIT */
#include "procmem/core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "procmem/cleanup.h"
#include "procmem/core/core_maps.h"
#include "procmem/machine.h"

/* Read the size of the file, and refuse all but regular files, which can be read at any offset. */
static int read_size(int fd, uint64_t *ret_size, struct message *reterr)
{
	struct stat st;

	if (fstat(fd, &st)) {
		int error = errno;

		message_set(reterr, "the file cannot be read: %s", strerror(error));
		return -error;
	}
	if (!S_ISREG(st.st_mode)) {
		message_set(reterr, "the file is %s, not a core file",
			    S_ISDIR(st.st_mode) ? "a folder" : "a device, a pipe or a socket");
		return -EBADMSG;
	}
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

/* Name the anonymous mapping that contains addr; addr may be 0 for unknown. */
static void name_mapping(struct maps *maps, remote_addr addr, const char *name)
{
	const struct mapping *mapping = addr ? maps_find(maps, addr) : NULL;

	if (mapping && mapping->inode == 0)
		maps->mappings[mapping - maps->mappings].path = name;
}

static int read_core(struct core *core, struct message *reterr)
{
	int err;

	err = read_size(core->file.fd, &core->file_bytes, reterr);
	if (!err)
		err = file_blocks_init(&core->file, core->file.fd);
	if (!err)
		err = core_segments_read(&core->file, core->file_bytes, &core->segments, reterr);
	if (!err)
		err = core_notes_read(&core->file, &core->segments, MACHINE_ELF, &core->notes);
	if (!err)
		err = core_maps_join(&core->segments.loads, &core->notes.files, &core->maps);
	if (!err)
		core_memory_init(&core->memory, &core->file, &core->segments.saved, &core->maps);
	return err;
}

int core_open(int fd, struct core **ret_core, struct message *reterr)
{
	struct core *core = calloc(1, sizeof(*core));
	struct message sentence = {0};
	int err;

	if (!core) {
		cleanup_close_fn(&fd);
		message_set(reterr, "out of memory");
		return -ENOMEM;
	}
	core->file.fd = fd;
	err = read_core(core, &sentence);
	if (err) {
		message_set(reterr, "%s", sentence.text[0] ? sentence.text : "out of memory");
		core_close(core);
		return err;
	}
	if (core->segments.end_offset > core->file_bytes)
		core->missing_bytes = core->segments.end_offset - core->file_bytes;
	name_mapping(&core->maps, core->notes.auxv.vdso_addr, "[vdso]");
	name_mapping(&core->maps, core->notes.auxv.random_addr, "[stack]");
	*ret_core = core;
	return 0;
}

void core_close(struct core *core)
{
	int fd;

	if (!core)
		return;
	fd = core->file.fd;
	maps_done(&core->maps);
	core_notes_done(&core->notes);
	core_segments_done(&core->segments);
	file_blocks_done(&core->file);
	cleanup_close_fn(&fd);
	free(core);
}

struct remote_memory *core_memory(struct core *core)
{
	return &core->memory.memory;
}

const struct mapping *core_executable(const struct core *core)
{
	remote_addr addr = core->notes.auxv.program_headers_addr;
	const struct mapping *mapping = addr ? maps_find(&core->maps, addr) : NULL;

	return mapping && mapping->inode ? mapping : NULL;
}
