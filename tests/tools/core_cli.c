/* SPDX-License-Identifier: MIT */
/*
 * core_cli CORE [ADDR]…: print the contents of a core file, for
 * tests/live/core/test_core_reader.py. Prints a line for each thread, mapped file and module, and
 * for each ADDR 16 bytes of memory in hexadecimal, or "-" if they cannot be read.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "procmem/core/unpack.h"
#include "symbols/elf/core_files.h"

static void print_notes(const struct core_notes *notes)
{
	const struct core_auxv *auxv = &notes->auxv;

	for (size_t i = 0; i < notes->nr_threads; i++) {
		printf("thread %d", notes->threads[i].tid);
		printf(" %#" PRIx64 " %#" PRIx64 " %#" PRIx64, notes->threads[i].pc_addr,
		       notes->threads[i].sp_addr, notes->threads[i].thread_pointer);
		printf(" %" PRIu64 "\n", notes->threads[i].registers[0]);
	}
	printf("death %d %d %#" PRIx64 "\n", notes->death.signal, notes->death.code,
	       notes->death.addr);
	printf("process %d %s\n", notes->psinfo.pid, notes->psinfo.name);
	printf("auxv %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n",
	       auxv->program_headers_addr, auxv->entry_addr, auxv->loader_addr, auxv->vdso_addr);
}

static void print_maps(const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (mapping->inode)
			printf("file %" PRIx64 " %" PRIx64 " %" PRIx64 " %s%s\n", mapping->start,
			       mapping->end, mapping->file_offset, mapping->path,
			       mapping->deleted ? " (deleted)" : "");
	}
}

static int print_modules(struct core_files *files)
{
	cleanup_free struct core_module *modules = NULL;
	size_t nr_modules = 0;
	int err = core_files_modules(files, &modules, &nr_modules);

	for (size_t i = 0; i < nr_modules; i++) {
		printf("module %" PRIx64 " ", modules[i].start);
		for (size_t j = 0; j < modules[i].file->build_id_bytes; j++)
			printf("%02x", modules[i].file->build_id[j]);
		printf(" %s\n", core_file_state_text(modules[i].file->state));
	}
	return err;
}

static void print_memory(struct core *core, remote_addr addr)
{
	uint8_t bytes[16];

	printf("memory ");
	if (remote_memory_read(core_memory(core), addr, bytes, sizeof(bytes)))
		printf("-");
	else
		for (size_t i = 0; i < sizeof(bytes); i++)
			printf("%02x", bytes[i]);
	printf("\n");
}

/* Open the core at path, packed or not. */
static int open_core(const char *path, struct core **ret_core)
{
	struct unpacked unpacked;
	struct message message = {0};
	int err = unpack(open(path, O_RDONLY | O_CLOEXEC), &unpacked, &message);

	if (!err)
		err = core_open(unpacked.fd, ret_core, &message);
	if (err)
		(void)fprintf(stderr, "core_cli: %s\n", message.text);
	return err;
}

int main(int argc, char **argv)
{
	const struct core_file_places places = {.sysroot = NULL};
	struct core_files *files = NULL;
	struct core *core = NULL;
	int err = argc < 2 ? -1 : open_core(argv[1], &core);

	if (!err)
		err = core_files_open(core, &places, &files, NULL);
	if (!err) {
		print_notes(&core->notes);
		print_maps(&core->maps);
		err = print_modules(files);
	}
	for (int i = 2; !err && i < argc; i++)
		print_memory(core, strtoull(argv[i], NULL, 16));
	core_files_close(files);
	core_close(core);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
