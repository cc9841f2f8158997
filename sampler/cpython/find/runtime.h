/* SPDX-License-Identifier: MIT */
/*
 * Finds CPython in a program: the address of _PyRuntime and the build it belongs to. Never executes
 * the target's program, and opens files only through its image source.
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
 * A program that is searched for CPython: a running process, or the one in a core file. Everything
 * is borrowed for the time of the search.
 */
struct program {
	const char *name;     /* for messages: "process 1234", "core core.1234" */
	bool is_alive;	      /* an interpreter may still appear, so trying again makes sense */
	const char *exe_path; /* the executable's path as in its mappings; "" if unknown */
	const struct maps *maps;
	struct remote_memory *memory;
	struct image_source *images; /* the files of its mappings */
};

struct runtime {
	remote_addr addr; /* of _PyRuntime; of interp_head in 3.6, which has no _PyRuntime */
	/* "section", "symbol", "symbol in memory", "cookie" or "scan"; static */
	const char *found_by;
	char image_path[256]; /* of its file, as the target names it; truncated if longer */
	char build_id[2 * BUILD_ID_MAX_BYTES + 1]; /* of that file, in hex; "" if unknown */
	struct py_build build;
	/*
	 * The number of further running CPythons, counted only in the executable and the libpython…
	 * files that come after this one in the search; nothing else is known of them.
	 */
	unsigned int nr_others;
};

/*
 * Find the interpreter. Modules are searched in the order executable, files called libpython…, all
 * others (sampler/cpython/find/elf_modules.h). The first pass looks for the section .PyRuntime or
 * the symbol _PyRuntime, in the file or, if that cannot be opened, in its image in memory. The
 * second pass searches their variables: for the cookie of 3.13 and newer, then for the text of
 * sys.version, which leads to the symbol interp_head of 3.6 and otherwise to a scan for the list of
 * interpreters (sampler/cpython/find/interpreter_scan.h). If the program is not alive, a last pass
 * searches all of its writable memory as if it were one module. The first runtime that has an
 * interpreter is the result; one without is skipped. Before 3.13 the version comes from Py_Version
 * or from the text, never from the name of a file.
 *
 * A search is bounded in reads (SEARCH_MAX_PIECES), in bytes of symbols (FILE_NAMES_MAX_BYTES) and
 * in bytes of variables (SCAN_MAX_BYTES), whatever the process has mapped; what is beyond is not
 * found. Setting *stop ends it between two modules; stop may be NULL.
 *
 * Returns 0; -EINTR (*stop was set); -ENOENT with a message (no CPython); -ENOTSUP with a message
 * (an unsupported one); -EAGAIN with a message (a CPython is loaded, or a file with such a name is
 * mapped, but no interpreter runs in it yet or any more: try again later if the program is alive);
 * -EPERM (see permission_explain()); -ENOMEM; -ESRCH (the process has ended or called exec
 * meanwhile, so nothing is known; a kernel thread, which has no mappings, looks the same).
 */
int runtime_find(const struct program *program, const volatile sig_atomic_t *stop,
		 struct runtime *ret_runtime, struct message *reterr);
