/* SPDX-License-Identifier: MIT */
/*
 * Finding CPython in a program: the address of _PyRuntime and the build it belongs to.
 * Never executes the target's program, and opens no file but through its image source.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/message.h"
#include "sampler/cpython/layout/offsets.h"
#include "symbols/elf/image.h"
#include "symbols/elf/image_source.h"

/*
 * A program in which CPython is looked for: one that runs, or one that a core file holds. All
 * borrowed, as long as it is looked at.
 */
struct program {
	const char *name;     /* for sentences: "process 1234", "core core.1234" */
	bool is_alive;	      /* what is not there may come: it is worth to try again */
	const char *exe_path; /* what it runs, as its mappings have it; "" if not known */
	const struct maps *maps;
	struct remote_memory *memory;
	struct image_source *images; /* the files of its mappings */
};

struct runtime {
	remote_addr addr; /* of _PyRuntime; of interp_head in 3.6, which has none */
	/* "section", "symbol", "symbol in memory", "cookie" or "scan"; static */
	const char *found_by;
	char image_path[256]; /* of the file it lies in, as the target has it; cut if longer */
	char build_id[2 * BUILD_ID_MAX_BYTES + 1]; /* of that file, in hex; "" if not known */
	struct py_build build;
	/*
	 * How many more CPythons run, as far as the program and files called libpython…
	 * behind that one tell; nothing else is known of them.
	 */
	unsigned int nr_others;
};

/*
 * Find the interpreter. The modules are gone through in the order executable, files called
 * libpython…, all others (sampler/cpython/find/modules.h): first for the section .PyRuntime or the symbol
 * _PyRuntime, by the file or, if that cannot be opened, by its image in memory; then for the cookie
 * of 3.13 and newer and for the text of sys.version among their variables, which leads to the
 * symbol interp_head of 3.6 and else to a scan for the list of interpreters
 * (sampler/cpython/find/interpreter_scan.h). Of a program that is not alive all that may be written is
 * looked at at last, as if it were one module. The first one that has an interpreter is it; one
 * without does not count. Before 3.13 the version is that of Py_Version or of the text, never one
 * that a name of a file tells.
 *
 * However the process is made, a search takes so many reads (SEARCH_MAX_PIECES), bytes of
 * symbols (FILE_NAMES_MAX_BYTES) and of variables at most; what they do not reach is not
 * found. *stop ends it between two modules; stop may be NULL.
 *
 * 0; -EINTR (*stop was set), -ENOENT with a sentence (no CPython in it), -ENOTSUP with a sentence
 * (one that is not supported), -EAGAIN with a sentence (a CPython is loaded, or a file that by its
 * name is one is mapped, but no interpreter runs in it yet, or none any more: ask again later, if
 * the program is alive), -EPERM (ask process_explain_eperm()), -ENOMEM;
 * -ESRCH: it has ended or called exec meanwhile, so that nothing can be said of it (a kernel
 * thread, which has no mappings, looks as if it had).
 */
int runtime_find(const struct program *program, const volatile sig_atomic_t *stop,
		 struct runtime *ret_runtime, struct message *reterr);
