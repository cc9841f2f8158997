/* SPDX-License-Identifier: MIT */
/*
 * The files that the process of a core had mapped, as far as their identity can be established.
 * The build ID proves it; the kernel saves it with the first page of each file (bit 4 of
 * coredump_filter, core(5)). For a file without a build ID its whole first page proves it. A file
 * that differs is never used, wherever it came from. If the core has neither proof, a file is
 * used only if the user named its place and it matches what the core has of it.
 *
 * The places searched, in order: the file given for the executable; the path of the note NT_FILE
 * below the sysroot, then with its leading folders removed one by one (a debugger's core names
 * paths of the host); that path in our own root; its last component in the folders given. Each
 * file is searched for on its first use. Nothing else is opened, and nothing is executed.
 *
 * A file in use stays open, so this process raises its limit of descriptors as far as it may.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/core/core.h"
#include "procmem/message.h"
#include "procmem/sysroot.h"
#include "symbols/elf/image.h"
#include "symbols/elf/image_source.h"

/* The places that the user gave. All borrowed; each may be NULL. */
struct core_file_places {
	const char *executable; /* the file that ran */
	const char *sysroot;
	const char *folders; /* DIR:DIR, folders with libraries */
};

enum core_file_state {
	CORE_FILE_NOT_LOOKED_FOR,
	CORE_FILE_NOT_FOUND,
	CORE_FILE_DIFFERS,   /* another build; not used */
	CORE_FILE_UNPROVEN,  /* no proof in the core, and not named by the user; not used */
	CORE_FILE_NO_ELF,    /* the mapped file is neither a program nor a library */
	CORE_FILE_FORBIDDEN, /* not readable; not used */
	CORE_FILE_TOO_MANY,  /* no descriptor left (procmem/descriptor_limit.h); not used */
	CORE_FILE_PROVEN,    /* used */
	CORE_FILE_TRUSTED,   /* used: no proof in the core, but named by the user */
};

/* A file that the process had mapped. */
struct core_file {
	const char *path; /* from NT_FILE; borrowed from core->maps */
	enum core_file_state state;
	uint8_t build_id[BUILD_ID_MAX_BYTES]; /* from the core */
	size_t build_id_bytes;		      /* 0: the core has none */
	char *found_path;	 /* the file used, or the one that state is about; or NULL */
	struct image *image;	 /* the image used, or NULL */
	remote_addr header_addr; /* where its first page was mapped; 0: it was not */
};

/* One load of a program or library. */
struct core_module {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct core_file *file; /* borrowed from the core_files */
};

struct core_files;

/* Answers core_memory()'s requests for bytes of mapped files. */
struct core_files_backing {
	struct core_backing backing;
	struct core_files *files;
	/* The last answer, cached because finding one walks the preceding mappings. */
	const struct mapping *last_mapping; /* NULL: no answer yet */
	int last_fd;
};

struct core_files {
	struct image_source source; /* opens the files in use */
	struct core_file *files;    /* all mapped files, indexed by inode - 1 */
	size_t nr_files;

	/* Private. */
	struct core_files_backing backing;
	struct core *core; /* borrowed */
	struct core_file_places places;
	struct sysroot sysroot;
	uint64_t executable_inode; /* 0: unknown */
};

/*
 * Open the files of a core. The core and the places are borrowed. Until core_files_close(),
 * core_memory() reads from these files what the core lacks.
 *
 * Returns 0; -ENOMEM; or an errno with a sentence in reterr if the sysroot cannot be opened.
 * core_files_close() accepts NULL.
 */
int core_files_open(struct core *core, const struct core_file_places *places,
		    struct core_files **ret_files, struct message *reterr);
void core_files_close(struct core_files *files);

/* The file of a mapping, searched for on first use. NULL for anonymous memory. */
const struct core_file *core_files_find(struct core_files *files, const struct mapping *mapping);

/* The sysroot, borrowed. NULL if none was given: paths are those of our own root. */
const struct sysroot *core_files_sysroot(const struct core_files *files);

/*
 * Open the debug file (symbols/elf/debug_file.h) of the file that mapping maps, below the sysroot
 * or in our own root. The caller closes it with image_close().
 *
 * Returns 0; -ENOENT, also if the core has no build ID; -EPERM; or an error of image_open_fd().
 */
int core_files_open_debug(struct core_files *files, const struct mapping *mapping,
			  struct image **ret_image);

/*
 * List the programs and libraries by address, and search for the files of all of them.
 * *ret_modules is allocated; release it with free(). Returns 0 or -ENOMEM.
 */
int core_files_modules(struct core_files *files, struct core_module **ret_modules,
		       size_t *ret_nr_modules);

/* The state as a short text: "build ID differs". */
const char *core_file_state_text(enum core_file_state state);
