/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/sampling/session_notes.h"
#include "cmd/signals.h"
#include "procmem/clock.h"
#include "procmem/sched/cpu_clock.h"
#include "procmem/tree/process_name.h"
#include "sampler/cpython/threads/threads.h"

/* A process of less than this age may also end soon. */
#define NEW_NS 1000000000u

/* An interpreter may take as long as this to start on a busy machine, with no thread to list. */
#define STARTING_NS (60ull * NS_PER_S)

/*
 * Create a sampler of the program and choose its engine. Returns 0, -ENOMEM, -ESRCH, or an errno.
 */
static int create_sampler(struct session *session, struct session_process *process)
{
	struct target *target = &process->target;
	int err;

	if (!session->options.read_only)
		live_memory_allow_writes(&target->live);
	err = target_create_sampler(target, &process->sampler);
	if (err)
		return err;
	sampler_share_ids(process->sampler, &session->ids);
	sampler_set_process(process->sampler, process->index);
	sampler_set_extras(process->sampler, &session->options.extras);
	/* Who attaches to one that runs gets the rate requested, and nothing else. */
	process->engine_options.is_new =
		(session->tree || session->is_child) && process_age_ns(&target->process) < NEW_NS;
	err = engine_open(&process->engine_options, &session->bpf.programs, target,
			  process->sampler, &process->engine);
	if (!err)
		session_notes_native(session, process);
	return err;
}

/* Returns what the mode needs and this build of CPython does not have, or NULL. */
static const char *missing_for_mode(const struct py_offsets *offsets, enum profile_mode mode)
{
	if (mode == PROFILE_GIL && offsets->runtime.gil_locked == OFFSET_ABSENT &&
	    offsets->interpreter.gil_locked == OFFSET_ABSENT)
		return "who holds the GIL";
	if (mode == PROFILE_EXCEPTION && offsets->thread.raised == OFFSET_ABSENT)
		return "which exceptions are handled";
	return NULL;
}

/* Whether the kernel reports CPU times at all. */
static bool has_cpu_times(const struct process *process)
{
	struct cpu_clock clock = {0};
	pid_t tid;
	int err = process_live_thread(process, &tid);

	if (!err)
		err = cpu_clock_open(process, tid, &clock);
	cpu_clock_close(&clock);
	return err != -ENOTSUP;
}

/*
 * Check that this target can be shown in the requested mode. Returns EXIT_OK, or EXIT_ERROR with
 * a message.
 */
static enum exit_status check_mode(const struct session *session,
				   const struct session_process *process, struct message *reterr)
{
	const struct target *target = &process->target;
	const enum profile_mode mode = session->options.profile.mode;
	const char *missing = missing_for_mode(&target->runtime.build.offsets, mode);

	if (missing) {
		message_set(reterr, "CPython %s does not show %s: use --mode wall or --mode cpu",
			    target->version, missing);
		return EXIT_ERROR;
	}
	if (mode != PROFILE_CPU || has_cpu_times(&target->process))
		return EXIT_OK;
	message_set(reterr,
		    "this kernel reports the CPU time of threads neither by perf_event_open "
		    "nor by /proc/PID/task/TID/schedstat: use --mode wall");
	return EXIT_ERROR;
}

/*
 * Check that the requested engine can sample this target. Returns EXIT_OK, or EXIT_PERMISSION
 * with a message.
 */
static enum exit_status check_engine(const struct session *session,
				     const struct session_process *process, struct message *reterr)
{
	const struct engine_options *requested = &session->options.engine;
	const struct target *target = &process->target;

	if (requested->is_exact && requested->native && process->engine.kind != ENGINE_BPF) {
		message_set(reterr, "--exact with C frames requires engine bpf: %s",
			    process->engine.why_no_interrupts.text[0]
				    ? process->engine.why_no_interrupts.text
				    : "leave out --engine");
		return EXIT_PERMISSION;
	}
	if (!requested->is_named || requested->kind == process->engine.kind)
		return EXIT_OK;
	if (requested->kind != ENGINE_RACING)
		message_set(reterr, "--engine %s: %s", engine_name(requested->kind),
			    process->engine.why_no_interrupts.text);
	else
		message_set(
			reterr,
			"--engine racing requires CPython 3.11 or newer with a GIL, but process %d "
			"runs CPython %s%s: leave out --engine",
			target->process.pid, target->version,
			target->runtime.build.free_threaded ? " without a GIL" : "");
	return EXIT_PERMISSION;
}

/* Beginning. */

int session_process_record(struct session *session, struct session_process *process)
{
	char name[PROCESS_NAME_MAX_BYTES];
	const struct process_info info = {
		.pid = process->pid,
		.parent_pid = process->parent_pid,
		.name = name,
		.command_line = session->options.full_command ? process->target.command_line : NULL,
		.start_ns = process->begun_ns,
	};
	int err;

	process_name_read(&process->target.process, name);
	err = session_sink_add_process(&session->sink, &info, &process->index);
	process->is_recorded = !err;
	if (process->sampler)
		sampler_set_process(process->sampler, process->index);
	return err;
}

/* Tell the sink that the process has ended, if it knows it. Returns 0 or what the sink returned. */
static int end_row(struct session *session, struct session_process *process, uint64_t time_ns)
{
	if (!process->is_recorded)
		return 0;
	process->is_recorded = false;
	return session_sink_end_process(&session->sink, process->index, time_ns);
}

enum exit_status session_process_prepare(struct session *session, struct session_process *process,
					 struct message *reterr)
{
	enum exit_status status = check_mode(session, process, reterr);
	int err;

	if (status != EXIT_OK)
		return status;
	process->begun_ns = clock_now_ns();
	process->course.nr_programs = 1;
	process->engine_options = session->options.engine;
	err = create_sampler(session, process);
	if (err)
		return target_explain(&process->target, err, reterr);
	return check_engine(session, process, reterr);
}

/* Whether another engine may continue with the same program, given the options. */
static bool may_change(const struct engine_options *options)
{
	return !options->is_named && !(options->is_exact && options->native);
}

/* Add its sampler to the group. Errors of sampler_group_add(). */
static int add_to_group(struct session *session, struct session_process *process)
{
	const struct sampler_options options = {
		.engine = process->engine.kind,
		.ends_when_too_deep = may_change(&process->engine_options),
		.is_new = process->engine_options.is_new,
		.rate_hz = process->engine.kind == ENGINE_TICK
				   ? (double)NS_PER_S / (double)process->engine.period_ns
				   : session->options.rate_hz,
	};
	int err;

	process->live_before = process->target.live;
	err = sampler_group_add(session->group, process->sampler, &options, &process->course.end);
	if (err)
		return err;
	process->state = PROCESS_SAMPLED;
	session->has_interpreter = true;
	return 0;
}

/* Free the sampler and its engine. */
static void release_sampler(struct session_process *process)
{
	engine_close(&process->engine);
	sampler_destroy(process->sampler);
	process->sampler = NULL;
}

/* Search for what comes after the program. */
static void follow(struct session *session, struct session_process *process)
{
	struct target_wait wait = {
		.wait_ns = session->options.wait.wait_ns,
		.for_any = true,
		.stop = signals_stop_flag(),
	};

	/* The new program has just begun, however long the wait for the first one. */
	if (wait.wait_ns < TARGET_STARTING_NS)
		wait.wait_ns = TARGET_STARTING_NS;
	release_sampler(process);
	target_follow_begin(&process->target, &wait, &process->search);
	process->state = PROCESS_SEARCHED;
}

void session_process_refuse(struct session *session, pid_t pid, const struct message *why)
{
	char subject[sizeof("process 2147483647")];
	struct message named;

	(void)snprintf(subject, sizeof(subject), "process %d", pid);
	if (strstr(why->text, subject))
		named = *why;
	else
		message_set(&named, "%s: %s", subject, why->text);
	session_notes_refused(session, &named);
	if (!session->refused.nr++)
		session->refused.why = named;
}

/*
 * The process is not sampled, unless it calls exec. In a tree it is counted, otherwise its course
 * says why, which may be what why points to.
 */
static void give_up(struct session *session, struct session_process *process,
		    const struct message *why)
{
	struct session_course *course = &process->course;

	release_sampler(process);
	process->state = PROCESS_UNSAMPLED;
	course->after = TARGET_REFUSED;
	if (!sampler_end_is_out_of_reach(course->end))
		course->end = END_REPLACED;
	if (session->tree) {
		session_process_refuse(session, process->pid, why);
		course->not_followed = (struct message){0};
	} else {
		course->not_followed = *why;
	}
}

/* Whether an error of one process ends the run. In a tree most concern that process alone. */
static bool ends_run(const struct session *session, int err)
{
	return err && (err == -ENOMEM || session->sink.error || (!session->tree && err != -ESRCH));
}

/*
 * After an error that does not end the run: a process that is gone is searched for again, any other
 * one is no longer sampled. Returns the error if it ends the run, or 0.
 */
static int contain(struct session *session, struct session_process *process, int err)
{
	struct message why = {0};

	if (!err || ends_run(session, err))
		return err;
	/* It has ended or called exec meanwhile. */
	if (err == -ESRCH) {
		follow(session, process);
		return 0;
	}
	(void)target_explain(&process->target, err, &why);
	give_up(session, process, &why);
	return 0;
}

int session_process_begin(struct session *session, struct session_process *process)
{
	struct message why;
	int err;

	process->course.end = END_DURATION;
	for (;;) {
		err = add_to_group(session, process);
		if (err != -ENOTSUP ||
		    !engine_change(&process->engine, &process->target, process->course.end,
				   &process->engine_options))
			break;
		session_notes_change(session, process);
		release_sampler(process);
		err = create_sampler(session, process);
		if (err)
			break;
	}
	if (err != -ENOTSUP)
		return contain(session, process, err);
	session_explain_no_reach(session, process, &why);
	give_up(session, process, &why);
	return 0;
}

/* Its sampler has left the group: count. */
static void count_program(struct session *session, struct session_process *process,
			  enum sampler_end end)
{
	process->course.end = end;
	process->course.cache_reason = sampler_cache_reason(process->sampler);
	process->had_ticks = sampler_stats(process->sampler)->ticks > 0;
	session_add_counters(session, process);
	process->state = PROCESS_UNSAMPLED;
}

int session_process_ended(struct session *session, struct session_process *process,
			  enum sampler_end end, int err)
{
	/*
	 * A new program that cannot be read, such as a set-user-ID one, is tried again by a search.
	 */
	if (err == -EPERM && !session->sink.error &&
	    process_memory_is_gone(&process->target.process)) {
		err = 0;
		end = END_REPLACED;
	}
	count_program(session, process, end);
	if (err || end == END_DURATION || end == END_STOPPED)
		return contain(session, process, err);
	if (engine_change(&process->engine, &process->target, end, &process->engine_options)) {
		session_notes_change(session, process);
		release_sampler(process);
		err = create_sampler(session, process);
		if (!err)
			return session_process_begin(session, process);
		/* If the process has ended meanwhile, it is followed like any other. */
		if (err != -ESRCH)
			return contain(session, process, err);
	}
	follow(session, process);
	return 0;
}

/*
 * Whether the program that was found can be sampled as requested; if not, *reterr says why. The
 * first interpreter of a session must be sampled by a named engine, for later ones it is only
 * preferred; --exact is always required.
 */
static bool may_begin(struct session *session, const struct session_process *process,
		      struct message *reterr)
{
	struct message why = {0};

	if (check_mode(session, process, reterr) != EXIT_OK)
		return false;
	if (check_engine(session, process, &why) == EXIT_OK)
		return true;
	if (session->options.engine.is_exact || !session->has_interpreter) {
		*reterr = why;
		return false;
	}
	session_notes_other_engine(session, process, &why);
	return true;
}

/*
 * Tell the sink of the program that begins. One of a tree may be found before its exec is reported,
 * and ends the row of the one before. Returns 0 or what the sink returned.
 */
static int record_program(struct session *session, struct session_process *process, bool is_new)
{
	int err = 0;

	if (session->tree && is_new)
		err = end_row(session, process, process->begun_ns);
	return err || process->is_recorded ? err : session_process_record(session, process);
}

/*
 * Begin with an interpreter that was found, at forked_ns or now if that is 0. Returns errors that
 * end the run.
 */
static int begin_found(struct session *session, struct session_process *process, uint64_t forked_ns)
{
	const bool had_interrupts =
		process->engine.kind == ENGINE_BPF || process->engine.kind == ENGINE_TICK;
	const bool is_new = process->course.after == TARGET_FOLLOWED;
	struct message why = {0};
	int err;

	process->course.not_followed = why;
	process->begun_ns = forked_ns ? forked_ns : clock_now_ns();
	process->engine_options = session->options.engine;
	err = create_sampler(session, process);
	if (err)
		return contain(session, process, err);
	if (forked_ns)
		sampler_set_begin_ns(process->sampler, forked_ns);
	if (had_interrupts && !process->engine.interrupts && session->bpf.has_fewer_rights)
		message_set(&process->engine.why_no_interrupts,
			    "this CPython has another layout than the previous one, and the right "
			    "to load a BPF program for it was given up when sampling began");
	if (!may_begin(session, process, &why)) {
		give_up(session, process, &why);
		return 0;
	}
	process->course.nr_programs += is_new;
	if (is_new)
		session_notes_found(session, process);
	err = record_program(session, process, is_new);
	return err ? err : session_process_begin(session, process);
}

int session_process_fork(struct session *session, struct session_process *process,
			 const struct session_process *parent, uint64_t forked_ns,
			 const struct target_wait *wait)
{
	if (parent && parent->sampler && target_take_over(&process->target, &parent->target)) {
		process->course.after = TARGET_FOLLOWED;
		return begin_found(session, process, forked_ns);
	}
	target_search_begin(wait, &process->search);
	process->state = PROCESS_SEARCHED;
	return 0;
}

/* Whether its thread lists are damaged, such as circular, and not only incomplete. */
static bool has_endless_list(struct target *target)
{
	struct thread_list list;
	const int err = thread_list_read(&target->live.memory, &target->runtime.build,
					 target->runtime.addr, false, &list);

	if (!err)
		thread_list_done(&list);
	return err == -E2BIG;
}

/* Whether the program began so recently that its interpreter may not be complete. */
static bool may_be_starting(struct session_process *process, uint64_t now_ns)
{
	const bool is_young = process_age_ns(&process->target.process) < STARTING_NS ||
			      (process->executed_ns && now_ns - process->executed_ns < STARTING_NS);

	return is_young && !has_endless_list(&process->target);
}

/* Look once, and begin to sample what was found. Returns 0, or an error that ends the run. */
static int look(struct session *session, struct session_process *process, uint64_t now_ns)
{
	struct session_course *course = &process->course;
	struct message why;

	course->after =
		target_follow_look(&process->target, &process->search, &course->not_followed);
	if (course->after == TARGET_UNKNOWN)
		return 0;
	process->state = PROCESS_UNSAMPLED;
	/*
	 * The same interpreter is continued with only if it had a tick since it was last found, or
	 * is starting: otherwise one that can never be read would be found again and again.
	 */
	if (course->after == TARGET_FOLLOWED ||
	    (course->after == TARGET_SAME &&
	     (process->had_ticks || may_be_starting(process, now_ns))))
		return begin_found(session, process, 0);
	if (course->after == TARGET_REFUSED) {
		give_up(session, process, &course->not_followed);
		return 0;
	}
	if (course->after == TARGET_SAME && session->tree) {
		message_set(&why,
			    "the threads of process %d cannot be listed: run 'pysample doctor %d' "
			    "for details",
			    process->pid, process->pid);
		session_process_refuse(session, process->pid, &why);
	}
	if (course->after == TARGET_INTERRUPTED)
		course->end = END_STOPPED;
	else
		course->end = course->after == TARGET_ENDED ? END_TARGET : END_REPLACED;
	return 0;
}

int session_process_search(struct session *session, struct session_process *process,
			   uint64_t now_ns)
{
	const struct session_course *course = &process->course;
	int err = 0;

	if (process->state == PROCESS_SEARCHED && now_ns >= process->search.next_ns)
		err = look(session, process, now_ns);
	if (err || process->state != PROCESS_UNSAMPLED || course->end == END_DURATION ||
	    course->end == END_STOPPED)
		return err;
	return end_row(session, process, now_ns);
}

int session_process_executed(struct session *session, struct session_process *process,
			     uint64_t time_ns)
{
	int err;

	/* A search has found the new program before. */
	if (process->state == PROCESS_SAMPLED && time_ns < process->begun_ns)
		return 0;
	process->executed_ns = clock_now_ns();
	if (process->state == PROCESS_SAMPLED) {
		err = sampler_group_remove(session->group, process->sampler, END_REPLACED);
		err = session_process_ended(session, process, END_REPLACED, err);
	} else {
		follow(session, process);
		err = 0;
	}
	/* A parent in vfork(2) may still have the memory of the program before. */
	process->search.before_addr = 0;
	/* After the last samples. */
	return err ? err : end_row(session, process, time_ns);
}

int session_process_exited(struct session *session, struct session_process *process,
			   uint64_t time_ns)
{
	int err = 0;

	if (process->state == PROCESS_SAMPLED) {
		err = sampler_group_remove(session->group, process->sampler, END_TARGET);
		count_program(session, process, END_TARGET);
		release_sampler(process);
	}
	process->course.after = TARGET_ENDED;
	process->course.end = END_TARGET;
	process->state = PROCESS_UNSAMPLED;
	return ends_run(session, err) ? err : end_row(session, process, time_ns);
}

void session_process_close(struct session_process *process)
{
	release_sampler(process);
	target_close(&process->target);
}
