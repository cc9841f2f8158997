/* SPDX-License-Identifier: MIT */
/* The core file that a command works on: opened, and the interpreter in it found. */
#pragma once

#include "cmd/command.h"
#include "cmd/core/core_fault.h"
#include "output/dump/post_mortem.h"
#include "output/text/text.h"
#include "procmem/core/core.h"
#include "procmem/message.h"
#include "sampler/cpython/find/runtime.h"
#include "sampler/cpython/find/sys_info.h"
#include "sampler/cpython/find/type_names.h"
#include "sampler/sampler.h"
#include "symbols/elf/core_files.h"

struct core_target {
	const char *path;	  /* borrowed, as is places */
	struct core *core;	  /* owned */
	struct core_files *files; /* owned */
	const struct core_file_places *places;
	struct runtime runtime;
	struct type_names names; /* stacks are read through its memory */
	struct sys_info sys_info;
	/* owned; its short name, or if wanted all arguments separated by blanks; "": unknown */
	struct text command_line;
	bool full_command;
	struct core_fault fault; /* what caused the signal, if was_raised_again */
	bool was_raised_again;
	char version[VERSION_MAX_BYTES];
	struct message unpack_problem; /* why a packed core is not whole; "": it is whole */
	uint64_t written_ns; /* CLOCK_REALTIME of the last write to the file; 0: unknown */
};

/*
 * Open the core file at path ("-": stdin), packed or not, and find its interpreter. The files
 * that it had mapped are searched for in places. Only with full_command all arguments are shown,
 * which may hold passwords. path and places are borrowed until core_target_close(). Returns
 * EXIT_OK, or another exit status with a message. core_target_close() must follow in any case, and
 * *ret_target must not be moved until then.
 */
enum exit_status core_target_open(const char *path, const struct core_file_places *places,
				  bool full_command, struct core_target *ret_target,
				  struct message *reterr);

/* Returns the file of the program that ran, found or not; NULL if the core does not name it. */
const struct core_file *core_target_executable(const struct core_target *target);

/* Describe how the process died and what it ran. Strings are borrowed from the target. */
void core_target_describe(const struct core_target *target, struct post_mortem *ret_post_mortem);

/*
 * Create a sampler of its interpreter. Destroy it before core_target_close().
 * Returns errors of sampler_create().
 */
int core_target_sampler(struct core_target *target, const struct sampler_extras *extras,
			struct sampler **ret_sampler);

/*
 * Set the message for an error of core_target_sampler() or sampler_dump(), and return the status.
 */
enum exit_status core_target_explain(const struct core_target *target, int err,
				     struct message *reterr);

/* Free and close everything. For a target that core_target_open() was called with. */
void core_target_close(struct core_target *target);
