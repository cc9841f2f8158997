/* SPDX-License-Identifier: MIT */
/* pysample top: a live view of a running process. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/output_pattern.h"
#include "cmd/print.h"
#include "cmd/process_choice.h"
#include "cmd/sampling/progress.h"
#include "cmd/sampling/rotation.h"
#include "cmd/signals.h"
#include "cmd/top/cpu_use.h"
#include "cmd/top/picture.h"
#include "cmd/top/saved_name.h"
#include "cmd/top/terminal.h"
#include "cmd/top/top_options.h"
#include "cmd/top/view.h"
#include "output/live/live_json.h"
#include "output/run/run_part.h"
#include "output/source/run_sources.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"

/*
 * A refresh computes everything anew. However long that takes, it uses at most this part of the
 * time.
 */
enum { REFRESH_DIVISOR = 50 };

/* Keys are looked for this often at most, whatever the rate is. */
#define KEYS_EVERY_NS 5000000u

/* The recording of what can be saved begins again when it has this size. */
#define RECORDING_MAX_BYTES ((uint64_t)256 << 20)

/* How long a message is shown. */
#define MESSAGE_NS ((uint64_t)10 * NS_PER_S)

/* The width of text that goes to no terminal. */
enum { PLAIN_COLUMNS = 160 };

struct top {
	struct top_options options;
	struct session session;
	struct live *live;	   /* owned */
	struct terminal *terminal; /* owned; NULL: batch */
	struct view view;
	struct cpu_use cpu_use;
	struct source_lines sources;
	struct run before;	   /* as of the last reset; all zero: there was none */
	uint64_t begin_ns;	   /* of what is shown; 0: nothing yet */
	uint64_t recorded_from_ns; /* begin of what can be saved; 0: that of what is shown */
	uint64_t keys_ns, due_ns;  /* of the last look for keys; of the next refresh */
	uint32_t nr_printed;
	struct message message;
	uint64_t message_until_ns;
	bool has_ended;	   /* the process has */
	bool is_suspended; /* sampling pauses, because the program is to stop */
};

/* Messages. */

static void show_message(struct top *top, uint64_t now_ns)
{
	top->message_until_ns = now_ns + MESSAGE_NS;
}

/* Saving. */

/*
 * Write a copy of the recording to a new file, which replaces no other one: the target chooses a
 * part of its name. Returns the name, which the caller frees; NULL with a message.
 */
static char *write_copy(struct top *top, uint64_t now_ns)
{
	const struct live_process *process = live_process(top->live, 0);
	const struct output_pattern_values values = {
		.start_unix_ns = clock_ns(CLOCK_REALTIME),
		.pid = top->session.root.pid,
	};
	char pattern[SAVED_NAME_MAX_BYTES];
	cleanup_free char *path = NULL;
	struct output_file file;
	struct run run;
	size_t counter_at;
	int err;

	saved_name_format(process ? process->name : "", &pattern);
	if (output_pattern_expand(pattern, &values, &path, &counter_at) != 0) {
		message_set(&top->message, "out of memory");
		return NULL;
	}
	err = output_file_open_unique(path, counter_at, &file, &top->message);
	if (!err)
		err = output_file_begin(&file, &top->message);
	if (err)
		return NULL;
	session_describe_period(&top->session, &run);
	err = session_sink_copy(&top->session.sink, &run, now_ns, fileno(file.stream));
	if (output_file_finish(&file, err, &top->message) != 0)
		return NULL;
	return output_file_take_written(&file).name;
}

static void save(struct top *top, uint64_t now_ns)
{
	const uint64_t from_ns = top->recorded_from_ns ? top->recorded_from_ns : top->begin_ns;
	const struct session_sink *sink = &top->session.sink;
	cleanup_free char *name = NULL;
	struct text size = {0};

	if (!session_sink_sums(sink)->account.nr_samples)
		message_set(&top->message, "there are no samples to save yet");
	else
		name = write_copy(top, now_ns);
	if (name) {
		progress_append_bytes(session_sink_bytes(sink), &size);
		message_set(&top->message,
			    "saved %s: %s, the last %.0f s; pysample report reads it", name,
			    text_string(&size), (double)(now_ns - from_ns) / NS_PER_S);
		text_done(&size);
	}
	show_message(top, now_ns);
	if (!top->terminal && !name)
		print_error("%s", top->message.text);
	else if (!top->terminal && !top->options.sampling.quiet)
		print_note("%s", top->message.text);
}

/*
 * Begin a new recording if this one is large, so that the disk does not fill up in a long run, or
 * if it is full because so many threads have come and gone.
 */
static int limit_recording(struct top *top, uint64_t now_ns)
{
	const struct session_sink *sink = &top->session.sink;

	if (session_sink_bytes(sink) < RECORDING_MAX_BYTES && session_sink_error(sink) != -E2BIG)
		return 0;
	top->recorded_from_ns = now_ns;
	return rotation_restart(&top->session, now_ns);
}

/* Forget all samples, and count in this mode from now on. Returns 0 or a negative errno. */
static int reset(struct top *top, enum profile_mode mode, uint64_t now_ns)
{
	int err;

	if (top->has_ended)
		return 0;
	top->session.options.profile.mode = mode;
	session_describe(&top->session, &top->before);
	top->before.stats.end_ns = now_ns;
	err = live_reset(top->live, mode);
	if (!err)
		err = rotation_restart(&top->session, now_ns);
	source_lines_done(&top->sources); /* its paths were those of the profile */
	top->sources = (struct source_lines){.until_ns = top->sources.until_ns};
	view_forget(&top->view);
	top->begin_ns = now_ns;
	top->recorded_from_ns = 0;
	return err;
}

/* Pictures. */

/* Describe the run since the last reset. */
static void describe(const struct top *top, struct run *ret_run)
{
	session_describe(&top->session, ret_run);
	run_subtract(ret_run, &top->before);
}

/* Compute what is shown of a profile, as the view has chosen. Returns 0 or -ENOMEM. */
static int compute(struct top *top, struct live_figures *figures, struct live_detail *detail)
{
	struct view *view = &top->view;
	int err = live_figures_init(figures, live_profile(top->live), view->by_line);

	if (err)
		return err;
	view_arrange(view, figures);
	if (!view->has_detail || !figures->nr_rows)
		return 0;
	return live_detail_init(detail, figures, &figures->rows[view->rows.selected],
				view_side(view));
}

/* Whether the paths of the process are those of files here, and of which age they must be. */
static bool may_show_sources(struct top *top, const struct run *run)
{
	uint64_t until_ns;

	if (!run_sources_are_here(run, 1, &until_ns))
		return false;
	/* A file that was changed since then is not the one that runs. */
	if (!top->sources.until_ns)
		top->sources.until_ns = run->info.start_unix_ns;
	return true;
}

static struct picture make_picture(struct top *top, const struct run *run, uint64_t now_ns)
{
	const struct live_process *process = live_process(top->live, 0);
	const long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (struct picture){
		.run = run,
		.live = top->live,
		.sources = may_show_sources(top, run) ? &top->sources : NULL,
		.name = process ? process->name : "",
		.message = now_ns < top->message_until_ns ? top->message.text : "",
		.cpu_share = cpu_use_update(&top->cpu_use, top->live, now_ns),
		.nr_cpus = nr_cpus > 0 ? (unsigned)nr_cpus : 1,
		.elapsed_ns = top->begin_ns ? now_ns - top->begin_ns : 0,
		.of_tree = top->session.options.subprocesses,
		.is_paused = *signals_pause_flag() != 0,
		.has_ended = top->has_ended,
	};
}

/* Draw on the terminal. */
static int draw(struct top *top, struct picture *picture)
{
	unsigned rows, columns;
	struct screen screen;
	int err;

	terminal_size(top->terminal, &rows, &columns);
	err = screen_init(&screen, rows, columns);
	if (!err) {
		picture_draw(picture, &top->view, &screen);
		terminal_draw(top->terminal, &screen);
	}
	screen_done(&screen);
	return err;
}

/* Print as text. */
static int print_text(struct top *top, struct picture *picture)
{
	const uint32_t nr_rows = picture->figures->nr_rows;
	const uint32_t max_rows = top->options.max_rows ? top->options.max_rows : UINT32_MAX;
	const unsigned columns = print_columns(STDOUT_FILENO);
	struct screen screen;
	int err = screen_init(&screen, picture_plain_rows(nr_rows < max_rows ? nr_rows : max_rows),
			      columns ? columns : PLAIN_COLUMNS);

	if (!err) {
		picture_draw_plain(picture, &top->view, &screen);
		if (top->nr_printed)
			(void)putchar('\n');
		for (unsigned i = 0; i < screen.rows; i++)
			(void)printf("%s\n", text_string(&screen.lines[i].text));
		(void)fflush(stdout);
	}
	screen_done(&screen);
	return err;
}

static int print_json(const struct top *top, const struct picture *picture)
{
	const struct live_context context = {
		.run = picture->run,
		.time_ns = clock_ns(CLOCK_REALTIME),
		.cpu_share = picture->cpu_share,
		.max_rows = top->options.max_rows,
	};
	int err = live_write_json(top->live, picture->figures, &context, stdout);

	return err == -ENOMEM ? err : 0; /* others are those of stdout, which keeps them */
}

/* Show what there is now. Returns 0 or -ENOMEM. */
static int refresh(struct top *top, uint64_t now_ns)
{
	struct live_figures figures = {.nr_rows = 0};
	struct live_detail detail = {.nr_tree = 0};
	struct picture picture;
	struct run run;
	int err;

	if (!*signals_pause_flag() && !top->has_ended)
		live_advance(top->live, now_ns);
	describe(top, &run);
	err = compute(top, &figures, &detail);
	if (!err) {
		picture = make_picture(top, &run, now_ns);
		picture.figures = &figures;
		picture.detail = detail.nr_tree ? &detail : NULL;
		err = top->terminal	     ? draw(top, &picture)
		      : top->options.is_json ? print_json(top, &picture)
					     : print_text(top, &picture);
	}
	live_detail_done(&detail);
	live_figures_done(&figures);
	return err;
}

/* Running. */

static int toggle_idle(struct top *top, uint64_t now_ns)
{
	const enum profile_mode mode = top->session.options.profile.mode;

	if (mode != PROFILE_BUSY && mode != PROFILE_WALL) {
		message_set(&top->message, "--mode %s has no idle threads",
			    profile_mode_name(mode));
		show_message(top, now_ns);
		return 0;
	}
	return reset(top, mode == PROFILE_BUSY ? PROFILE_WALL : PROFILE_BUSY, now_ns);
}

static void explain_native(struct top *top, uint64_t now_ns)
{
	const struct engine *engine = &top->session.root.engine;

	if (!top->session.options.engine.native)
		message_set(&top->message, "C frames must be chosen at the start: pysample top -n");
	else if (engine->why_no_native.text[0])
		message_set(&top->message, "no C frames for running threads: %s",
			    engine->why_no_native.text);
	else
		message_set(&top->message, "C frames are shown; without -n there are none");
	show_message(top, now_ns);
}

static int act(struct top *top, enum view_action action, uint64_t now_ns)
{
	switch (action) {
	case VIEW_QUIT:
		(void)signals_record_stop(SIGINT);
		return 0;
	case VIEW_PAUSE:
		if (!top->has_ended)
			signals_toggle_pause();
		return 0;
	case VIEW_RESET:
		return reset(top, top->session.options.profile.mode, now_ns);
	case VIEW_SAVE:
		save(top, now_ns);
		return 0;
	case VIEW_TOGGLE_IDLE:
		return toggle_idle(top, now_ns);
	case VIEW_EXPLAIN_NATIVE:
		explain_native(top, now_ns);
		return 0;
	case VIEW_DRAW:
	default:
		return 0;
	}
}

/*
 * Stop if Ctrl-Z was pressed. That is a pause of the sampling, too, which has begun at the tick
 * after its request: no thread is interrupted for us meanwhile, and the time counts for nothing.
 */
static void stop_if_requested(struct top *top)
{
	const bool is_requested = terminal_take_suspension(top->terminal);
	const bool is_paused = *signals_pause_flag() || top->has_ended;

	if (is_requested && !is_paused) {
		signals_toggle_pause();
		top->is_suspended = true;
	} else if (is_requested || top->is_suspended) {
		terminal_suspend(top->terminal);
		if (top->is_suspended && *signals_pause_flag())
			signals_toggle_pause();
		top->is_suspended = false;
		top->due_ns = 0;
	}
}

/* Handle the keys that were pressed. Returns 0 or a negative errno. */
static int take_keys(struct top *top, uint64_t now_ns)
{
	int err = 0;
	int key;

	top->keys_ns = now_ns;
	stop_if_requested(top);
	while (!err && (key = terminal_key(top->terminal)) >= 0) {
		err = act(top, view_press(&top->view, key), now_ns);
		top->due_ns = now_ns;
	}
	if (terminal_is_gone(top->terminal))
		(void)signals_record_stop(SIGHUP);
	return err;
}

/* Show a screen if it is time to. Returns 0 or -ENOMEM. */
static int refresh_if_due(struct top *top, uint64_t now_ns)
{
	const uint64_t interval_ns = top->options.interval_ns;
	const uint64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t least_ns;
	int err;

	if (now_ns < top->due_ns)
		return 0;
	err = refresh(top, now_ns);
	top->nr_printed++;
	least_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns) * REFRESH_DIVISOR;
	top->due_ns = now_ns + (interval_ns > least_ns ? interval_ns : least_ns);
	if (!top->terminal && (ferror(stdout) || top->nr_printed == top->options.nr_screens))
		(void)signals_record_stop(SIGINT);
	return err;
}

static int ticked(void *context, uint64_t now_ns, bool is_requested)
{
	struct top *top = context;
	int err = 0;

	if (!top->begin_ns) {
		top->begin_ns = now_ns;
		top->due_ns = now_ns + (top->terminal ? 0 : top->options.interval_ns);
		(void)cpu_use_update(&top->cpu_use, top->live, now_ns);
	}
	if (is_requested)
		save(top, now_ns);
	if (top->terminal && now_ns - top->keys_ns >= KEYS_EVERY_NS) {
		err = take_keys(top, now_ns);
		now_ns = clock_now_ns(); /* the program may have been stopped meanwhile */
	}
	if (!err)
		err = limit_recording(top, now_ns);
	return err ? err : refresh_if_due(top, now_ns);
}

static int process_added(void *context, uint32_t index, const struct process_info *info)
{
	return live_set_process(((struct top *)context)->live, index, info);
}

/* After the end of the process: show its last figures until the user has seen them. */
static int linger(struct top *top)
{
	int err = 0;

	message_set(&top->message, "the process has ended: q quits, S saves");
	top->message_until_ns = UINT64_MAX;
	top->due_ns = 0;
	while (!err && !*signals_stop_flag()) {
		enum { WAIT_MS = 100 };
		struct pollfd poll_fd = {.fd = terminal_fd(top->terminal), .events = POLLIN};
		const uint64_t now_ns = clock_now_ns();

		err = take_keys(top, now_ns);
		if (!err && now_ns >= top->due_ns) {
			err = refresh(top, now_ns);
			top->due_ns = UINT64_MAX;
		}
		if (!err)
			(void)poll(&poll_fd, 1, WAIT_MS);
	}
	return err;
}

/* Show the last figures. Returns 0 or a negative errno. */
static int show_end(struct top *top)
{
	if (!top->terminal)
		return refresh(top, clock_now_ns());
	return top->has_ended ? linger(top) : 0;
}

/* Sample until the user, the process or an option ends it. */
static enum exit_status sample(struct top *top, struct message *reterr)
{
	struct session *session = &top->session;
	enum exit_status status;

	if (!top->options.is_batch && terminal_open(&top->terminal, reterr) != 0)
		return EXIT_ERROR;
	session->view = (struct session_view){
		.ticked = ticked,
		.context = top,
		.fd = top->terminal ? terminal_fd(top->terminal) : -1,
	};
	status = session_sample(session, reterr);
	if (*signals_stop_flag() && status == EXIT_NO_SAMPLE) {
		status = EXIT_OK;
		*reterr = (struct message){.text = ""};
	}
	top->has_ended = session->root.course.end != END_DURATION;
	if (status == EXIT_OK && !*signals_stop_flag() && show_end(top) != 0) {
		message_set(reterr, "out of memory");
		status = EXIT_ERROR;
	}
	terminal_close(top->terminal);
	return status;
}

static enum exit_status watch(struct top *top, pid_t pid)
{
	struct session *session = &top->session;
	const struct live_options live = {
		.mode = session->options.profile.mode,
		.keep_plumbing = session->options.profile.keep_plumbing,
		.interval_ns = session->options.engine.period_ns,
	};
	struct message message = {0};
	enum exit_status status = EXIT_ERROR;

	top->view.is_plain = top->options.is_batch;
	top->view.by_line = session->options.profile.by_line;
	top->live = live_create(&live);
	if (top->live) {
		session->sink.observer =
			(struct session_observer){live_sink(top->live), process_added, top};
		session->sink.keeps_samples = true;
		status = session_open_outputs(session, pid, &message);
	} else {
		message_set(&message, "out of memory");
	}
	if (status == EXIT_OK)
		status = session_open_target(session, pid, &message);
	if (status == EXIT_OK)
		status = sample(top, &message);
	if (message.text[0])
		print_error("%s", message.text);
	return print_finish(status);
}

/* Parse the arguments. Returns EXIT_USAGE after printing an error. */
static enum exit_status parse(int argc, char **argv, struct top *top, pid_t *ret_pid,
			      bool *ret_done)
{
	int first;
	enum exit_status status;

	top->options = top_options_default();
	status = options_parse(&top_command, argc, argv, &top->options, &first, ret_done);
	if (status != EXIT_OK || *ret_done)
		return status;
	if (!top_options_choose(&top->options))
		return EXIT_USAGE;
	top->session.options = top->options.sampling;
	return process_choose(argc, argv, first, top->options.sampling.process_name, ret_pid);
}

static enum exit_status run_top(int argc, char **argv)
{
	struct top *top = calloc(1, sizeof(*top));
	enum exit_status status = EXIT_ERROR;
	bool done = false;
	pid_t pid;

	if (!top) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	top->session = SESSION_NONE;
	if (session_keep_arguments(&top->session, argc, argv))
		status = parse(argc, argv, top, &pid, &done);
	if (status == EXIT_OK && !done) {
		signals_catch_stops();
		signals_catch_write_requests();
		signals_catch_pauses();
		signals_make_writes_fail();
		status = watch(top, pid);
	}
	session_close(&top->session);
	live_destroy(top->live);
	cpu_use_done(&top->cpu_use);
	source_lines_done(&top->sources);
	free(top);
	return status;
}

const struct command top_command = {
	.name = "top",
	.summary = "watch where a running process spends its time, live",
	.usage = "[OPTION]… [PID]",
	.about =
		"Samples a running CPython process, and shows on the terminal, each second anew:\n"
		"CPU, GIL and garbage collection, the threads and what they do, the functions by\n"
		"their own and total time of the last seconds and since the start, and for the\n"
		"selected one its callers, the tree of what it calls, and its source lines. The key\n"
		"? lists all keys. Figures are those of attach: of threads that do not wait, unless\n"
		"--idle is given or the key i pressed. The process is never stopped.\n"
		"\n"
		"The key S, or SIGUSR1, saves all samples since the start or the last reset as a\n"
		"recording NAME-PID-TIME.pysample in the current folder.\n",
	.groups = top_options_groups,
	.nr_groups = TOP_OPTIONS_NR_GROUPS,
	.operands = OPERAND_PID,
	.epilogue =
		"Exit status: 0 quit, or the process has ended, 1 error, 2 usage, 3 not a Python\n"
		"process or an unknown version, 4 permission denied, 5 no sample could be taken.\n"
		"\n"
		"Examples:\n"
		"  pysample top 1234                   where the time goes, live\n"
		"  pysample top -s --name gunicorn     a server with all its workers\n"
		"  pysample top -b -c 1 1234           one screen as text\n"
		"  pysample top -b --json 1234 | jq -c '.functions[0]'\n",
	.run = run_top,
};
