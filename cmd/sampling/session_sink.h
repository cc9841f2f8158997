/* SPDX-License-Identifier: MIT */
/*
 * Where the samples of a session go: into a profile, or into a recording, which is one of the
 * outputs or a temporary file that they are made of.
 */
#pragma once

#include <stdint.h>

#include "cmd/outputs.h"
#include "output/profile/profile.h"
#include "output/recording/recorder.h"
#include "procmem/core/spool.h"
#include "sampler/sample.h"

/*
 * What is told of every tick, from the sampling loop: it has to be cheap. A negative errno ends
 * the run. ticked is NULL if nobody is.
 */
struct session_watcher {
	int (*ticked)(void *context, uint64_t now_ns);
	void *context;
};

/* Private but for watcher, which is set before the sampling begins. */
struct session_sink {
	struct sample_sink sink; /* first: it is one */
	struct session_watcher watcher;
	struct profile *profile;   /* owned; one of the two */
	struct recorder *recorder; /* owned */
	struct sample_sink *next;  /* theirs */
	struct output *recording;  /* what it writes; NULL: spool */
	struct spool spool;
	uint64_t header_bytes; /* of the recording, before any sample */
	uint64_t tried_bytes;  /* of the recording, when it was last to have its name */
	int error;	       /* the first one of the recording; 0 */
	struct message reason; /* and its sentence */
};

#define SESSION_SINK_NONE ((struct session_sink){.spool = SPOOL_NONE})

/*
 * Find out, before the work begins, whether there is a place for what outputs need, which are
 * open: one of them that is a recording has to be read back if there are others. EXIT_OK, or
 * the status to exit with and a sentence. outputs stay where they are until session_sink_close().
 */
enum exit_status session_sink_open(struct session_sink *sink, struct outputs *outputs,
				   struct message *reterr);

/*
 * Begin to take samples in: of process run->info.pid, for outputs that want a profile of those
 * options. 0; a negative errno and a sentence.
 */
int session_sink_begin(struct session_sink *sink, const struct outputs *outputs,
		       const struct profile_options *options, const struct run *run,
		       struct message *reterr);

/* What follows is another sampler's. */
void session_sink_change_sampler(struct session_sink *sink);

/* Have a recording tell these counters at every flush, borrowed until this is called again. */
void session_sink_watch(struct session_sink *sink, const struct sampler_stats *stats);

/* What was taken in so far, and the sums of what the mode shows of it; borrowed. */
const struct profile_sums *session_sink_sums(const struct session_sink *sink);

/* Bytes of the recording so far, spooled or not; 0 without one. */
uint64_t session_sink_bytes(const struct session_sink *sink);

/*
 * Have all that a recording took in until now_ns be in it, under its name if it can have that,
 * with what there is to say of the run by now. 0, also without a recording; a negative errno: it
 * has failed, which ends the run.
 */
int session_sink_flush(struct session_sink *sink, const struct run *run, uint64_t now_ns);

/*
 * Another descriptor of the recording, to read what was flushed; the caller closes it. A
 * negative errno: there is none, or it cannot be read back.
 */
int session_sink_reopen(const struct session_sink *sink);

/*
 * End a recording, which gets its name now if it has samples, and open it to be read:
 * *ret_fd, which the caller closes, or negative if nobody needs that. 0; a negative errno and a
 * sentence, and *ret_fd is negative or what can be read still.
 */
int session_sink_finish(struct session_sink *sink, const struct run *run,
			const struct outputs *outputs, int *ret_fd, struct message *reterr);

/* Close and free everything. */
void session_sink_close(struct session_sink *sink);
