/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_report.h"

#include <errno.h>
#include <string.h>

#include "cmd/dump/tasks.h"

/* Whether the file at path is used as the program that ran. */
static bool is_used(const struct core_file *executable, const char *path)
{
	return executable && executable->image && executable->found_path &&
	       strcmp(executable->found_path, path) == 0;
}

/*
 * Report the files that are no longer what was mapped, except the one given: find_file_problems()
 * reports it.
 */
static void find_other_builds(struct core_report *report, const struct core_target *target)
{
	const char *given = target->places->executable;

	for (size_t i = 0; i < target->files->nr_files; i++) {
		const struct core_file *file = &target->files->files[i];

		if (file->state != CORE_FILE_DIFFERS || !file->found_path ||
		    (given && strcmp(file->found_path, given) == 0))
			continue;
		problems_add(&report->problems, "%s was not used: another build of %s was mapped",
			     file->found_path,
			     strcmp(file->found_path, file->path) == 0 ? "it" : file->path);
	}
}

/* Report the files that could not be opened, and what to do. */
static void find_closed_files(struct core_report *report, const struct core_files *files)
{
	size_t nr_too_many = 0;

	for (size_t i = 0; i < files->nr_files; i++) {
		const struct core_file *file = &files->files[i];

		nr_too_many += file->state == CORE_FILE_TOO_MANY;
		if (file->state == CORE_FILE_FORBIDDEN)
			problems_add(&report->problems, "%s was not used: no permission to read it",
				     file->found_path ? file->found_path : file->path);
	}
	if (nr_too_many)
		problems_add(&report->problems,
			     "%zu of its files were not used: too many open files; raise the limit "
			     "(ulimit -Hn)",
			     nr_too_many);
}

/* Report what is unusable in the core's own tables, and which files are not used. */
static void find_file_problems(struct core_report *report, const struct core_target *target)
{
	const struct core *core = target->core;
	const struct core_file *executable = core_target_executable(target);

	if (core->segments.nr_unusable)
		problems_add(&report->problems, "%zu of its program headers are invalid",
			     core->segments.nr_unusable);
	if (core->notes.nr_files_lost)
		problems_add(&report->problems, "%zu of its entries for mapped files are invalid",
			     core->notes.nr_files_lost);
	if (target->places->executable && !is_used(executable, target->places->executable))
		problems_add(
			&report->problems,
			"%s was not used: the program that ran has another build ID, or is not "
			"identified by the core",
			target->places->executable);
	find_other_builds(report, target);
	find_closed_files(report, target->files);
}

/* Report what is missing in the core. */
static void find_problems(struct core_report *report, const struct core_target *target)
{
	const struct core *core = target->core;
	const struct core_threads *threads = &report->threads;

	if (target->unpack_problem.text[0])
		problems_add(&report->problems, "%s", target->unpack_problem.text);
	if (core->missing_bytes)
		problems_add(&report->problems, "core truncated: %llu of %llu bytes",
			     (unsigned long long)core->file_bytes,
			     (unsigned long long)core->file_bytes + core->missing_bytes);
	if (core->notes.is_incomplete)
		problems_add(&report->problems, "the notes are truncated: threads may be missing");
	if (threads->nr_without_stack)
		problems_add(
			&report->problems,
			"the C stacks of %zu of %zu threads are missing: the core is truncated, or "
			"was written by gdb before 18, which writes zeros for stacks of glibc "
			"2.42",
			threads->nr_without_stack, threads->nr_samples);
	if (threads->nr_astray)
		problems_add(&report->problems,
			     "the stack pointers of %zu of %zu threads do not point to a stack",
			     threads->nr_astray, threads->nr_samples);
	if (threads->nr_bridged)
		problems_add(&report->problems,
			     "%zu of %zu stacks have missing links between frames",
			     threads->nr_bridged, threads->nr_samples);
	if (threads->nr_with_gaps)
		problems_add(&report->problems,
			     "%zu of %zu stacks have frames that are only partly in the core",
			     threads->nr_with_gaps, threads->nr_samples);
	if (threads->list_err)
		problems_add(&report->problems,
			     "the list of threads is damaged: some may be missing");
	if (report->native.nr_with_gaps)
		problems_add(
			&report->problems,
			"%zu of %zu C stacks have gaps: the files of their modules are unknown "
			"or do not describe a frame, or the limit on frames was "
			"reached",
			report->native.nr_with_gaps, report->native.nr_stacks);
	if (threads->nr_incomplete)
		problems_add(&report->problems, "%zu of %zu stacks could not be read to the bottom",
			     threads->nr_incomplete, threads->nr_samples);
}

static void describe(struct core_report *report, const struct core_target *target)
{
	const struct core *core = target->core;

	core_target_describe(target, &report->post_mortem);
	report->post_mortem.nr_native_threads =
		core->notes.nr_threads - report->threads.nr_python - report->native.nr_added;
	report->post_mortem.problems = &report->problems;
	report->info = (struct run_info){
		.target.command_line = text_string(&target->command_line),
		.target.pid = core->notes.psinfo.pid,
		.python.version = target->version,
	};
	report->post_mortem.modules = report->modules.modules;
	report->post_mortem.nr_modules = report->modules.nr_modules;
	find_problems(report, target);
	find_file_problems(report, target);
	dump_set_post_mortem(report->dump, &report->post_mortem);
}

/*
 * Create the sampler and the sinks between it and the dump. Returns errors of their init
 * functions.
 */
static int begin(struct core_report *report, struct core_target *target,
		 const struct core_report_options *options)
{
	const struct sampler_extras extras = {
		.details = true,
		.is_core = true,
		.value_max_chars = options->value_max_chars,
	};
	struct sample_sink *sink;
	int err;

	*report = (struct core_report){
		.sources = {.sysroot = core_files_sysroot(target->files),
			    /* Without the time, any source may have changed since. */
			    .until_ns = target->written_ns ? target->written_ns : 1,
			    .newer = target->written_ns ? "the core" : NULL},
		.dump = dump_create(),
	};
	if (!report->dump)
		return -ENOMEM;
	err = core_target_sampler(target, &extras, &report->sampler);
	if (err)
		return err;
	sink = dump_sink(report->dump);
	if (options->native != CORE_NATIVE_NONE) {
		err = core_native_init(&report->native, target->core, &report->threads,
				       &target->files->source, report->sampler, sink);
		if (err)
			return err;
		sink = &report->native.sink;
	}
	return core_threads_init(&report->threads, target->core, sink);
}

enum exit_status core_report_make(struct core_target *target,
				  const struct core_report_options *options,
				  struct core_report *ret_report, struct message *reterr)
{
	struct core_report *report = ret_report;
	int err = begin(report, target, options);

	if (!err)
		dump_include_sources(report->dump, &report->sources);
	if (!err && options->value_max_chars)
		dump_include_variables(report->dump);
	if (!err && options->shows_task_tree)
		dump_show_task_tree(report->dump);
	if (!err)
		err = sampler_dump(report->sampler, &report->threads.sink);
	if (!err && options->native == CORE_NATIVE_ALL)
		err = core_native_add_unknown(&report->native);
	if (err)
		return core_target_explain(target, err, reterr);
	report->threads.list_err = sampler_list_error(report->sampler);
	err = tasks_dump(report->sampler, &target->core->maps, &report->threads.sink, report->dump);
	if (err)
		return core_target_explain(target, err, reterr);
	if (options->modules)
		err = core_modules_list(target->files, &report->modules);
	if (err)
		return core_target_explain(target, err, reterr);
	describe(report, target);
	return EXIT_OK;
}

void core_report_done(struct core_report *report)
{
	dump_destroy(report->dump);
	sampler_destroy(report->sampler);
	core_threads_done(&report->threads);
	core_native_done(&report->native);
	core_modules_done(&report->modules);
	problems_done(&report->problems);
	source_lines_done(&report->sources);
}
