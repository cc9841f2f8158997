/* SPDX-License-Identifier: MIT */
/*
 * What a core file says of its process besides the stacks: how it died, what it ran, and what is
 * missing. The head and the end of a core file's dump.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/dump/problems.h"
#include "output/run/run_info.h"
#include "output/text/json.h"
#include "output/text/text.h"

/* A loaded program or library. Everything is borrowed. */
struct post_mortem_module {
	uint64_t start; /* [start, end) */
	uint64_t end;
	const char *path;     /* as the process or a debugger had it */
	const char *build_id; /* in hexadecimal; NULL if it is not in the core */
	const char *file;     /* the file that was used; or NULL */
	const char *state;    /* how the search for it ended, in a few words */
};

/* Strings are borrowed, unescaped, as the process had them; NULL if unknown. */
struct post_mortem {
	const char *core_path;
	const char *executable;
	const char *const *arguments; /* run_info.command_line has all of them in one string */
	size_t nr_arguments;

	int signal; /* that killed it; 0: the process lived on, the core is a snapshot */
	int code;   /* si_code */
	bool has_addr;
	bool has_sender;
	uint64_t addr;	  /* address of the fault */
	pid_t sender_pid; /* process and user that sent the signal */
	uid_t sender_uid;
	bool sent_by_itself; /* the process sent it: raise(3), abort(3) */
	bool raised_again;   /* by the process's own handler for the fault */
	const char *finding; /* a further conclusion, as a sentence; or NULL */

	uint64_t core_bytes;	  /* size of the file */
	uint64_t truncated_bytes; /* missing at its end */
	size_t nr_native_threads; /* threads without Python */
	const struct problems *problems;
	const struct post_mortem_module *modules; /* NULL if not requested */
	size_t nr_modules;
};

/* Append how the process died: a sentence without a full stop. */
void post_mortem_append_death(struct text *text, const struct post_mortem *post_mortem);

/* Append the lines before and after the threads. */
void post_mortem_append_head(struct text *text, const struct post_mortem *post_mortem,
			     const struct run_info *info);
void post_mortem_append_end(struct text *text, const struct post_mortem *post_mortem);

/* Write the members of the dump's JSON object that pysample(1) lists for core files. */
void post_mortem_write_json(struct json *json, const struct post_mortem *post_mortem);
