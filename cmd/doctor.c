/* SPDX-License-Identifier: MIT */
/*
 * pysample doctor: reports what can be read of a process and, if something cannot, what to do
 * about it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/sampling/engine.h"
#include "cmd/shared_options.h"
#include "cmd/target.h"
#include "cmd/user.h"
#include "output/dump/dump_frames.h"
#include "output/profile/label.h"
#include "output/text/text.h"
#include "procmem/sched/cpu_pin.h"
#include "procmem/sched/sched_policy.h"
#include "sampler/racing/racing.h"
#include "sampler/sampler.h"

/* Limit on the incomplete stacks that are reported one by one; all of them are counted. */
enum { MAX_SHOWN_STACKS = 10 };

/* CPU time between two stacks of a thread, as in attach. No sample is waited for. */
enum { PERIOD_NS = 10000000 };

/* Print one line of the report: a heading and a finding, escaped for a terminal. */
static void report(const char *heading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void report(const char *heading, const char *format, ...)
{
	struct text line = {0};
	struct message found;
	va_list args;

	va_start(args, format);
	/* clang-tidy 14 loses sight of va_start(). NOLINTNEXTLINE(clang-analyzer-valist.*) */
	(void)vsnprintf(found.text, sizeof(found.text), format, args);
	va_end(args);
	text_printf(&line, "%-12s ", heading);
	label_append_escaped(&line, found.text, strlen(found.text), LABEL_DISPLAY);
	text_puts(&line, "\n");
	(void)text_write(&line, stdout);
	text_done(&line);
}

static void report_process(const struct target *target)
{
	static const char *const kinds[] = {"mnt", "pid", "user", "net"};
	const uint32_t uid = target->process.uid;
	struct text others = {0};
	bool other, known = true;
	struct user user;

	report("process", "%d of user %s (%u): %s", target->process.pid,
	       user_find(uid, &user) == 0 ? user.name : "?", uid, target->command_line);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (process_other_namespace(&target->process, kinds[i], &other) != 0)
			known = false;
		else if (other)
			text_printf(&others, "%s%s", others.length ? ", " : "", kinds[i]);
	if (others.length)
		report("namespaces",
		       "separate: %s (as in a container); files are opened "
		       "through /proc/%d",
		       text_string(&others), target->process.pid);
	else
		report("namespaces", "%s", known ? "ours" : "unknown");
	text_done(&others);
}

static void report_memory(const struct target *target)
{
	report("memory", "can be read%s", target_memory_note(target));
}

static void report_interpreter(const struct target *target)
{
	const struct runtime *runtime = &target->runtime;

	report_memory(target);
	report("interpreter", "CPython %s, by %s in %s", target->version, runtime->found_by,
	       runtime->image_path);
	if (runtime->build.free_threaded)
		report("GIL", "disabled unless PYTHON_GIL=1 or an extension has enabled it: a "
			      "free-threaded build");
	if (runtime->build.newer_than_tested)
		report("version", "newer than this pysample was tested with, or a pre-release: its "
				  "struct layouts were inferred from their contents");
	if (frame_cache_has_words(&runtime->build))
		report("frame cache", "%s",
		       live_memory_can_write(&target->live)
			       ? "for deep stacks of the main thread; writes one word to it, "
				 "last_profiled_frame, unless attach --read-only is used"
			       : "none: the process cannot safely be written to from here");
	else
		report("frame cache", "%s",
		       runtime->build.newer_than_tested
			       ? "none: not used in versions that were not tested"
			       : "none: requires last_profiled_frame, new in CPython 3.15");
	if (runtime->build_id[0])
		report("build ID", "%s", runtime->build_id);
	if (runtime->nr_others)
		report("others", "%u more CPython%s in this process and cannot be sampled",
		       runtime->nr_others, runtime->nr_others == 1 ? " runs" : "s run");
}

/* Whether a look can take a running thread's CPU, from best to worst. */
enum reach { REACH_AT_ONCE, REACH_OLD_KERNEL, REACH_NICER, REACH_REAL_TIME, REACH_NO_SHARED_CPU };

static enum reach reach_of(const struct cpu_pin *pin, pid_t tid)
{
	if (!cpu_pin_shares_cpu(pin, tid))
		return REACH_NO_SHARED_CPU;
	if (sched_policy_is_outranked(tid))
		return REACH_REAL_TIME;
	if (!sched_policy_may_preempt(tid))
		return REACH_NICER;
	return pin->slice_is_refused && !sched_policy_is_real_time() ? REACH_OLD_KERNEL
								     : REACH_AT_ONCE;
}

/* A sink that counts proven, unproven and incomplete stacks. */
struct stack_count {
	struct sample_sink sink;
	size_t nr_interpreters;
	int64_t interpreter_id; /* of the last sample; samples of an interpreter are consecutive */
	size_t nr_proven;
	size_t nr_unproven;
	size_t nr_incomplete;
	size_t nr_named; /* by Python's threading module */
	size_t nr_known; /* with a kernel thread id */
	const struct cpu_pin *pin;
	enum reach reach;     /* of the thread that is hardest to reach */
	pid_t reach_tid;      /* that thread */
	size_t nr_outranking; /* threads whose real-time policy keeps us from their CPU */
};

/* Record how a thread can be reached. */
static void count_reach(struct stack_count *count, pid_t tid)
{
	const enum reach reach = tid ? reach_of(count->pin, tid) : REACH_AT_ONCE;

	count->nr_outranking += reach == REACH_REAL_TIME;
	if (count->reach_tid && reach <= count->reach)
		return;
	count->reach = reach;
	count->reach_tid = tid;
}

static int count_stack(struct sample_sink *sink, const struct sample *sample)
{
	struct stack_count *count = (struct stack_count *)sink;
	const struct sample_thread *thread = sample->thread;

	if (!count->nr_interpreters || thread->interpreter_id != count->interpreter_id)
		count->nr_interpreters++;
	count->interpreter_id = thread->interpreter_id;
	count->nr_named += thread->is_named;
	count->nr_known += thread->tid != 0;
	count_reach(count, thread->tid);
	if (sample->error) {
		if (count->nr_incomplete++ < MAX_SHOWN_STACKS)
			report("stack", "of thread %d \"%s\" cannot be read: %s", thread->tid,
			       thread->name, dump_error_text(sample->error));
	} else if (sample->flags & SAMPLE_UNPROVEN) {
		count->nr_unproven++;
	} else {
		count->nr_proven++;
	}
	return 0;
}

static void report_threads(const struct stack_count *count)
{
	const size_t nr_threads = count->nr_proven + count->nr_unproven + count->nr_incomplete;
	struct text line = {0};

	text_printf(&line, "%zu in %zu interpreter%s, %zu stack%s proven", nr_threads,
		    count->nr_interpreters, text_plural(count->nr_interpreters), count->nr_proven,
		    text_plural(count->nr_proven));
	if (count->nr_unproven)
		text_printf(&line, ", %zu could be read but not proven (%s running)",
			    count->nr_unproven, count->nr_unproven == 1 ? "it was" : "they were");
	if (count->nr_incomplete)
		text_printf(&line, ", %zu could not be read", count->nr_incomplete);
	report("threads", "%s", text_string(&line));
	report("names", "%zu of %zu thread%s named by threading, %zu with a kernel thread id",
	       count->nr_named, nr_threads, text_plural(nr_threads), count->nr_known);
	text_done(&line);
}

/* Report what proves that a look shows one instant. */
static void report_proofs(const struct sampler *sampler, pid_t tid)
{
	const struct witness_proofs proofs = sampler_probe_proofs(sampler, tid);
	struct text line = {0};

	if (proofs.has_rseq)
		text_puts(&line, ", rseq");
	if (proofs.has_clock)
		text_puts(&line, ", perf_event_open");
	if (proofs.has_runs)
		text_puts(&line, ", schedstat");
	if (line.length)
		report("instant", "proven by %s", text_string(&line) + strlen(", "));
	else
		report("instant", "cannot be proven: neither rseq, perf_event_open nor schedstat "
				  "is available");
	text_done(&line);
}

/* Whether attach would be exact, rather than racing, without interrupts. */
static bool is_exact(const struct stack_count *count)
{
	return count->reach != REACH_NO_SHARED_CPU &&
	       (!count->nr_outranking || count->nr_outranking < count->nr_known);
}

/* Report whether looks can take the CPUs of running threads, and how soon. */
static void report_preemption(const struct stack_count *count)
{
	const pid_t tid = count->reach_tid;

	switch (count->reach) {
	case REACH_AT_ONCE:
		report("preemption", "at once");
		break;
	case REACH_OLD_KERNEL:
		report("preemption",
		       "may have to wait until the process sleeps; such stacks are dropped "
		       "(late): this kernel is older than Linux 6.12");
		break;
	case REACH_NICER:
		report("preemption",
		       "late, so ticks are skipped: thread %d has precedence over pysample by its "
		       "nice value or policy; give pysample the same (nice, chrt)",
		       tid);
		break;
	case REACH_REAL_TIME:
		report("preemption",
		       "%s: thread %d has a real-time priority; start pysample with a higher one "
		       "than 'chrt -p %d' prints (chrt -f)",
		       is_exact(count) ? "late, so ticks are skipped" : "none", tid, tid);
		break;
	case REACH_NO_SHARED_CPU:
		report("preemption",
		       "none: thread %d runs only on CPUs that pysample may not use; 'taskset -cp "
		       "%d' prints them",
		       tid, tid);
		break;
	}
}

/* Report which engine attach would use. Returns 0, or -ESRCH if the process has ended. */
static int try_engine(struct target *target, struct sampler *sampler, bool *ret_interrupts)
{
	const struct engine_options options = {.period_ns = PERIOD_NS};
	struct interrupts_pool pool = {.nr_programs = 0};
	struct engine engine;
	int err = engine_open(&options, &pool, target, sampler, &engine);

	*ret_interrupts = !err && engine.kind == ENGINE_BPF;
	if (err)
		report("engine", "none: %s", strerror(-err));
	else if (*ret_interrupts)
		report("engine", "bpf: stacks are read in the threads' own interrupts");
	else
		report("engine", "preempt: see preemption; bpf is unavailable: %s",
		       engine.why_no_interrupts.text);
	engine_close(&engine);
	interrupts_pool_close(&pool);
	return err == -ESRCH ? err : 0;
}

/*
 * Report which C and kernel frames attach -n could sample. Returns 0, or -ESRCH if the process
 * has ended.
 */
static int try_native(struct target *target, struct sampler *sampler)
{
	const struct engine_options options = {
		.native = true,
		.kernel_frames = true,
		.period_ns = PERIOD_NS,
	};
	struct interrupts_pool pool = {.nr_programs = 0};
	struct engine engine;
	int err = engine_open(&options, &pool, target, sampler, &engine);

	if (err) {
		report("C frames", "cannot be sampled: %s", strerror(-err));
		return err == -ESRCH ? err : 0;
	}
	if (engine.why_no_native.text[0])
		report("C frames", "for waiting threads only: %s", engine.why_no_native.text);
	else
		report("C frames", "available%s: attach -n",
		       sampler_native_stats(engine.native)->is_user_only ? ", user CPU only" : "");
	if (engine.why_no_kernel.text[0])
		report("kernel", "no frames: %s", engine.why_no_kernel.text);
	else
		report("kernel", "available: attach -n --kernel");
	engine_close(&engine);
	interrupts_pool_close(&pool);
	return 0;
}

/* Try what attach and dump do: list the threads and walk their stacks. */
static enum exit_status try_threads(struct target *target, bool *ret_exact, struct message *reterr)
{
	static const struct sample_sink_ops ops = {.sample = count_stack};
	struct cpu_pin pin = {.is_open = false};
	struct stack_count count = {.sink.ops = &ops, .pin = &pin};
	struct sampler *sampler = NULL;
	bool has_interrupts = false;
	int err = target_create_sampler(target, &sampler);

	/* cpu_pin_open() fails where CPU affinities cannot be read. */
	if (!err && !cpu_pin_open(&pin))
		cpu_pin_fit_slice(&pin, 0);
	if (!err)
		err = sampler_dump(sampler, &count.sink);
	if (!err) {
		report_threads(&count);
		report_proofs(sampler, target->process.pid);
		report_preemption(&count);
		err = try_engine(target, sampler, &has_interrupts);
	}
	if (!err)
		err = try_native(target, sampler);
	sampler_destroy(sampler);
	cpu_pin_close(&pin);
	if (err)
		return target_explain(target, err, reterr);
	*ret_exact = has_interrupts || is_exact(&count);
	if (!*ret_exact && !racing_supports(&target->runtime.build)) {
		message_set(reterr, "its threads cannot be preempted: see preemption");
		return EXIT_PERMISSION;
	}
	if (count.nr_proven || count.nr_unproven)
		return EXIT_OK;
	message_set(reterr,
		    "no stack of process %d can be read: try again, or while it does "
		    "something else",
		    target->process.pid);
	return EXIT_NO_SAMPLE;
}

static enum exit_status examine(pid_t pid, const struct target_wait *wait, struct target *target)
{
	struct message message = {0};
	enum exit_status status = target_open(pid, wait, target, &message);
	bool exact = true;

	if (target->process.proc_fd >= 0)
		report_process(target);
	if (status == EXIT_OK) {
		report_interpreter(target);
		status = try_threads(target, &exact, &message);
	} else if (status == EXIT_PERMISSION) {
		report("memory", "cannot be read");
	} else if (status == EXIT_NOT_PYTHON) {
		if (process_is_kernel_thread(&target->process))
			report("memory", "none: a kernel thread");
		else
			report_memory(target);
		report("interpreter", "none usable");
	}
	if (status == EXIT_OK)
		report("verdict", "it can be sampled%s: pysample attach %d",
		       exact ? "" : ", but only approximately", pid);
	else
		report("verdict", "%s", message.text);
	return status;
}

static enum exit_status run(int argc, char **argv)
{
	struct target target = {.process = PROCESS_CLOSED};
	struct target_wait wait = TARGET_WAIT_DEFAULT;
	enum exit_status status;
	bool is_done;
	pid_t pid;
	int first;

	status = options_parse(&doctor_command, argc, argv, &wait, &first, &is_done);
	if (status != EXIT_OK || is_done)
		return status;
	if (!parse_only_pid(argc, argv, first, &pid))
		return EXIT_USAGE;
	status = examine(pid, &wait, &target);
	target_close(&target);
	return print_finish(status);
}

static const struct option_group groups[] = {{"Options:", wait_option, 1, .at = 0}};

const struct command doctor_command = {
	.name = "doctor",
	.summary = "check whether a process can be sampled, and what to do if not",
	.usage = "[OPTION]… PID",
	.about = "Checks what sampling a process needs, one line each, and says what to do about\n"
		 "the first requirement that is not met. C and kernel frames are only needed by\n"
		 "attach -n.\n",
	.groups = groups,
	.nr_groups = sizeof(groups) / sizeof(*groups),
	.operands = OPERAND_PID,
	.epilogue =
		"Exit status: 0 the process can be sampled, 1 error, 2 usage, 3 not a Python\n"
		"process, no interpreter running yet, or an unknown version, 4 permission denied,\n"
		"5 the process ended, or none of its stacks can be read.\n",
	.run = run,
};
