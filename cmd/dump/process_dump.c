/* SPDX-License-Identifier: MIT */
#include "cmd/dump/process_dump.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cmd/dump/tasks.h"
#include "cmd/print.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/thread_wait.h"

/*
 * Add what the kernel knows of the threads that the dump does not have. Threads that end
 * meanwhile are left out. Returns 0, or the errno of process_threads().
 */
static int add_native_threads(const struct target *target, struct dump *dump)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(&target->process, &threads, &nr_threads);

	dump_include_native(dump);
	for (size_t i = 0; !err && i < nr_threads; i++) {
		struct native_thread native = {.tid = threads[i].tid};
		struct thread_wait wait;

		if (thread_wait_read(&target->process, native.tid, &wait))
			continue;
		native.state = wait.state;
		memcpy(native.name, threads[i].name, sizeof(native.name));
		memcpy(native.wchan, wait.wchan, sizeof(native.wchan));
		err = dump_add_native(dump, &native);
	}
	return err;
}

/*
 * Returns when the process was started (CLOCK_REALTIME), rounded up because the kernel reports
 * hundredths of a second; 1, long ago, if that is unknown.
 */
static uint64_t start_of(const struct process *process)
{
	const uint64_t age_ns = process_age_ns(process);
	const uint64_t now_ns = clock_ns(CLOCK_REALTIME);

	return age_ns < now_ns ? now_ns - age_ns + NS_PER_S / 100 : 1;
}

/* Collect the stacks, then the tasks. Returns errors of sampler_dump(). */
static int collect_stacks(struct process_dump *taken, struct sample_sink *sink)
{
	int err = sampler_dump(taken->sampler, sink);

	return err ? err : tasks_dump(taken->sampler, &taken->target.maps, sink, taken->dump);
}

/* The same with C frames, whose functions native keeps. */
static int collect_native_stacks(struct process_dump *taken, bool kernel_frames)
{
	struct dump_native *native = &taken->native;
	struct waits *waits = &taken->waits;
	int err = dump_native_init(native, &taken->target, taken->sampler, kernel_frames,
				   dump_sink(taken->dump));

	if (!err && native->why_no_kernel.text[0])
		print_note("no kernel frames: %s", native->why_no_kernel.text);
	waits_init(waits, &taken->target.process, &native->sink);
	if (!err)
		err = collect_stacks(taken, &waits->sink);
	if (!err && native->nr_unknown)
		print_note("no C frames for %zu of %zu threads: %s", native->nr_unknown,
			   native->nr_threads,
			   native->why_no_native.text[0]
				   ? native->why_no_native.text
				   : "they moved, but did not run long enough to be copied; "
				     "another dump may succeed");
	return err;
}

/* Collect everything that was requested. Returns errors of sampler_dump(). */
static int collect(struct process_dump *taken, const struct process_dump_options *options)
{
	const struct sampler_extras extras = {
		.details = true,
		.locks = true,
		.value_max_chars = options->value_max_chars,
	};
	int err = target_create_sampler(&taken->target, &taken->sampler);

	if (err)
		return err;
	sampler_set_extras(taken->sampler, &extras);
	if (options->value_max_chars)
		dump_include_variables(taken->dump);
	if (!options->is_ungrouped)
		dump_group_stacks(taken->dump);
	if (options->shows_task_tree)
		dump_show_task_tree(taken->dump);
	if (!options->is_ungrouped && options->is_of_tree)
		dump_fold_starts(taken->dump);
	waits_init(&taken->waits, &taken->target.process, dump_sink(taken->dump));
	err = options->native ? collect_native_stacks(taken, options->kernel_frames)
			      : collect_stacks(taken, &taken->waits.sink);
	if (!err && options->source) {
		taken->sources.until_ns = start_of(&taken->target.process);
		dump_include_sources(taken->dump, &taken->sources);
	}
	if (!err && options->verbose)
		err = add_native_threads(&taken->target, taken->dump);
	return err;
}

enum exit_status process_dump_take(struct process_dump *taken, pid_t pid,
				   const struct process_dump_options *options,
				   struct message *reterr)
{
	enum exit_status status;
	int err = -ENOMEM;

	memset(taken, 0, sizeof(*taken));
	taken->sources.newer = "the process";
	status = target_open(pid, &options->wait, &taken->target, reterr);
	if (options->full_command && taken->target.process.proc_fd >= 0)
		target_show_arguments(&taken->target);
	if (status != EXIT_OK)
		return status;
	if (options->verbose)
		target_print_found(&taken->target);
	target_print_untested(&taken->target.runtime.build, taken->target.version);
	taken->dump = dump_create();
	if (taken->dump)
		err = collect(taken, options);
	return err ? target_explain(&taken->target, err, reterr) : EXIT_OK;
}

void process_dump_done(struct process_dump *taken)
{
	dump_destroy(taken->dump);
	waits_done(&taken->waits);
	source_lines_done(&taken->sources);
	dump_native_done(&taken->native);
	sampler_destroy(taken->sampler);
	target_close(&taken->target);
}

struct run_info process_dump_info(const struct process_dump *taken)
{
	return (struct run_info){
		.target.command_line = taken->target.command_line,
		.target.pid = taken->target.process.pid,
		.python.version = taken->target.version,
	};
}
