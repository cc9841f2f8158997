/* SPDX-License-Identifier: MIT */
/*
 * Sampling one process, from the opening of its outputs to their writing: what attach and run
 * have in common. The calls come in the order below, behind session_sample() those of
 * cmd/sampling/session_outputs.h; after one that failed only these, which write what there is, and
 * session_close().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/sampling/engine.h"
#include "cmd/sampling/progress.h"
#include "cmd/sampling/sampling_options.h"
#include "cmd/sampling/session_sink.h"
#include "output/profile/profile.h"
#include "output/run/run.h"
#include "sampler/sampler.h"

enum { HOST_MAX_BYTES = 65 }; /* HOST_NAME_MAX of Linux, and a NUL */

/* SESSION_NONE until it is opened; options are set before. It must not be moved. */
struct session {
	struct sampling_options options;
	char *arguments; /* of pysample itself, separated by spaces; owned; NULL: not known */
	char host[HOST_MAX_BYTES];

	bool is_child; /* the process is our child: it has our terminal */
	struct progress progress;

	pid_t pid;
	struct target target;
	struct engine_options engine_options; /* of the last program */
	struct engine engine;		      /* of it */
	struct sampler *sampler;	      /* NULL between two programs */
	struct session_sink sink;
	struct output_file stats_output;
	int recording_fd; /* what is left to be written is made of it; owned; -1: there is none */

	struct sampler_stats stats;   /* of all programs before this one, at the end of all */
	struct sampler_stats watched; /* what a recording is told of all, where there are several */
	uint64_t watched_ns;	      /* when they were summed up last */
	struct run_native native;     /* of all programs before this one, as stats */
	uint64_t realtime_ns;	      /* what CLOCK_REALTIME was before CLOCK_MONOTONIC */
	unsigned int nr_followed;     /* programs that came after the first */
	enum target_next after;	      /* what came after the last one, if it is gone */
	struct message not_followed;  /* why that was refused */
	enum sampler_end end;	      /* why the sampling ended */
	bool begun;		      /* there are counters to be told */
	bool has_fewer_rights;	      /* than when the first engine was chosen */
	bool is_sampling;	      /* the sampler has counters that stats has not */
	struct live_memory live_before;	      /* the memory's when that began */
	enum frame_cache_reason cache_reason; /* of the last program */
	uint64_t nr_away;		      /* of all: sampler_nr_away() */
	bool runs_elsewhere;		      /* any: sampler_runs_elsewhere() */
};

#define SESSION_NONE       \
	((struct session){ \
		.target.process = PROCESS_CLOSED, .sink = SESSION_SINK_NONE, .recording_fd = -1})

/*
 * Keep the words of the command line for the artefacts; argv[0] is the command's name. To be
 * called before the options are parsed, which changes their order. False after an error was
 * printed.
 */
bool session_keep_arguments(struct session *session, int argc, char **argv);

/* Open what options name to be written. EXIT_OK; EXIT_ERROR or EXIT_USAGE with a sentence. */
enum exit_status session_open_outputs(struct session *session, struct message *reterr);

/*
 * Open process pid, find its interpreter, as long as options.wait allows, and be ready to
 * sample. EXIT_OK, or the status to exit with and a sentence.
 */
enum exit_status session_open_target(struct session *session, pid_t pid, struct message *reterr);

/*
 * Sample until the process, the duration or the stop flag ends it, one program of the process
 * after the other, with the notes of the beginning and of the end on stderr. EXIT_OK: there is
 * something to write; or a status and, unless it was printed, a sentence.
 */
enum exit_status session_sample(struct session *session, struct message *reterr);

/* Free the sampler, behind session_sample(): what samples named is gone by that. */
void session_destroy_sampler(struct session *session);

/* Close and free everything; what was not written is as it was before. */
void session_close(struct session *session);

/* The counters of C frames so far, also while it is being sampled. */
void session_count_native(const struct session *session, struct run_native *ret_native);

/*
 * The run so far; without a target only what is known of ourselves. Its strings are borrowed
 * from session.
 */
void session_describe(const struct session *session, struct run *ret_run);
