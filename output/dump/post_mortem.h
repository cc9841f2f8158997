/* SPDX-License-Identifier: MIT */
/*
 * What a core file tells of its process beside the stacks: how it died, what it ran, and what
 * of it is missing. The head and the end of a dump of a core file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/run/problems.h"
#include "output/run/run_info.h"
#include "output/text/json.h"
#include "output/text/text.h"

/* A program or library that was loaded. All borrowed. */
struct post_mortem_module {
	uint64_t start; /* [start, end) */
	uint64_t end;
	const char *path;     /* as the process, or a debugger, had it */
	const char *build_id; /* in hexadecimal; NULL: the core has none of it */
	const char *file;     /* that was used; NULL: none was */
	const char *state;    /* what became of it, in a few words */
};

/* All strings are borrowed, as the process has them, not escaped; NULL if not known. */
struct post_mortem {
	const char *core_path;
	const char *executable;
	const char *const *arguments; /* run_info.command_line has all of them */
	size_t nr_arguments;

	int signal; /* that it died of; 0: it went on, the core is a snapshot */
	int code;   /* si_code */
	bool has_addr;
	bool has_sender;
	uint64_t addr;	  /* that could not be accessed */
	pid_t sender_pid; /* who sent the signal, and as which user */
	uid_t sender_uid;
	bool sent_by_itself; /* the sender is the process: raise(3), abort(3) */
	bool raised_again;   /* by the process's own handler of that fault */
	const char *finding; /* what else can be said of it, a sentence; or NULL */

	uint64_t core_bytes;	  /* how long the file is */
	uint64_t truncated_bytes; /* so many are missing at its end */
	size_t nr_native_threads; /* that run no Python */
	const struct problems *problems;
	const struct post_mortem_module *modules; /* NULL: they were not asked for */
	size_t nr_modules;
};

/* Append how it died: a sentence without its end. */
void post_mortem_append_death(struct text *text, const struct post_mortem *post_mortem);

/* Append the lines at the head of the text, in front of the threads, and those behind them. */
void post_mortem_append_head(struct text *text, const struct post_mortem *post_mortem,
			     const struct run_info *info);
void post_mortem_append_end(struct text *text, const struct post_mortem *post_mortem);

/* Write the members of the dump's JSON object, as pysample(1) has them. */
void post_mortem_write_json(struct json *json, const struct post_mortem *post_mortem);
