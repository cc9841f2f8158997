/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_notes.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "cmd/print.h"
#include "cmd/viewer_command.h"
#include "output/caveats.h"
#include "output/run/loss.h"
#include "output/run/stats.h"
#include "output/text/text.h"
#include "procmem/clock.h"
#include "procmem/hash.h"
#include "sampler/native/native_stacks.h"
#include "sampler/racing/racing.h"
#include "sampler/sample.h"

/* Whether the note with this text is said for the first time. */
static bool is_new(struct session *session, const char *text)
{
	struct printed_notes *notes = &session->notes;
	const uint64_t hash = hash_add_string(HASH_BEGIN, text);

	for (uint32_t i = 0; i < notes->nr; i++)
		if (notes->hashes[i] == hash)
			return false;
	if (notes->nr == MAX_NOTES_ONCE)
		return false;
	notes->hashes[notes->nr++] = hash;
	return true;
}

/* Print a note once, unless --quiet is given. */
static void print_once(struct session *session, const struct message *note)
{
	if (session->options.quiet || !is_new(session, note->text))
		return;
	progress_clear(&session->progress);
	print_note("%s", note->text);
}

/* The same for a note that names a process: only the first with this reason, unless --verbose. */
static void print_first(struct session *session, const char *reason, const struct message *note)
{
	if (is_new(session, reason) || session->options.verbose)
		print_once(session, note);
}

/* Returns how the run ended, for the line that sums it up. */
static const char *end_reason(const struct session *session)
{
	static const char *const reasons[] = {
		[TARGET_ENDED] = "the process has ended; ",
		[TARGET_NO_PYTHON] = "the process executed a program without CPython; ",
		[TARGET_NO_INTERPRETER] = "the process ended its interpreter, or started none; ",
		[TARGET_REFUSED] = "the process called exec; ",
		[TARGET_SAME] = "the interpreter's threads can no longer be listed; ",
	};

	if (session->root.course.end == END_DURATION)
		return "";
	if (sampler_end_is_out_of_reach(session->root.course.end))
		return "pysample can no longer preempt the process; ";
	return session->root.course.end == END_STOPPED ? "stopped; "
						       : reasons[session->root.course.after];
}

static bool has_collapsed(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (outputs->list[i].format == format_find("collapsed"))
			return true;
	return false;
}

/*
 * Print how many threads waited, and how long, if an output hides that. Of several periods the
 * number of threads is the greatest, because most threads are in all.
 */
static void print_idle(const struct session *session)
{
	const struct periods *periods = &session->periods;
	struct profile_account account = session_sink_sums(&session->sink)->account;
	const uint64_t nr_threads = account.nr_idle_threads > periods->max_idle_threads
					    ? account.nr_idle_threads
					    : periods->max_idle_threads;
	struct text text = {0};

	profile_account_add(&account, &periods->before.info.account);
	account.nr_idle_threads = nr_threads;
	caveats_append_idle(&text, &account);
	if (text.length && outputs_hide_idle(&session->options.outputs))
		print_note("%s", text_string(&text));
	text_done(&text);
}

/* Print what the mode shows, and how well CPU times were measured. */
static void print_mode(const struct session *session)
{
	const struct sampler_stats *stats = &session->before.stats;
	const enum profile_mode mode = session->options.profile.mode;
	const struct run_info *before = &session->periods.before.info;
	const struct profile_sums *sums = session_sink_sums(&session->sink);
	const uint64_t nr_shown = before->account.nr_shown + sums->account.nr_shown;

	if (mode == PROFILE_BUSY)
		print_idle(session);
	else if (mode != PROFILE_WALL)
		print_note("mode %s: %" PRIu64 " sample%s shown, %.3f s of %s%s",
			   profile_mode_name(mode), nr_shown, text_plural(nr_shown),
			   (double)(before->shown_ns + sums->time_ns) / NS_PER_S,
			   profile_mode_time(mode),
			   mode == PROFILE_CPU && has_collapsed(&session->options.outputs)
				   ? "; stacks are counted in microseconds"
				   : "");
	if (stats->clockless)
		print_note("the CPU time of %" PRIu64 " thread%s could not be measured: no "
			   "descriptors were left (ulimit -n), or %s ended at once",
			   stats->clockless, text_plural(stats->clockless),
			   stats->clockless == 1 ? "it" : "they");
	if (stats->rough_clocks)
		print_note("perf_event_open is not allowed (kernel.perf_event_paranoid above 2, or "
			   "a sandbox): CPU times have scheduler-tick resolution only "
			   "(threads: %" PRIu64 ")",
			   stats->rough_clocks);
}

/* Print that stacks are approximate, if any are. */
static void print_approximate(const struct sampler_stats *stats)
{
	struct text text = {0};

	caveats_append_approximate(&text, stats->approximate, stats->samples);
	if (text.length)
		print_note("%s", text_string(&text));
	text_done(&text);
}

/* Print whether deep stacks were copied in part, which needs a word in the target. */
static void print_cache(const struct session *session)
{
	static const char *const reasons[] = {
		[CACHE_NO_WORD] =
			"this CPython has no last_profiled_frame, or its offset is unknown",
		[CACHE_READ_ONLY] = "writing to the process is disabled",
		[CACHE_REFUSED] = "the process cannot be written to",
		[CACHE_SHARED] = "another profiler uses last_profiled_frame",
		[CACHE_OTHER_ENGINE] = "this engine does not write to the process",
	};
	const struct sampler_stats *stats = &session->before.stats;

	if (session->root.course.cache_reason != CACHE_USABLE)
		print_note("frame cache off: %s", reasons[session->root.course.cache_reason]);
	if (stats->writes || session->root.course.cache_reason == CACHE_USABLE) {
		print_note("frame cache: %" PRIu64 " stack%s walked only in part; %" PRIu64
			   " word%s written",
			   stats->cached, text_plural(stats->cached), stats->writes,
			   text_plural(stats->writes));
	}
}

/* Print how many threads' stacks the kernel could not be asked to copy. */
static void print_refused(uint64_t nr)
{
	if (nr)
		print_note("%" PRIu64 " thread%s could not be sampled while running, and have no C "
			   "frames there: too few open files (ulimit -Hn) or too little locked "
			   "memory (ulimit -l, kernel.perf_event_mlock_kb)",
			   nr, text_plural(nr));
}

/* Print how many stacks have C frames, and how many have gaps. */
static void print_native(const struct session *session)
{
	struct run_native native;

	session_count_native(session, &native);
	if (!native.is_on)
		return;
	print_note("%" PRIu64 " sample%s with C frames%s; %" PRIu64 " have " MERGED_STACK_GAP
		   " for Python frames that could not be proven, %" PRIu64 " for C frames",
		   native.nr_stacks, text_plural(native.nr_stacks),
		   native.user_cpu_only ? ", user CPU only" : "", native.nr_python_gaps,
		   native.nr_c_gaps);
	print_refused(native.nr_refused);
	if (session->options.verbose)
		print_note("of %" PRIu64 " stack copies %" PRIu64
			   " were of threads without Python, %" PRIu64 " were lost",
			   native.nr_copies, native.nr_foreign_copies, native.nr_lost_copies);
}

/* Print what the BPF program has counted, for --verbose. */
static void print_interrupts(const struct session *session)
{
	struct interrupt_counts counts;

	if (!session->bpf.programs.nr_programs)
		return;
	interrupts_pool_count(&session->bpf.programs, &counts);
	print_note("%" PRIu64 " interrupt%s, %.1f µs each; %" PRIu64
		   " of threads without Python, %" PRIu64 " duplicate",
		   (uint64_t)counts.nr_interrupts, text_plural(counts.nr_interrupts),
		   counts.nr_interrupts
			   ? (double)counts.program_ns / 1e3 / (double)counts.nr_interrupts
			   : 0,
		   (uint64_t)counts.nr_unknown, (uint64_t)counts.nr_duplicates);
	if (interrupts_pool_use_cpus(&session->bpf.programs))
		print_note("threads switched too often to be interrupted one by one: all CPUs were "
			   "interrupted instead");
}

/* Print how processes were followed, for --verbose. */
static void print_source(enum process_tree_source source)
{
	static const char *const names[NR_PROCESS_TREE_SOURCES] = {
		[PROCESS_TREE_CONNECTOR] = "reported by the proc connector",
		[PROCESS_TREE_PERF_CPU] = "reported by perf events of all CPUs",
		[PROCESS_TREE_PERF_THREADS] = "reported by perf events of its threads",
		[PROCESS_TREE_NEW_IDS] = "found by their ids: those that end soon are missed",
	};

	print_note("new processes are %s", names[source]);
}

/* Print which processes were not sampled, for --verbose. */
static void print_missed(const struct session *session)
{
	const uint64_t nr_too_short = session->children.nr_too_short;
	struct process_tree_stats stats;

	if (!session->tree)
		return;
	stats = process_tree_stats(session->tree);
	if (nr_too_short)
		print_note("%" PRIu64 " process%s ended before %s could be read", nr_too_short,
			   nr_too_short == 1 ? "" : "es", nr_too_short == 1 ? "it" : "they");
	if (stats.nr_maybe_missed)
		print_note("up to %" PRIu64 " process%s came and went unseen",
			   stats.nr_maybe_missed, stats.nr_maybe_missed == 1 ? "" : "es");
	if (stats.nr_losses)
		print_note("events of processes were lost %" PRIu64 " time%s", stats.nr_losses,
			   text_plural(stats.nr_losses));
}

/* Print all counters, for --verbose. */
static void print_counters(const struct session *session)
{
	const struct sampler_stats *stats = &session->before.stats;

	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		if (stats->lost[loss])
			print_note("lost, %s: %" PRIu64, loss_name((enum sample_loss)loss),
				   stats->lost[loss]);
	if (stats->failed_ticks)
		print_note("%" PRIu64 " tick%s failed: the list of threads was changing, or gone",
			   stats->failed_ticks, text_plural(stats->failed_ticks));
	print_note("%" PRIu64 " read%s, %" PRIu64 " clock reads, %" PRIu64 " other system call%s",
		   stats->reads, text_plural(stats->reads), stats->clock_reads,
		   stats->other_syscalls, text_plural(stats->other_syscalls));
	if (stats->lateness.nr)
		print_note("delay of ticks: %.1f µs (median), %.1f µs (99 %%), %.1f µs (maximum)",
			   (double)stats->p50_lateness_ns / 1e3,
			   (double)stats->p99_lateness_ns / 1e3, (double)stats->lateness.max / 1e3);
	print_cache(session);
	print_interrupts(session);
	print_missed(session);
}

/* Print the line that says what was sampled and what was lost. */
static void print_account(const struct session *session)
{
	const struct sampler_stats *stats = &session->before.stats;
	struct message followed = {0};
	struct text rate = {0};

	progress_append_rate(stats->ticks, stats->active_ns, session->options.rate_hz, &rate);
	if (session->root.course.nr_programs > 1)
		message_set(&followed, "followed into %s%s; ", session->root.target.command_line,
			    session->root.course.nr_programs > 2 ? ", the last of several programs"
								 : "");
	print_note("%s%s%" PRIu64 " sample%s of %" PRIu64
		   " tick%s in %.1f s, %s, %.2f %% lost, %" PRIu64 " tick%s late",
		   followed.text, end_reason(session), stats->samples, text_plural(stats->samples),
		   stats->ticks, text_plural(stats->ticks), stats_wall_s(stats), text_string(&rate),
		   loss_percent(stats), stats->late_ticks, text_plural(stats->late_ticks));
	if (stats->paused_ns)
		print_note("paused for %.1f s", (double)stats->paused_ns / NS_PER_S);
	text_done(&rate);
}

/* Set the message: thread states are run by other threads than those that they name. */
static void explain_other_threads(const struct session *session, struct message *retmessage)
{
	const bool can_race = racing_supports(&session->root.target.runtime.build) &&
			      session->root.engine.kind != ENGINE_RACING &&
			      session->options.extras.tasks == TASKS_NONE;

	message_set(retmessage,
		    "process %d runs Python thread states on threads other than their own, so "
		    "the stack of a running one cannot be proven%s",
		    session->root.pid,
		    can_race ? "; --engine racing samples them approximately" : "");
}

#define CPUS_REMEDY \
	"start pysample in the process's cpuset, or with the CPUs that 'taskset -cp %d' prints"

/* Set the message: why the process's CPU cannot be taken, then joint, then the remedy. */
static void explain_reach(const struct session_process *process, const char *joint,
			  struct message *retmessage)
{
	const pid_t pid = process->pid;

	if (process->course.end == END_REAL_TIME)
		message_set(retmessage,
			    "process %d has a real-time priority that pysample lacks%s start "
			    "pysample with a higher one than 'chrt -ap %d' prints (chrt -f)",
			    pid, joint, pid);
	else
		message_set(retmessage,
			    "process %d runs only on CPUs that pysample may not use%s " CPUS_REMEDY,
			    pid, joint, pid);
}

/* Print that the process ran where no look could be proven, unless that was rare. */
static void print_unreachable(const struct session *session)
{
	enum { SELDOM = 50 };

	if (session->before.nr_unreachable * SELDOM > session->before.stats.ticks)
		print_note("process %d ran on CPUs that pysample may not use in %" PRIu64
			   " looks, which are lost: " CPUS_REMEDY,
			   session->root.pid, session->before.nr_unreachable, session->root.pid);
}

static void print_unsampled(const struct unsampled_children *children)
{
	if (children->nr)
		print_note("%" PRIu32 " Python child%s not sampled: -s", children->nr,
			   children->nr == 1 ? " is" : "ren are");
}

/* Print why sampling did not continue with the last program of a process that was sampled. */
static void print_not_followed(const struct session_process *process)
{
	const struct session_course *course = &process->course;

	if (process->has_samples && course->not_followed.text[0] &&
	    !sampler_end_is_out_of_reach(course->end))
		print_note("the new program is not sampled: %s", course->not_followed.text);
}

void session_notes_end(const struct session *session)
{
	const uint64_t nr_other = session->periods.nr_other_samples +
				  session_sink_sums(&session->sink)->nr_other_samples;
	struct message why_other_threads;

	if (session->options.quiet)
		return;
	print_account(session);
	print_approximate(&session->before.stats);
	if (session->before.has_foreign_runners) {
		explain_other_threads(session, &why_other_threads);
		print_note("%s", why_other_threads.text);
	}
	print_unreachable(session);
	if (loss_hides_bursts(&session->before.stats))
		print_note("%" PRIu64 " stacks were dropped because the look had to wait until "
			   "a thread slept: " LOSS_BURSTS_TEXT
			   "; run 'pysample doctor %d' for details",
			   session->before.stats.lost[LOSS_LATE], session->root.pid);
	print_mode(session);
	print_native(session);
	print_not_followed(&session->root);
	print_unsampled(&session->unsampled);
	if (session->refused.nr)
		print_note("%" PRIu64 " process%s could not be sampled: %s", session->refused.nr,
			   session->refused.nr == 1 ? "" : "es", session->refused.why.text);
	if (nr_other)
		print_note("%" PRIu64 " sample%s in " PROFILE_OTHER_STACKS
			   ": the limit on stacks was reached",
			   nr_other, nr_other == 1 ? " is" : "s are");
	if (session->options.verbose)
		print_counters(session);
}

/* Print the size of an output that is a regular file, and the command that shows it. */
static void print_written(const struct output *output)
{
	struct text command = {0}, size = {0};
	const char *written = output->file.written.name;
	const char *path = written ? written : output->path;
	struct stat status;

	/* Recordings are written all the time; what is made of a profile may be left out. */
	if (output->format->write && !(output->is_written && output->is_complete))
		return;
	if (!path || stat(path, &status) || !S_ISREG(status.st_mode))
		return;
	viewer_command_append(output->format, path, &command);
	progress_append_bytes((uint64_t)status.st_size, &size);
	print_note("%s written to %s%s%s", text_string(&size), path,
		   command.length ? "; next: " : "", text_string(&command));
	text_done(&command);
	text_done(&size);
}

void session_notes_written(const struct session *session)
{
	const struct outputs *outputs = &session->options.outputs;

	if (session->options.quiet)
		return;
	for (unsigned i = 0; i < outputs->nr; i++)
		print_written(&outputs->list[i]);
}

/*
 * Print what must be known of the CPython of a process; with --verbose also where it is, which
 * engine samples it, and why that is not the best one. In a tree, what was said is not repeated.
 */
static void print_interpreter(struct session *session, const struct session_process *process)
{
	const struct target *target = &process->target;
	const struct engine *engine = &process->engine;
	struct message note;

	if (target->runtime.build.newer_than_tested && is_new(session, target->version))
		target_print_untested(&target->runtime.build, target->version);
	if (!session->options.verbose)
		return;
	if (!session->tree || is_new(session, target->runtime.image_path))
		target_print_found(target);
	message_set(&note, "engine %s%s%s", engine_name(engine->kind),
		    session->options.extras.tasks	? ", which --async requires"
		    : engine->why_no_interrupts.text[0] ? ", because bpf is unavailable: "
							: "",
		    engine->why_no_interrupts.text);
	if (!session->tree || is_new(session, note.text))
		print_note("%s", note.text);
}

void session_notes_begin(struct session *session)
{
	const struct sampling_options *options = &session->options;
	const char *const stop = options->duration_ns || session->is_child || session->view.ticked
					 ? ""
					 : "; Ctrl-C stops and writes the profile";

	if (options->quiet)
		return;
	if (session->root.sampler)
		print_note("sampling process %d, CPython %s%s%s", session->root.pid,
			   session->root.target.version,
			   session->tree ? ", and the processes it starts" : "", stop);
	else
		print_note("sampling process %d and the processes it starts%s", session->root.pid,
			   stop);
	if (session->root.sampler)
		print_interpreter(session, &session->root);
	if (session->tree && options->verbose)
		print_source(process_tree_source(session->tree));
}

void session_notes_native(struct session *session, const struct session_process *process)
{
	const struct engine *engine = &process->engine;
	struct message note;

	if (engine->kind == ENGINE_TICK) {
		message_set(&note,
			    "%.4g samples a second of each running thread, at the kernel's tick: "
			    "work in step with it is misrepresented",
			    (double)NS_PER_S / (double)engine->period_ns);
		print_once(session, &note);
	}
	if (engine->why_no_native.text[0]) {
		message_set(&note, "no C frames for running threads: %s",
			    engine->why_no_native.text);
		print_once(session, &note);
	}
	if (engine->why_no_kernel.text[0]) {
		message_set(&note, "no kernel frames: %s", engine->why_no_kernel.text);
		print_once(session, &note);
	}
}

void session_notes_change(struct session *session, const struct session_process *process)
{
	const bool is_deep = process->course.end == END_TOO_DEEP;
	struct message note;

	if (is_deep)
		message_set(&note,
			    "a stack of process %d has more frames than engine bpf can read: "
			    "continuing with engine preempt",
			    process->pid);
	else
		explain_reach(process,
			      ", so its stacks are read while it runs, which is approximate; for "
			      "exact stacks",
			      &note);
	print_first(session, is_deep ? "too deep" : "out of reach", &note);
}

void session_notes_other_engine(struct session *session, const struct session_process *process,
				const struct message *why)
{
	struct message note;

	message_set(&note, "process %d: sampling continues with engine %s: %s", process->pid,
		    engine_name(process->engine.kind), why->text);
	print_first(session, why->text, &note);
}

void session_notes_found(struct session *session, const struct session_process *process)
{
	const struct target *target = &process->target;

	if (session->options.quiet)
		return;
	progress_clear(&session->progress);
	if (session->options.verbose && session->tree)
		print_note("new process %d: %s, CPython %s", process->pid, target->command_line,
			   target->version);
	else if (session->options.verbose)
		print_note("followed into %s, CPython %s", target->command_line, target->version);
	print_interpreter(session, process);
}

void session_notes_refused(struct session *session, const struct message *why)
{
	if (!session->options.verbose || session->options.quiet)
		return;
	progress_clear(&session->progress);
	print_note("not sampled: %s", why->text);
}

void session_explain_no_reach(const struct session *session, const struct session_process *process,
			      struct message *retmessage)
{
	const bool is_native = session->options.engine.native;
	const bool has_tasks = session->options.extras.tasks != TASKS_NONE;
	struct message reach;

	explain_reach(process, ":", &reach);
	message_set(retmessage, "%s", reach.text);
	if ((is_native || has_tasks) && racing_supports(&process->target.runtime.build))
		message_set(retmessage, "%s; without %s it can be sampled approximately",
			    reach.text,
			    !has_tasks	 ? "-n"
			    : !is_native ? "--async"
					 : "-n and --async");
}

/* Set the message for a tree in which no interpreter was found. */
static void explain_no_python(const struct session *session, struct message *reterr)
{
	const uint64_t nr_too_short = session->children.nr_too_short;
	struct message missed = {0};

	if (nr_too_short)
		message_set(&missed, "; %" PRIu64 " ended before %s could be read", nr_too_short,
			    nr_too_short == 1 ? "it" : "they");
	message_set(reterr, "no CPython was found in process %d or in those that it started%s",
		    session->root.pid, missed.text);
}

void session_explain_no_sample(const struct session *session, struct message *reterr)
{
	const pid_t pid = session->root.pid;
	const uint64_t nr_lost = loss_total(&session->before.stats);

	if (sampler_end_is_out_of_reach(session->root.course.end))
		session_explain_no_reach(session, &session->root, reterr);
	else if (session->refused.nr)
		*reterr = session->refused.why;
	else if (session->root.course.after == TARGET_REFUSED)
		*reterr = session->root.course.not_followed;
	else if (session->tree && !session->has_interpreter &&
		 session->root.course.end != END_STOPPED)
		explain_no_python(session, reterr);
	else if (session->root.course.end == END_TARGET)
		message_set(reterr, "process %d ended before the first sample", pid);
	else if (session->before.has_foreign_runners)
		explain_other_threads(session, reterr);
	else if (nr_lost)
		message_set(reterr,
			    "no stack of process %d could be proven (%" PRIu64 " %s tried): "
			    "run 'pysample doctor %d' for details",
			    pid, nr_lost, nr_lost == 1 ? "was" : "were", pid);
	else if (session->root.course.end == END_REPLACED &&
		 session->root.course.after == TARGET_SAME)
		message_set(
			reterr,
			"the threads of process %d could not be listed: run 'pysample doctor %d' "
			"for details",
			pid, pid);
	else if (session->root.course.end == END_REPLACED)
		message_set(reterr, "the interpreter of process %d ended before the first sample",
			    pid);
	else if (session->root.course.end == END_STOPPED)
		message_set(reterr, "stopped before the first sample");
	else
		message_set(reterr,
			    "the duration ended before the first sample of process %d: use a "
			    "longer -d",
			    pid);
}

void session_explain_no_thread(const struct session *session, struct message *reterr)
{
	enum { NAMES_MAX_BYTES = 200 };
	struct text names = {0};

	thread_sink_append_names(&session->sink.threads, NAMES_MAX_BYTES, &names);
	message_set(
		reterr,
		"no thread of process %d matches --thread, so there is no profile; its threads: %s",
		session->root.pid, text_string(&names));
	text_done(&names);
}

void session_explain_none_shown(const struct session *session, struct message *reterr)
{
	static const char *const verbs[NR_PROFILE_MODES] = {
		[PROFILE_WALL] = "could be kept",
		[PROFILE_BUSY] = "could be kept",
		[PROFILE_CPU] = "used CPU time",
		[PROFILE_GIL] = "held the GIL",
		[PROFILE_EXCEPTION] = "handled an exception",
		[PROFILE_COUNT] = "could be kept",
	};
	const uint64_t nr_samples = session_sink_sums(&session->sink)->account.nr_samples;

	message_set(reterr,
		    "no sample of process %d (%" PRIu64 " in all) %s, so there is no profile: "
		    "--mode wall shows where the threads were, a longer -d may see more",
		    session->root.pid, nr_samples, verbs[session->options.profile.mode]);
}
