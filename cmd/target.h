/* SPDX-License-Identifier: MIT */
/* The process a command works on: opened, its mappings read, its interpreter found. */
#pragma once

#include "cmd/command.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/python/runtime.h"

enum { COMMAND_LINE_MAX_BYTES = 4096 };

struct target {
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct runtime runtime;
	char version[VERSION_MAX_BYTES]; /* of its CPython: "3.15.2" */
	char command_line[COMMAND_LINE_MAX_BYTES];
};

/*
 * Open process pid and find its interpreter. EXIT_OK, or the status to exit with
 * and a sentence; target_close() is to be called either way, and *ret_target must not
 * be moved until then: its parts refer to each other.
 */
enum exit_status target_open(pid_t pid, struct target *ret_target, struct message *reterr);

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
