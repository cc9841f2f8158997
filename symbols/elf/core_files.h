/* SPDX-License-Identifier: MIT */
/*
 * The files that the process of a core had mapped, as far as they are known to be them. What
 * proves it is the build ID, which the kernel saves with the first page of each file (bit 4 of
 * coredump_filter, core(5)); of a file without one its whole first page. What differs is not
 * used, wherever it came from. Where the core has neither nothing can be proven: then a file
 * is used if it was the user who said where it is, and what there is of it does not differ.
 *
 * Looked at, in this order: the file given for the executable; the path of the note NT_FILE
 * below the sysroot, and what is left of it as its leading folders are taken off (a debugger's
 * core names paths of the host); that path in our own root; its last name in the folders
 * given. Each file is looked for when it is first asked for. Nothing else is opened, and
 * nothing is executed.
 *
 * A file that is used stays open: this process allows itself as many descriptors as it may.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/core/core.h"
#include "procmem/message.h"
#include "procmem/sysroot.h"
#include "symbols/elf/image.h"
#include "symbols/elf/image_source.h"

/* What the user said; all borrowed, and may be NULL. */
struct core_file_places {
	const char *executable; /* the file that ran */
	const char *sysroot;
	const char *folders; /* DIR:DIR, with libraries in them */
};

enum core_file_state {
	CORE_FILE_NOT_LOOKED_FOR,
	CORE_FILE_NOT_FOUND,
	CORE_FILE_DIFFERS,   /* what was found is another build: not used */
	CORE_FILE_UNPROVEN,  /* the core does not tell, and the user did not say: not used */
	CORE_FILE_NO_ELF,    /* what is mapped is neither a program nor a library */
	CORE_FILE_FORBIDDEN, /* it may not be read: not used, nor is: */
	CORE_FILE_TOO_MANY,  /* no descriptor is left for it (procmem/descriptor_limit.h) */
	CORE_FILE_PROVEN,    /* used */
	CORE_FILE_TRUSTED,   /* used: the user said so, and the core does not tell */
};

/* A file that was mapped. */
struct core_file {
	const char *path; /* of NT_FILE; borrowed from core->maps */
	enum core_file_state state;
	uint8_t build_id[BUILD_ID_MAX_BYTES]; /* as the core has it */
	size_t build_id_bytes;		      /* 0: it has none of it */
	char *found_path;    /* of the file that is used, else that the state tells of; or NULL */
	struct image *image; /* that is used, or NULL */
	remote_addr header_addr; /* where its first page was mapped; 0: nowhere */
};

/* One loading of a file: a program or a library. */
struct core_module {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct core_file *file; /* borrowed from the core_files */
};

struct core_files;

/* What core_memory() asks. */
struct core_files_backing {
	struct core_backing backing;
	struct core_files *files;
	/* What was answered last, since the mappings before it are walked for an answer. */
	const struct mapping *last_mapping; /* NULL: nothing was */
	int last_fd;
};

struct core_files {
	struct image_source source; /* opens the files that are used */
	struct core_file *files; /* all that were mapped, looked for or not; by inode, from 1 on */
	size_t nr_files;

	/* Private. */
	struct core_files_backing backing;
	struct core *core; /* borrowed */
	struct core_file_places places;
	struct sysroot sysroot;
	uint64_t executable_inode; /* 0: not told */
};

/*
 * Have the files of a core, which is borrowed, as are the places: core_memory() reads what the
 * core lacks out of them until core_files_close(). 0; -ENOMEM; or an errno and a sentence: the
 * sysroot cannot be opened. core_files_close() accepts NULL.
 */
int core_files_open(struct core *core, const struct core_file_places *places,
		    struct core_files **ret_files, struct message *reterr);
void core_files_close(struct core_files *files);

/* The file of a mapping, looked for if it was not yet; NULL: of anonymous memory. */
const struct core_file *core_files_find(struct core_files *files, const struct mapping *mapping);

/* The sysroot, borrowed; NULL: it is our own root. */
const struct sysroot *core_files_sysroot(const struct core_files *files);

/*
 * Open the debug file of the file that mapping maps (symbols/elf/debug_file.h), below the sysroot
 * or in our own root. 0; -ENOENT (also if the core has no build ID), -EPERM, or an error of
 * image_open_fd(). image_close() it.
 */
int core_files_open_debug(struct core_files *files, const struct mapping *mapping,
			  struct image **ret_image);

/*
 * List the programs and libraries by address, and look for the files of all of them.
 * *ret_modules is allocated (free() it). 0 or -ENOMEM.
 */
int core_files_modules(struct core_files *files, struct core_module **ret_modules,
		       size_t *ret_nr_modules);

/* What became of a file, in a few words: "build ID differs". */
const char *core_file_state_text(enum core_file_state state);
