/* SPDX-License-Identifier: MIT */
/*
 * The sink of a session's samples: a profile, or a recording, which is one of the outputs or a
 * temporary file from which they are made.
 */
#pragma once

#include <stdint.h>

#include "cmd/outputs.h"
#include "cmd/sampling/thread_sink.h"
#include "output/profile/profile.h"
#include "output/recording/recorder.h"
#include "procmem/temp_file.h"
#include "sampler/sample.h"

/*
 * Called at every tick from the sampling loop, so it must be cheap. A negative errno ends the
 * run. ticked may be NULL.
 */
struct session_watcher {
	int (*ticked)(void *context, uint64_t now_ns);
	void *context;
};

/*
 * Who sees the samples beside the profile or recording, whose errors it does not notice. All NULL:
 * nobody. Negative errnos of sink and process_added end the run.
 */
struct session_observer {
	struct sample_sink *sink; /* borrowed; its tick() is not called */
	/* Threads of samples have this index as their process from now on. */
	int (*process_added)(void *context, uint32_t index, const struct process_info *info);
	void *context;
};

/* A sink that passes everything on to two others, of which one may fail. */
struct session_tee {
	struct sample_sink sink;      /* must be first */
	struct sample_sink *fragile;  /* gets nothing more after its first error */
	struct sample_sink *observer; /* its errors are those of the tee */
	int error;		      /* of fragile; 0: none */
};

/*
 * Private, except for watcher, observer, keeps_samples, filter and outlives_errors, which are set
 * before the sampling begins.
 */
struct session_sink {
	struct sample_sink sink; /* must be first */
	struct session_watcher watcher;
	struct session_observer observer;
	bool keeps_samples; /* in a temporary recording, also if no output needs that */
	/* An error of writing does not end the run: later samples are dropped. */
	bool outlives_errors;
	uint64_t nr_dropped;	    /* samples */
	struct name_filter filter;  /* whose samples are kept; patterns are borrowed */
	struct thread_sink threads; /* before the profile or recorder, if filter has patterns */
	struct profile *profile;    /* owned; NULL if recorder is used */
	struct recorder *recorder;  /* owned; NULL if profile is used */
	struct session_tee tee;	    /* to the recorder and the observer, if there is one */
	/* the sink of threads, tee, profile or recorder; NULL: samples are dropped */
	struct sample_sink *next;
	struct output *recording; /* the output that recorder writes; NULL: temp_file */
	struct temp_file temp_file;
	int replay_fd;	       /* owned; the finished recording, to make outputs from; -1: none */
	uint64_t header_bytes; /* size of the recording before any sample */
	uint64_t tried_bytes;  /* size of the recording at the last attempt to name it */
	int error;	       /* the first one of the recording; 0: none */
	struct message reason; /* the message for error */
};

#define SESSION_SINK_NONE ((struct session_sink){.temp_file = TEMP_FILE_NONE, .replay_fd = -1})

/*
 * Check, before the work begins, that there is a place for what the open outputs need: a
 * recording among them must be readable if there are others. Returns EXIT_OK, or another exit
 * status with a message. outputs must not be moved until session_sink_close().
 */
enum exit_status session_sink_open(struct session_sink *sink, struct outputs *outputs,
				   struct message *reterr);

/*
 * Begin to collect samples. A profile, if the outputs need one, gets these options, but never
 * roots for processes: it is only used for one process. Returns 0, or a negative errno with a
 * message.
 */
int session_sink_begin(struct session_sink *sink, const struct outputs *outputs,
		       const struct profile_options *options, const struct run *run,
		       struct message *reterr);

/*
 * Add a process, before its first sample: *ret_process is for the threads of its samples.
 * Returns 0, or a negative errno if the recording failed, which ends the run.
 */
int session_sink_add_process(struct session_sink *sink, const struct process_info *info,
			     uint32_t *ret_process);

/* A process ended at end_ns, in CLOCK_MONOTONIC. Returns errors as above. */
int session_sink_end_process(struct session_sink *sink, uint32_t process, uint64_t end_ns);

/*
 * During the sampling: discard what was collected. Until session_sink_begin() is called, after
 * session_sink_open(), samples are dropped.
 */
void session_sink_restart(struct session_sink *sink);

/* Write these counters to a recording at every flush. They are borrowed until the next call. */
void session_sink_set_stats(struct session_sink *sink, const struct sampler_stats *stats);

/* Returns what was collected so far, and the sums of what the mode shows; borrowed. */
const struct profile_sums *session_sink_sums(const struct session_sink *sink);

/* Returns the size of the recording so far, in any file; 0 without one. */
uint64_t session_sink_bytes(const struct session_sink *sink);

/*
 * Flush everything that a recording collected until now_ns, with what is known of the run so far,
 * and give it its name if possible. Returns 0, also without a recording; or a negative errno if
 * it failed, which ends the run.
 */
int session_sink_flush(struct session_sink *sink, const struct run *run, uint64_t now_ns);

/* Returns the first error of the recording, which gets no more samples then; 0: none. */
int session_sink_error(const struct session_sink *sink);

/*
 * Write a complete copy of the recording so far to to_fd. Returns 0, or a negative errno: that of
 * the copy, or the first one of the recording.
 */
int session_sink_copy(struct session_sink *sink, const struct run *run, uint64_t now_ns, int to_fd);

/*
 * Open another descriptor of the recording, to read what was flushed; the caller closes it.
 * Returns a negative errno if there is no recording or it cannot be read back.
 */
int session_sink_reopen(const struct session_sink *sink);

/*
 * End a recording, give it its name if it has samples, and open it for reading as replay_fd if an
 * output needs it. Returns 0; or a negative errno with a message, and replay_fd is negative or
 * what can still be read.
 */
int session_sink_finish(struct session_sink *sink, const struct run *run,
			const struct outputs *outputs, struct message *reterr);

/* Close and free everything. */
void session_sink_close(struct session_sink *sink);
