/* SPDX-License-Identifier: MIT */
/* What pysample jit looks at: a process with its sources, or a file. */
#pragma once

#include "cmd/command.h"
#include "cmd/jit/jit_options.h"
#include "procmem/live.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "symbols/jit/jit_sources.h"

struct jit_target {
	struct process process; /* PROCESS_CLOSED: a file */
	struct live_memory live;
	struct jit_sources *sources;
};

/*
 * Open what the options name; nothing is read yet. EXIT_OK, or another one with a sentence;
 * jit_target_close() is to be called either way, and *ret_target not to be moved until then.
 */
enum exit_status jit_target_open(const struct jit_options *options, struct jit_target *ret_target,
				 struct message *reterr);
void jit_target_close(struct jit_target *target);

static inline bool jit_target_is_process(const struct jit_target *target)
{
	return target->process.proc_fd >= 0;
}

/* Whether the process has ended; never of a file. */
bool jit_target_has_ended(const struct jit_target *target);

/*
 * Read what is new. EXIT_OK, also where the process has just ended; another one with a
 * sentence: nothing can be read, or the only file is none.
 */
enum exit_status jit_target_refresh(struct jit_target *target, bool is_final,
				    struct message *reterr);

/*
 * Add the trampolines of a process that nothing tells of (jit_sources_add_trampolines()); of a
 * file there are none. As jit_target_refresh().
 */
enum exit_status jit_target_add_trampolines(struct jit_target *target, struct message *reterr);

/* What is wrong with a file that cannot be read, as one clause: "it belongs to another user". */
const char *jit_target_error_text(int error);
