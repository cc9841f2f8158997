/* SPDX-License-Identifier: MIT */
/* The core file a command works on: opened, and the interpreter in it found. */
#pragma once

#include "cmd/command.h"
#include "cmd/core/core_fault.h"
#include "output/dump/post_mortem.h"
#include "output/text/text.h"
#include "procmem/core/core.h"
#include "procmem/message.h"
#include "sampler/cpython/find/runtime.h"
#include "sampler/cpython/find/sys_facts.h"
#include "sampler/cpython/find/type_names.h"
#include "sampler/sampler.h"
#include "symbols/elf/core_files.h"

struct core_target {
	const char *path;	  /* borrowed, as are: */
	struct core *core;	  /* owned */
	struct core_files *files; /* owned */
	const struct core_file_places *places;
	struct runtime runtime;
	struct type_names names; /* its memory is what the stacks are read from */
	struct sys_facts facts;
	struct text command_line; /* with blanks between the arguments; "": not known; owned */
	struct core_fault fault;  /* behind the death, if was_raised_again */
	bool was_raised_again;
	char version[VERSION_MAX_BYTES];
	struct message unpack_problem; /* why there is less of a packed core; "": there is not */
	uint64_t written_ns;	       /* CLOCK_REALTIME when the file was; 0: not known */
};

/*
 * Open the core file at path ("-": stdin), packed or not, and find its interpreter; the files
 * that it had mapped are looked for in places. Both are borrowed until core_target_close().
 * EXIT_OK, or the status to exit with and a sentence; core_target_close() is to be called
 * either way, and *ret_target must not be moved until then.
 */
enum exit_status core_target_open(const char *path, const struct core_file_places *places,
				  struct core_target *ret_target, struct message *reterr);

/* The file of the program that ran, as it was found or not; NULL: the core does not tell which. */
const struct core_file *core_target_executable(const struct core_target *target);

/* Say how it died and what it ran; strings are borrowed from the target. */
void core_target_describe(const struct core_target *target, struct post_mortem *ret_post_mortem);

/*
 * A sampler of its interpreter with those looks: sampler_destroy() it before core_target_close().
 * Errors of sampler_create().
 */
int core_target_sampler(struct core_target *target, const struct sampler_looks *looks,
			struct sampler **ret_sampler);

/* The status and the sentence for an error of core_target_sampler() or sampler_dump(). */
enum exit_status core_target_explain(const struct core_target *target, int err,
				     struct message *reterr);

/* Free and close everything. For one that core_target_open() was called with. */
void core_target_close(struct core_target *target);
