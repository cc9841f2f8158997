/* SPDX-License-Identifier: MIT */
/* The process that a command works on: opened, its mappings read, its interpreter found. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/search_schedule.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/cpython/find/runtime.h"
#include "sampler/sampler.h"
#include "symbols/elf/live_images.h"

enum { COMMAND_LINE_MAX_BYTES = 4096 };

struct target {
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct live_images images;
	struct runtime runtime;
	int search_err; /* of target_open(): an error of runtime_find() after the last look, or 0 */
	char version[VERSION_MAX_BYTES]; /* of its CPython, such as "3.15.2" */
	/* what is shown of it: its short name, or after target_show_arguments() all arguments */
	char command_line[COMMAND_LINE_MAX_BYTES];
	bool shows_arguments;
};

/*
 * How long to keep looking at a process that has no interpreter yet. A program without Python is
 * waited for only on request, or if it was started less than TARGET_STARTING_NS ago: it may load
 * its libpython late, or be a shell before its exec.
 */
struct target_wait {
	uint64_t wait_ns; /* 0: one look */
	bool for_any;	  /* wait for any program, however long it has been running */
	const volatile sig_atomic_t *stop; /* ends the wait; borrowed, may be NULL */
};

#define TARGET_STARTING_NS  500000000u
#define TARGET_WAIT_DEFAULT ((struct target_wait){.wait_ns = TARGET_STARTING_NS})

/* Parse the value of --wait. Returns false after printing an error. */
bool target_parse_wait(const char *text, struct target_wait *ret_wait);

/*
 * Open process pid and find its interpreter. Returns EXIT_OK, or another exit status with a
 * message. target_close() must follow in any case, and *ret_target must not be moved until then:
 * its parts refer to each other.
 *
 * It sleeps between two looks, 1 ms at first and up to 50 ms, or half a second if looks take
 * long. A look at a process with unchanged mappings only reads these, except that a CPython is
 * searched twice a second: its interpreter may start in memory that is already mapped
 * (cmd/search_schedule.h).
 */
enum exit_status target_open(pid_t pid, const struct target_wait *wait, struct target *ret_target,
			     struct message *reterr);

/*
 * Make target->command_line hold all arguments (process_command_line()), now and after
 * target_follow_look(). Before, it is the short name, because arguments hold passwords
 * (procmem/tree/process_name.h). The target must be open.
 */
void target_show_arguments(struct target *target);

/* Open process pid without a look at it. Otherwise like target_open(). */
enum exit_status target_open_process(pid_t pid, struct target *ret_target, struct message *reterr);

/* A search for the interpreter of a target, in looks that do not sleep. */
struct target_search {
	struct target_wait wait;
	struct search_schedule schedule;
	uint64_t next_ns; /* time of the next look, CLOCK_MONOTONIC */
	/* where _PyRuntime was; 0: the program is another one, or it is the first search */
	remote_addr before_addr;
};

/* Begin a search, whose first look is due at once. *wait->stop is borrowed until its end. */
void target_search_begin(const struct target_wait *wait, struct target_search *ret_search);

/*
 * Look once. Returns 0: the interpreter was found; -EINPROGRESS: look again at search->next_ns;
 * otherwise the search is over: errors of runtime_find() (-ENOENT: no CPython), -ESRCH: the process
 * has ended, or -EINTR if *wait->stop was set, with a message.
 */
int target_search_look(struct target *target, struct target_search *search, struct message *reterr);

/*
 * Take over the interpreter of a parent that has just forked the target: it is at the same address,
 * if the same file is mapped there. Returns false if it is not; then a search is needed.
 */
bool target_take_over(struct target *target, const struct target *parent);

/* What target_follow_look() found. */
enum target_next {
	TARGET_UNKNOWN,	       /* look again at search->next_ns */
	TARGET_FOLLOWED,       /* an interpreter of a new program, or at another address */
	TARGET_SAME,	       /* the interpreter from before, or a new one in its place */
	TARGET_ENDED,	       /* the process has ended */
	TARGET_INTERRUPTED,    /* *stop was set before the answer was known */
	TARGET_NO_PYTHON,      /* a program without CPython */
	TARGET_NO_INTERPRETER, /* CPython without an interpreter, no longer or not yet */
	TARGET_REFUSED,	       /* a target that cannot be read; the message says why */
};

/*
 * Begin to search for the interpreter again, after the program or its interpreter was gone. Nothing
 * may use the old memory, process or build any more. Unless an interpreter is found, the version,
 * the runtime and the command line keep their values.
 */
void target_follow_begin(struct target *target, const struct target_wait *wait,
			 struct target_search *ret_search);

/*
 * Look once.
 *
 * TARGET_SAME means that there was no exec in between (process_memory_is_gone()) and that
 * _PyRuntime is where it was: the interpreter was started again after Py_Finalize(), or was there
 * all the time and could not be read.
 */
enum target_next target_follow_look(struct target *target, struct target_search *search,
				    struct message *reterr);

/*
 * Returns what follows "can be read" or "is read" in a sentence about the target's memory: how it
 * is read and at what cost, if process_vm_readv() is not used; else "". Static.
 */
const char *target_memory_note(const struct target *target);

/* For -v: print where the runtime is, and whether its memory is read in the slower way. */
void target_print_found(const struct target *target);

/*
 * Free and close everything. Accepts NULL, a target that target_open() was called with, and one
 * that is zero except for its process, PROCESS_CLOSED.
 */
void target_close(struct target *target);

/*
 * Print a note if a CPython is newer than any that this pysample was tested with, with what is not
 * read of it. version is its version as a text.
 */
void target_print_untested(const struct py_build *build, const char *version);

/*
 * Set the message for an error of a read or a tick after target_open(), and return the exit
 * status, never EXIT_OK. A message that is already set stays if the error says no more. Reads
 * once more to learn whether the target is gone, and whether it ended or called exec.
 */
enum exit_status target_explain(struct target *target, int err, struct message *reterr);

/*
 * Create a sampler of the target's interpreter whose looks are proven. The target is borrowed
 * until sampler_destroy(). Returns 0 or -ENOMEM.
 */
int target_create_sampler(struct target *target, struct sampler **ret_sampler);
