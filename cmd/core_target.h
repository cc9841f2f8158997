/* SPDX-License-Identifier: MIT */
/* The core file a command works on: opened, and the interpreter in it found. */
#pragma once

#include "cmd/command.h"
#include "procmem/core.h"
#include "procmem/message.h"
#include "sampler/python/runtime.h"
#include "sampler/python/type_names.h"
#include "symbols/image_source.h"

struct core_target {
	const char *path;  /* borrowed, as are: */
	struct core *core; /* owned */
	struct image_source images;
	struct runtime runtime;
	struct type_names names; /* its memory is what the stacks are read from */
	char version[VERSION_MAX_BYTES];
};

/*
 * Open the core file at path, which is borrowed until core_target_close(), and find its
 * interpreter. EXIT_OK, or the status to exit with and a sentence; core_target_close() is
 * to be called either way, and *ret_target must not be moved until then.
 */
enum exit_status core_target_open(const char *path, struct core_target *ret_target,
				  struct message *reterr);

/* Free and close everything. For one that core_target_open() was called with. */
void core_target_close(struct core_target *target);
