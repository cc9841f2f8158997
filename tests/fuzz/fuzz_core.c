/* SPDX-License-Identifier: MIT */
/* Any bytes as a core file. A file that is accepted must keep the promises of struct core. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/core.h"
#include "procmem/core/core_file_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void use_maps(const struct core *core)
{
	const struct maps *maps = &core->maps;

	for (size_t i = 0; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		size_t end = maps_module_end(maps, i);

		require(mapping->start < mapping->end);
		require(i == 0 || maps->mappings[i - 1].end <= mapping->start);
		require(maps_find(maps, mapping->start) == mapping);
		require(maps_find(maps, mapping->end - 1) == mapping);
		require(strlen(mapping->path) < CORE_MAX_FILE_NOTE_BYTES);
		require(end > i && end <= maps->nr_mappings);
	}
}

static void use_memory(struct core *core)
{
	const struct maps *maps = &core->maps;
	char bytes[256];

	for (size_t i = 0; i < maps->nr_mappings; i++) {
		struct remote_range range = {
			.addr = maps->mappings[i].end - 16,
			.buffer = bytes,
			.size = sizeof(bytes),
		};

		require(remote_memory_read_ranges(core_memory(core), &range, 1) == 0);
		require(range.done_bytes <= range.size);
		if (i + 1 == maps->nr_mappings)
			require(range.done_bytes <= 16); /* nothing is mapped after the segment */
	}
}

static void use_notes(const struct core_notes *notes)
{
	require(notes->nr_threads <= CORE_MAX_THREADS);
	require(strlen(notes->psinfo.name) < CORE_NAME_MAX_BYTES);
	require(strlen(notes->psinfo.arguments) < CORE_ARGUMENTS_MAX_BYTES);
	require(!notes->death.has_addr || notes->death.signal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz_core", MFD_CLOEXEC);
	struct message message;
	struct core *core;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		cleanup_close_fn(&fd);
		return 0;
	}
	message.text[0] = '\0';
	if (core_open(fd, &core, &message)) {
		require(message.text[0] != '\0');
		return 0;
	}
	use_maps(core);
	use_memory(core);
	use_notes(&core->notes);
	(void)core_executable(core);
	core_close(core);
	return 0;
}
