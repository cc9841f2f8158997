/* SPDX-License-Identifier: MIT */
/* The process a command works on: opened, its mappings read, its interpreter found. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/cpython/find/runtime.h"
#include "sampler/sampler.h"
#include "symbols/elf/live_images.h"

enum { COMMAND_LINE_MAX_BYTES = 4096 };

/* What is said of a live memory that reads the file, behind "can be read". */
#define TARGET_THROUGH_FILE                                                            \
	" through /proc/PID/mem only: process_vm_readv is forbidden or missing here; " \
	"slower, and the pieces of a copy lie further apart"

struct target {
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct live_images images;
	struct runtime runtime;
	char version[VERSION_MAX_BYTES]; /* of its CPython: "3.15.2" */
	char command_line[COMMAND_LINE_MAX_BYTES];
};

/*
 * How long a process that has no interpreter yet is looked at again. A program that is
 * no Python is waited for only if that was asked for, or if it was started less than
 * TARGET_STARTING_NS ago: it may load its libpython late, or be a shell before its exec.
 */
struct target_wait {
	uint64_t wait_ns;		   /* 0: one look */
	bool for_any;			   /* any program, however long it has been running */
	const volatile sig_atomic_t *stop; /* ends the wait; borrowed, may be NULL */
};

#define TARGET_STARTING_NS  500000000u
#define TARGET_WAIT_DEFAULT ((struct target_wait){.wait_ns = TARGET_STARTING_NS})

/* What --wait asks for; false after an error was printed. */
bool target_parse_wait(const char *text, struct target_wait *ret_wait);

/*
 * Open process pid and find its interpreter. EXIT_OK, or the status to exit with
 * and a sentence; target_close() is to be called either way, and *ret_target must not
 * be moved until then: its parts refer to each other.
 *
 * Between two looks it sleeps, 1 ms at first and up to 50 ms. A look at a process whose
 * mappings are as they were costs no more than reading those, but for a search twice a
 * second if it has a CPython, whose interpreter may begin in memory that is there
 * (cmd/lookout.h).
 */
enum exit_status target_open(pid_t pid, const struct target_wait *wait, struct target *ret_target,
			     struct message *reterr);

/* What target_follow() found. */
enum target_next {
	TARGET_FOLLOWED,       /* an interpreter of a new program, or at another place */
	TARGET_SAME,	       /* the one that was there before, or one in its place */
	TARGET_ENDED,	       /* the process has ended */
	TARGET_NOT_AWAITED,    /* *stop was set before that could be told */
	TARGET_NO_PYTHON,      /* a program without CPython */
	TARGET_NO_INTERPRETER, /* CPython that has no interpreter any more, or not yet */
	TARGET_REFUSED,	       /* one that cannot be read, with a sentence that says why */
};

/*
 * Find the interpreter again after the program or its interpreter was gone. Nothing may
 * use the memory, the process or the build any more. Unless an interpreter was found the
 * version, the runtime and the command line are left as they were. That it is the same
 * needs no exec in between (process_memory_gone()) and _PyRuntime where it was: it began
 * again after Py_Finalize(), or it was there all the time and could not be read.
 */
enum target_next target_follow(struct target *target, const struct target_wait *wait,
			       struct message *reterr);

/* For -v: a note where the runtime lies, and one if its memory is read in the slower way. */
void target_print_found(const struct target *target);

/*
 * Free and close everything. For NULL, one that target_open() was called with, or one
 * that is zero but for its process, PROCESS_CLOSED.
 */
void target_close(struct target *target);

/* Note on stderr if its CPython is newer than any that this pysample was tested with. */
void target_print_doubts(const struct target *target);

/*
 * The status and the sentence for an error of a read or a tick after target_open().
 * A sentence that is there already stays, where the error says no more. Reads once
 * more, to tell whether the target is gone, and an exec from its end. Never EXIT_OK.
 */
enum exit_status target_explain(struct target *target, int err, struct message *reterr);

/*
 * A sampler of the target's interpreter, whose looks are proven. The target is borrowed until
 * sampler_destroy(). 0 or -ENOMEM.
 */
int target_create_sampler(struct target *target, struct sampler **ret_sampler);
