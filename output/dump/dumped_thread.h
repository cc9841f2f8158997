/* SPDX-License-Identifier: MIT */
/* A thread of a dump: its kept sample, what it waits in, and how both are written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/dump/thread_waiting.h"
#include "output/source/source_lines.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/* A kept sample, with thread and frames copied. Functions are borrowed from the sampler. */
struct dumped_thread {
	struct sample_thread thread;
	uint32_t flags;
	int error;
	uint32_t nr_frames;
	char *exception_type;	       /* owned; NULL: no exception */
	char *exception_message;       /* owned */
	struct frame *frames;	       /* owned */
	struct frame_detail *details;  /* owned; NULL: none */
	struct thread_waiting waiting; /* owned; all zero: unknown, or it does not wait */
};

/* How frames are shown. All zero: frames only. */
struct dumped_layout {
	struct source_lines *sources; /* borrowed; NULL: no source */
	bool folds_starts;	      /* as in struct dump_frames */
	bool with_variables;	      /* in JSON; a text always has those of the details */
};

/*
 * Copy a sample. dumped_thread_done() frees the copy, and accepts one that is all zero. Returns 0
 * or -ENOMEM.
 */
int dumped_thread_init(struct dumped_thread *dumped, const struct sample *sample);
void dumped_thread_done(struct dumped_thread *dumped);

/* Append the flags of a thread that people look for, each as ", " and a few words. */
void dumped_thread_append_state(struct text *text, uint32_t flags);

/* Append " of process PID NAME", with the name escaped; nothing if it is NULL. */
void dumped_process_append(struct text *text, pid_t pid, const char *name);

/*
 * Append what follows the header: how far the stack can be relied on, its frames, most recent call
 * last, and the exception that the thread handles. Equal stacks have equal texts.
 */
void dumped_thread_append_stack(struct text *text, const struct dumped_thread *dumped,
				const struct dumped_layout *layout);

/* Whether dumped_thread_append_stack() appends a stack, or the reason why there is none. */
bool dumped_thread_has_stack(const struct dumped_thread *dumped);

/* Write the thread as one of the threads of dump_write_json(). */
void dumped_thread_write(struct json *json, const struct dumped_thread *dumped,
			 const struct dumped_layout *layout);

/* The same without the object around it, for an object that has more. */
void dumped_thread_write_members(struct json *json, const struct dumped_thread *dumped,
				 const struct dumped_layout *layout);
