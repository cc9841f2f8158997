/* SPDX-License-Identifier: MIT */
/* The inside of a dump, for the files that make it up: what was kept, and its two writers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/dump/dump.h"
#include "output/dump/dump_tasks.h"

/* A sample that is kept: its thread and frames copied. Functions live as long as the sampler. */
struct dumped {
	struct sample_thread thread;
	uint32_t flags;
	int error;
	uint32_t nr_frames;
	char *exception_type;	      /* owned; NULL: it handles none */
	char *exception_message;      /* owned */
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned; NULL: none came */
};

struct dump {
	struct sample_sink sink;
	struct dumped *threads; /* the first nr_crashed of them crashed */
	uint32_t nr_threads, max_threads, nr_crashed;
	bool wants_native;
	bool wants_variables;
	struct source_lines *sources; /* borrowed; NULL: not wanted */
	pid_t *tids;		      /* of the first nr_tids threads, by rising value; owned */
	uint32_t nr_tids;
	struct dump_tasks tasks;
	enum tasks_told tasks_told;
	struct native_thread *natives;
	uint32_t nr_natives, max_natives;
	const struct post_mortem *post_mortem; /* borrowed; NULL: it is of a process */
};

/* The first thread whose sample has that flag, or NULL. */
const struct dumped *dump_find(const struct dump *dump, uint32_t flag);

/* How many threads of Python's have no id: any native one may be one of those. */
size_t dump_count_unknown(const struct dump *dump);
