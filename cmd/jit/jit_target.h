/* SPDX-License-Identifier: MIT */
/* What pysample jit examines: a process with its sources, or a file. */
#pragma once

#include "cmd/command.h"
#include "cmd/jit/jit_options.h"
#include "procmem/live.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "symbols/jit/jit_sources.h"

struct jit_target {
	struct process process; /* PROCESS_CLOSED for a file */
	struct live_memory live;
	struct jit_sources *sources;
};

/*
 * Open what the options name, without reading it yet. Returns EXIT_OK, or another status with a
 * message. jit_target_close() must follow in any case, and *ret_target must not be moved until
 * then.
 */
enum exit_status jit_target_open(const struct jit_options *options, struct jit_target *ret_target,
				 struct message *reterr);
void jit_target_close(struct jit_target *target);

static inline bool jit_target_is_process(const struct jit_target *target)
{
	return target->process.proc_fd >= 0;
}

/* Whether the process has ended; false for a file. */
bool jit_target_has_ended(const struct jit_target *target);

/*
 * Read what is new. Returns EXIT_OK, also if is_final and the process has just ended; or another
 * status with a message if nothing can be read, or if the only file is of no known kind.
 */
enum exit_status jit_target_refresh(struct jit_target *target, bool is_final,
				    struct message *reterr);

/*
 * Add the trampolines of a process that no source reports (jit_sources_add_trampolines()); a file
 * has none. Returns as jit_target_refresh() does.
 */
enum exit_status jit_target_add_trampolines(struct jit_target *target, struct message *reterr);

/* Returns what is wrong with a file that cannot be read, as one clause that begins with "it". */
const char *jit_target_error_text(int error);
