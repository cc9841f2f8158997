/* SPDX-License-Identifier: MIT */
/*
 * Implements session.h. It is not session.c because session_notes.h and the others that it calls
 * include session.h: a module of that name would be part of a circle.
 */
#include "cmd/sampling/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/sampling/rotation.h"
#include "cmd/sampling/session_children.h"
#include "cmd/sampling/session_notes.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/sampling/session_process.h"
#include "cmd/sampling/session_rights.h"
#include "cmd/signals.h"
#include "output/run/loss.h"
#include "output/run/run.h"
#include "output/run/run_part.h"
#include "output/text/text.h"
#include "procmem/clock.h"
#include "procmem/tree/process_name.h"

bool session_keep_arguments(struct session *session, int argc, char **argv)
{
	struct text text = {0};

	text_puts(&text, "pysample");
	for (int i = 0; i < argc; i++) {
		text_puts(&text, " ");
		text_puts(&text, argv[i]);
	}
	if (text.error) {
		text_done(&text);
		print_error("out of memory");
		return false;
	}
	session->invocation.arguments = text.bytes;
	return true;
}

bool session_keep_command(struct session *session, char *const *command)
{
	char *const own = session->invocation.arguments;
	char name[PROCESS_NAME_MAX_BYTES];
	struct text arguments = {0};

	for (; *command; command++)
		text_append(&arguments, *command, strlen(*command) + 1);
	process_name_format(text_string(&arguments), arguments.length, name);
	text_done(&arguments);
	if (asprintf(&session->invocation.arguments, "%s %s", own, name) < 0) {
		session->invocation.arguments = own;
		print_error("out of memory");
		return false;
	}
	free(own);
	return true;
}

/* Opening. */

enum exit_status session_open_outputs(struct session *session, pid_t pid, struct message *reterr)
{
	struct sampling_options *options = &session->options;
	enum exit_status status;

	session->root.pid = pid;
	session->periods.kept.max_periods = options->nr_keep;
	session->sink.outlives_errors = options->loop_ns != 0;
	if (rotation_name_outputs(session) != 0) {
		message_set(reterr, "out of memory");
		return EXIT_ERROR;
	}
	status = outputs_open(&options->outputs, reterr);
	if (status == EXIT_OK)
		status = session_sink_open(&session->sink, &options->outputs, reterr);
	if (status != EXIT_OK || !options->stats_path)
		return status;
	if (output_file_open(options->stats_path, &session->stats_output, reterr) != 0)
		return EXIT_ERROR;
	if (!outputs_have(&options->outputs, &session->stats_output))
		return EXIT_OK;
	message_set(reterr,
		    "-o and --stats-json name the same file: give one of them another name");
	return EXIT_USAGE;
}

void session_destroy_samplers(struct session *session)
{
	session_children_close(session);
	engine_close(&session->root.engine);
	sampler_destroy(session->root.sampler);
	session->root.sampler = NULL;
}

static void show_progress(struct session *session, uint64_t now_ns)
{
	struct sampler_stats stats;
	struct progress_figures figures;

	session_sum_counters(session, &stats);
	figures = (struct progress_figures){
		.elapsed_ns = now_ns - stats.start_ns,
		.active_ns = stats.active_ns,
		.is_paused = *signals_pause_flag(),
		.nr_samples = stats.samples,
		.nr_ticks = stats.ticks,
		.requested_hz = session->options.rate_hz,
		.lost_percent = loss_percent(&stats),
		.recorded_bytes = session_sink_bytes(&session->sink),
	};
	progress_show(&session->progress, &figures, now_ns);
}

/* Interval at which the counters are summed up; a recording is flushed less often. */
#define SUM_EVERY_NS 100000000u

/* Sum up the counters for the recording: those of the current period. */
void session_count_recorded(struct session *session)
{
	session_sum_counters(session, &session->recorded.stats);
	stats_subtract(&session->recorded.stats, &session->periods.before.stats);
	session_sink_set_stats(&session->sink, &session->recorded.stats);
}

/* Whether the children of the root are only counted, to say that they are not sampled. */
static bool counts_unsampled(const struct session *session)
{
	return !session->tree && !session->options.quiet;
}

static int ticked(void *context, uint64_t now_ns)
{
	struct session *session = context;

	const bool is_requested = signals_take_write_request();

	if (now_ns - session->recorded.at_ns >= SUM_EVERY_NS) {
		session_count_recorded(session);
		session->recorded.at_ns = now_ns;
	}
	if (counts_unsampled(session))
		unsampled_children_update(&session->unsampled, session->root.pid, now_ns);
	progress_set_paused(&session->progress, *signals_pause_flag());
	if (progress_is_due(&session->progress, now_ns))
		show_progress(session, now_ns);
	if (session->view.ticked)
		return session->view.ticked(session->view.context, now_ns, is_requested);
	if (session->options.loop_ns)
		return rotation_tick(session, now_ns, is_requested);
	return is_requested ? session_write_now(session) : 0;
}

/*
 * Set host to where the target's paths are valid: the name of the machine, and the mount
 * namespace if that, or its root, is not ours. Paths from elsewhere are shown without source
 * lines, now and later.
 */
static void name_host(struct session *session)
{
	bool other = false;
	size_t length;

	(void)gethostname(session->invocation.host, sizeof(session->invocation.host) - 1);
	if (process_other_namespace(&session->root.target.process, "mnt", &other) == 0 && !other &&
	    process_has_our_root(&session->root.target.process))
		return;
	length = strlen(session->invocation.host);
	(void)snprintf(session->invocation.host + length, sizeof(session->invocation.host) - length,
		       ", mount namespace of process %d", session->root.target.process.pid);
}

/*
 * Prepare to collect the samples of the sampler, which must exist. Returns 0, or a negative errno
 * with a message.
 */
static int begin_sink(struct session *session, struct message *reterr)
{
	const struct sampling_options *options = &session->options;
	struct run run;

	session->sink.watcher = (struct session_watcher){ticked, session};
	session->sink.filter = (struct name_filter){options->threads.patterns, options->threads.nr};
	session->invocation.realtime_ns = clock_ns(CLOCK_REALTIME) - clock_now_ns();
	name_host(session);
	session_describe(session, &run);
	return session_sink_begin(&session->sink, &options->outputs, &options->profile, &run,
				  reterr);
}

/* Tell the sink of the root if it has an interpreter. Returns EXIT_ERROR with a message. */
static enum exit_status record_root(struct session *session, struct message *reterr)
{
	int err = session->root.sampler ? session_process_record(session, &session->root) : 0;

	if (!err)
		return EXIT_OK;
	*reterr = session->sink.reason;
	if (!reterr->text[0])
		message_set(reterr, "out of memory");
	return EXIT_ERROR;
}

/* Open the root without waiting for an interpreter. */
static enum exit_status open_child(struct session *session, struct message *reterr)
{
	struct session_process *root = &session->root;
	enum exit_status status = target_open_process(root->pid, &root->target, reterr);

	if (status != EXIT_OK)
		return status;
	target_search_begin(&session->options.wait, &root->search);
	root->state = PROCESS_SEARCHED;
	return EXIT_OK;
}

/* Open the root and find its interpreter, without which there may be one in its children. */
static enum exit_status open_root(struct session *session, struct message *reterr)
{
	struct session_process *root = &session->root;
	enum exit_status status;

	status = target_open(root->pid, &session->options.wait, &root->target, reterr);
	if (status == EXIT_NOT_PYTHON && session->tree) {
		if (root->target.search_err != -ENOENT)
			session_process_refuse(session, root->pid, reterr);
		*reterr = (struct message){0};
		return EXIT_OK;
	}
	return status == EXIT_OK ? session_process_prepare(session, root, reterr) : status;
}

enum exit_status session_open_target(struct session *session, pid_t pid, struct message *reterr)
{
	struct session_process *root = &session->root;
	enum exit_status status = EXIT_OK;

	assert(root->pid == pid);
	sample_ids_init(&session->ids);
	if (session->options.subprocesses)
		status = session_children_open(session, reterr);
	if (status == EXIT_OK)
		status = session->tree && session->is_child ? open_child(session, reterr)
							    : open_root(session, reterr);
	if (status != EXIT_OK)
		return status;
	if (session->options.full_command)
		target_show_arguments(&root->target);
	if (begin_sink(session, reterr) != 0)
		return EXIT_ERROR;
	session->begun = true;
	return record_root(session, reterr);
}

/* Sampling. */

static int sampler_ended(void *context, struct sampler *sampler, enum sampler_end end, int err)
{
	struct session *session = context;

	if (sampler == session->root.sampler)
		return session_process_ended(session, &session->root, end, err);
	return session_children_ended(session, sampler, end, err);
}

static int before_sleep(void *context, uint64_t now_ns, uint64_t *ret_next_ns, bool *ret_is_over)
{
	struct session *session = context;
	const struct session_process *root = &session->root;
	int err;

	if (session->tree)
		return session_children_update(session, now_ns, ret_next_ns, ret_is_over);
	err = session_process_search(session, &session->root, now_ns);
	*ret_next_ns = root->state == PROCESS_SEARCHED ? root->search.next_ns : UINT64_MAX;
	*ret_is_over = root->state == PROCESS_UNSAMPLED;
	return err;
}

/* Sample until the run ends. */
static int sample_all(struct session *session)
{
	static const struct sampler_group_ops ops = {sampler_ended, before_sleep};
	const struct sampler_limits limits = {
		.duration_ns = session->options.duration_ns,
		.stop = signals_stop_flag(),
		.pause = signals_pause_flag(),
	};
	struct session_process *root = &session->root;
	enum sampler_end end = END_DURATION;
	int err =
		sampler_group_create(&limits, &ops, session, &session->sink.sink, &session->group);

	session_count_recorded(session);
	if (!err && session->tree)
		err = sampler_group_watch(session->group, process_tree_fd(session->tree));
	if (!err && session->view.ticked && session->view.fd >= 0)
		err = sampler_group_watch(session->group, session->view.fd);
	if (!err && root->sampler)
		err = session_process_begin(session, root);
	if (!err)
		err = sampler_group_run(session->group, &end);
	if (end != END_TARGET)
		root->course.end = end;
	if (session->group)
		session->before.stats.paused_ns = sampler_group_paused_ns(session->group);
	sampler_group_destroy(session->group);
	session->group = NULL;
	session_count_recorded(session);
	return err;
}

/* Set the message for what ended the sampling early, and return the status. */
static enum exit_status explain(struct session *session, int err, struct message *reterr)
{
	if (!session->sink.error)
		return target_explain(&session->root.target, err, reterr);
	*reterr = session->sink.reason;
	return EXIT_ERROR;
}

enum exit_status session_sample(struct session *session, struct message *reterr)
{
	int err;

	session_notes_begin(session);
	session_drop_rights(session);
	if (!session->options.quiet && !session->view.ticked)
		progress_begin(&session->progress, STDERR_FILENO,
			       session->is_child && isatty(STDOUT_FILENO), clock_now_ns());
	if (counts_unsampled(session))
		unsampled_children_look(&session->unsampled, session->root.pid);
	err = sample_all(session);
	if (counts_unsampled(session))
		unsampled_children_look(&session->unsampled, session->root.pid);
	progress_end(&session->progress);
	/* Samples that were taken are written, whatever happened afterwards. A view writes none. */
	if (err && (!session->before.stats.samples || session->view.ticked))
		return explain(session, err, reterr);
	if (!session->before.stats.samples) {
		session_explain_no_sample(session, reterr);
		return sampler_end_is_out_of_reach(session->root.course.end) ? EXIT_PERMISSION
									     : EXIT_NO_SAMPLE;
	}
	if (err) {
		struct message reason = {0};

		(void)explain(session, err, &reason);
		print_error("sampling ended early: %s", reason.text);
	} else {
		session_notes_end(session);
	}
	if (session->view.ticked)
		return EXIT_OK;
	if (session->sink.filter.nr && !session_sink_sums(&session->sink)->account.nr_samples &&
	    !session->periods.before.info.account.nr_samples) {
		session_explain_no_thread(session, reterr);
		return err ? EXIT_ERROR : EXIT_NO_SAMPLE;
	}
	/* A recording has the samples of all modes. */
	if (!profile_account_is_empty(&session_sink_sums(&session->sink)->account) ||
	    !profile_account_is_empty(&session->periods.before.info.account) ||
	    !outputs_next(&session->options.outputs))
		return err ? EXIT_ERROR : EXIT_OK;
	session_explain_none_shown(session, reterr);
	return err ? EXIT_ERROR : EXIT_NO_SAMPLE;
}

void session_close(struct session *session)
{
	outputs_discard(&session->options.outputs);
	output_file_discard(&session->stats_output);
	session_destroy_samplers(session);
	interrupts_pool_close(&session->bpf.programs);
	session_sink_close(&session->sink);
	kept_files_done(&session->periods.kept);
	session_process_close(&session->root);
	process_tree_close(session->tree);
	unsampled_children_done(&session->unsampled);
	sample_ids_done(&session->ids);
	free(session->invocation.arguments);
}
