/* SPDX-License-Identifier: MIT */
/*
 * Samples a process and, on request, all that it starts, from the opening of the outputs to their
 * writing: what attach, run and top have in common. The functions are called in the order below;
 * those of cmd/sampling/session_outputs.h follow session_sample(). After a failed call only these,
 * which write what there is, and session_close() may be called.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/sampling/engine.h"
#include "cmd/sampling/periods.h"
#include "cmd/sampling/progress.h"
#include "cmd/sampling/sampling_options.h"
#include "cmd/sampling/session_sink.h"
#include "cmd/sampling/unsampled_children.h"
#include "cmd/target.h"
#include "output/profile/profile.h"
#include "output/run/run.h"
#include "procmem/tree/process_tree.h"
#include "sampler/sample_ids.h"
#include "sampler/sampler.h"
#include "sampler/sampler_group.h"

/* HOST_NAME_MAX of Linux, the mount namespace of a process, and a NUL. */
enum { HOST_MAX_BYTES = 64 + sizeof(", mount namespace of process 4294967295") };

/* How and where pysample was started, for the description of the run. */
struct session_invocation {
	char *arguments; /* owned; our own command line, separated by spaces; NULL: unknown */
	char host[HOST_MAX_BYTES];
	uint64_t realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
};

/* Counters of several programs, of one process or of several. */
struct session_sums {
	struct sampler_stats stats;
	struct run_native native;
	uint64_t nr_unreachable;  /* sampler_nr_unreachable() */
	bool has_foreign_runners; /* sampler_has_foreign_runners(), for any of them */
};

/* The counters of all programs, for the recording. */
struct recorded_sums {
	struct sampler_stats stats;
	uint64_t at_ns; /* when they were last summed up */
};

/* Which programs a process ran, and why its sampling ended. */
struct session_course {
	unsigned int nr_programs;    /* with an interpreter */
	enum target_next after;	     /* what came after the last program, if that is gone */
	struct message not_followed; /* why the next program is not sampled */
	enum sampler_end end;	     /* why the sampling ended */
	enum frame_cache_reason cache_reason; /* for the last program */
};

/* What becomes of a process now. */
enum session_process_state {
	PROCESS_UNSAMPLED, /* only an exec can change that */
	PROCESS_SEARCHED,  /* it is searched for an interpreter */
	PROCESS_SAMPLED,
};

/* A process that is sampled, or may be. It must not be moved. */
struct session_process {
	pid_t pid, parent_pid; /* parent_pid is 0 for the root */
	uint64_t begun_ns;     /* when its program was found, or forked from its parent's */
	enum session_process_state state;
	struct target target;
	struct target_search search;	      /* of PROCESS_SEARCHED */
	struct engine_options engine_options; /* for the last program */
	struct engine engine;		      /* for the last program */
	struct sampler *sampler;	      /* NULL between two programs */
	bool had_ticks;			      /* the last program */
	uint64_t executed_ns;		      /* the last exec reported; 0: none */
	bool has_samples;		      /* any program that is over */
	struct live_memory live_before;	      /* the memory's counters when it was last begun */
	bool is_recorded;		      /* the sink knows the process as number index */
	uint32_t index;
	struct session_course course;
};

/* Of so many distinct notes, none is printed twice in a session; of more, none. */
enum { MAX_NOTES_ONCE = 64 };

/* What was printed. */
struct printed_notes {
	uint64_t hashes[MAX_NOTES_ONCE];
	uint32_t nr;
};

/* The processes that could not be sampled, with the root, if a tree is sampled. */
struct session_refusals {
	uint64_t nr;
	struct message why; /* the first was refused: a sentence that names it */
};

/* All processes but the root. */
struct session_children {
	/* owned, and each element, too; in ascending order of their ids */
	struct session_process **list;
	uint32_t nr, max;
	uint64_t nr_too_short; /* that ended before a stack could be read */
	int err;	       /* the first that ends the run; 0: none */
};

/* The programs that were loaded into the kernel, and whether more can be. */
struct session_bpf {
	struct interrupts_pool programs; /* of all samplers */
	bool has_fewer_rights;		 /* than when the first engine was chosen */
};

/* What a view of the running session does; set before session_open_target(). */
struct session_view {
	/*
	 * Called at every tick, and when fd is readable; is_requested: SIGUSR1 came. A negative
	 * errno ends the run. NULL: there is no view.
	 */
	int (*ticked)(void *context, uint64_t now_ns, bool is_requested);
	void *context;
	int fd; /* borrowed; -1: none */
};

/* SESSION_NONE until it is opened; options are set before. It must not be moved. */
struct session {
	struct sampling_options options;
	struct session_view view;
	struct session_invocation invocation;

	bool is_child; /* the root is our child and uses our terminal */
	struct progress progress;
	struct printed_notes notes;

	struct session_process root; /* the process that was named or started */
	struct session_children children;
	struct session_refusals refused;
	struct unsampled_children unsampled; /* if only the root is sampled */
	struct process_tree *tree;   /* which processes there are; NULL: only the root is sampled */
	struct sampler_group *group; /* of all samplers; NULL when nothing is sampled */
	struct sample_ids ids;	     /* of all samplers */
	struct session_bpf bpf;

	struct session_sink sink;
	struct output_file stats_output;
	struct periods periods;

	struct session_sums before; /* of the programs that are over; at the end, of all */
	struct recorded_sums recorded;
	bool begun;	      /* there are counters to report */
	bool has_interpreter; /* some process was sampled, so a named engine is only preferred */
};

#define SESSION_NONE \
	((struct session){.root.target.process = PROCESS_CLOSED, .sink = SESSION_SINK_NONE})

/*
 * Keep the words of the command line for the artefacts; argv[0] is the command's name. Must be
 * called before the options are parsed, which reorders them. Returns false after printing an
 * error.
 */
bool session_keep_arguments(struct session *session, int argc, char **argv);

/*
 * Add the short name of a command to the kept words: its arguments may hold passwords
 * (procmem/tree/process_name.h). command ends with NULL. Returns false after printing an error.
 */
bool session_keep_command(struct session *session, char *const *command);

/*
 * Open the outputs that options name; pid, which is that of session_open_target(), can be in their
 * names. Returns EXIT_OK, or EXIT_ERROR or EXIT_USAGE with a message.
 */
enum exit_status session_open_outputs(struct session *session, pid_t pid, struct message *reterr);

/*
 * Open process pid, find its interpreter, waiting as long as options.wait allows, and prepare to
 * sample. With options.subprocesses the process itself may run anything, and if it is our child
 * nothing is waited for. Returns EXIT_OK, or another exit status with a message.
 */
enum exit_status session_open_target(struct session *session, pid_t pid, struct message *reterr);

/*
 * Sample until the process, the duration or the stop flag ends it, one program of the process
 * after another. Prints the notes at the beginning and the end to stderr. Returns EXIT_OK if
 * there is something to write; or another status with a message, unless that was printed.
 */
enum exit_status session_sample(struct session *session, struct message *reterr);

/* Free the samplers, after session_sample(). The functions of their samples are gone then. */
void session_destroy_samplers(struct session *session);

/* Close and free everything. Outputs that were not written stay as they were. */
void session_close(struct session *session);

/* Sum up the counters so far, also while sampling. */
void session_sum_counters(const struct session *session, struct sampler_stats *ret_stats);

/*
 * Add the counters of a process, PROCESS_SAMPLED, whose sampler has left the group, and note
 * whether it has samples.
 */
void session_add_counters(struct session *session, struct session_process *process);

/* Count the C frames so far, also while sampling. */
void session_count_native(const struct session *session, struct run_native *ret_native);

/*
 * Describe the run so far; without a target, only what is known of ourselves. Strings are
 * borrowed from session.
 */
void session_describe(const struct session *session, struct run *ret_run);

/* The same for the current period; without --loop that is the run. */
void session_describe_period(const struct session *session, struct run *ret_run);

/*
 * While sampling, let the recording of a new period, which has just begun, have the counters since
 * then.
 */
void session_count_recorded(struct session *session);
