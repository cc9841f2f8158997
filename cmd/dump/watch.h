/* SPDX-License-Identifier: MIT */
/* Writes a dump to stdout: once; or the whole first, and then again and again what has changed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/dump/process_dump.h"
#include "procmem/message.h"

struct watch_options {
	uint64_t interval_ns; /* 0: do not watch */
	bool json;	      /* one object for each dump */
	bool subprocesses;
};

/* Dump process pid once. Returns EXIT_OK, or another exit status with a message. */
enum exit_status dump_once(pid_t pid, const struct process_dump_options *options,
			   const struct watch_options *how, struct message *reterr);

/*
 * Dump process pid until it ends or a signal requests the end (cmd/signals.h), which are both
 * EXIT_OK. A dump that fails later than the first is skipped. Returns another exit status with a
 * message if the first fails, or if stdout cannot be written.
 */
enum exit_status watch(pid_t pid, const struct process_dump_options *options,
		       const struct watch_options *how, struct message *reterr);
