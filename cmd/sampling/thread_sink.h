/* SPDX-License-Identifier: MIT */
/*
 * A sink that passes on the samples of some threads only: --thread of attach and run. A thread is
 * judged by the name that it has at the time of each sample, so what it did before its name was
 * known, at most 0.1 s, is dropped unless its id or the kernel's name for it matches.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/name_filter.h"
#include "output/text/text.h"
#include "sampler/sample.h"

/* What is kept of a thread. */
struct thread_sink_row {
	bool is_used;
	bool passes;
	bool was_dropped; /* its last sample was */
	uint32_t id;	  /* the thread's */
	pid_t tid;
	char name[THREAD_NAME_MAX_BYTES];
};

/* Private. All zero: no thread was seen. */
struct thread_sink {
	struct sample_sink sink; /* must be first */
	struct name_filter filter;
	struct sample_sink *next;     /* borrowed */
	struct thread_sink_row *rows; /* owned; by slot */
	uint32_t nr;
};

/*
 * Begin to pass on samples to next. Memory grows with the number of simultaneous threads.
 * thread_sink_done() must follow.
 */
void thread_sink_init(struct thread_sink *sink, const struct name_filter *filter,
		      struct sample_sink *next);
void thread_sink_done(struct thread_sink *sink);

/*
 * Append the names and ids of the threads seen last, as "MainThread (7), worker (8)": as many as
 * fit in max_bytes, and how many more there are.
 */
void thread_sink_append_names(const struct thread_sink *sink, size_t max_bytes, struct text *text);
