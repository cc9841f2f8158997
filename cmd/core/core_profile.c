/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/core/core_target.h"
#include "cmd/core/core_threads.h"
#include "cmd/print.h"
#include "cmd/target.h"
#include "output/text/text.h"
#include "procmem/cleanup.h"
#include "sampler/sample_ids.h"

/* A profile in the making: the sink between the threads of a core and the profile. */
struct collector {
	struct sample_sink sink;
	const struct core_profile *cores;
	struct profile *profile;
	struct sample_ids ids;	 /* of the samplers of all cores */
	struct stored_run *runs; /* owned; one for each core that could be read */
	uint32_t nr_runs;
	uint64_t nr_samples;
	uint64_t time_ns; /* when the core that is being read was written */
	uint32_t process; /* of that core, in the profile */
};

static void collector_done(struct collector *collector)
{
	for (uint32_t i = 0; i < collector->nr_runs; i++)
		stored_run_done(&collector->runs[i]);
	free(collector->runs);
	profile_destroy(collector->profile);
	sample_ids_done(&collector->ids);
}

static int collector_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct collector *collector = (struct collector *)sink;
	struct sample_sink *next = profile_sink(collector->profile);
	struct sample_thread thread = *sample->thread;
	struct sample timed = *sample;

	if (collector->cores->crashed_only && !(sample->flags & SAMPLE_CRASHED))
		return 0;
	/* A core has one sample a thread, so each is of another one, as are those without ids. */
	thread.id = (uint32_t)collector->nr_samples++;
	thread.slot = 0;
	thread.process = collector->process;
	timed.thread = &thread;
	timed.time_ns = collector->time_ns;
	/* What it shares with the previous sample is of no use here. */
	timed.nr_unchanged = 0;
	return next->ops->sample(next, &timed);
}

static int collector_init(struct collector *collector, const struct core_profile *cores,
			  const struct profile_options *options)
{
	static const struct sample_sink_ops ops = {.sample = collector_sample};

	*collector = (struct collector){
		.sink.ops = &ops,
		.cores = cores,
		.profile = profile_create(options),
		.runs = calloc(cores->nr_paths + 1, sizeof(*collector->runs)),
	};
	sample_ids_init(&collector->ids);
	return collector->profile && collector->runs ? 0 : -ENOMEM;
}

static void store_pair(void *context, const char *name, const char *value)
{
	struct stored_run *stored = context;

	/* A value is left out if there is no memory for it. */
	(void)stored_run_set(stored, name, value);
}

/* Add the run of a core, which has nr_samples samples in the profile. */
static void add_run(struct collector *collector, const struct core_target *target,
		    uint64_t nr_samples)
{
	const struct core_notes *notes = &target->core->notes;
	struct post_mortem post_mortem;
	struct text death = {0};
	struct run run = {
		.info = {.pysample.version = PYSAMPLE_VERSION,
			 .target = {.command_line = text_string(&target->command_line),
				    .pid = notes->psinfo.pid,
				    .core = target->path},
			 .python = {.version = target->version,
				    .free_threaded = target->runtime.build.free_threaded,
				    .newer_than_tested = target->runtime.build.newer_than_tested,
				    .runtime_found_by = target->runtime.found_by},
			 .start_unix_ns = target->written_ns,
			 .mode = PROFILE_COUNT,
			 .shown_mode = PROFILE_COUNT,
			 .account = {.nr_samples = nr_samples, .nr_shown = nr_samples},
			 .shown_ns = nr_samples},
		.stats = {.ticks = 1, .samples = nr_samples},
	};

	core_target_describe(target, &post_mortem);
	post_mortem_append_death(&death, &post_mortem);
	run.info.target.death = text_string(&death);
	run_for_each_pair(&run, store_pair, &collector->runs[collector->nr_runs++]);
	text_done(&death);
}

/* The sampler of one core, and the sinks between it and the collector. */
struct stages {
	struct core_threads threads;
	struct core_native native;
	struct sampler *sampler;
};

static void stages_done(struct stages *stages)
{
	sampler_destroy(stages->sampler);
	core_threads_done(&stages->threads);
	core_native_done(&stages->native);
}

/*
 * Emit the threads of a core to the collector. Returns errors of sampler_create() and
 * sampler_dump().
 */
static int walk_threads(struct collector *collector, struct core_target *target,
			struct stages *stages)
{
	const enum core_native_threads native = collector->cores->native;
	const struct sampler_extras extras = {.details = native != CORE_NATIVE_NONE,
					      .is_core = true};
	struct sample_sink *sink = &collector->sink;
	int err = core_target_sampler(target, &extras, &stages->sampler);

	if (!err)
		sampler_share_ids(stages->sampler, &collector->ids);
	if (!err && native != CORE_NATIVE_NONE) {
		err = core_native_init(&stages->native, target->core, &stages->threads,
				       &target->files->source, stages->sampler, sink);
		sink = &stages->native.sink;
	}
	if (!err)
		err = core_threads_init(&stages->threads, target->core, sink);
	if (!err)
		err = sampler_dump(stages->sampler, &stages->threads.sink);
	if (!err && native == CORE_NATIVE_ALL)
		err = core_native_add_unknown(&stages->native);
	return err;
}

/* Add the process of a core and its threads. Returns errors of walk_threads(). */
static int walk_core(struct collector *collector, struct core_target *target)
{
	const struct process_info process = {
		.pid = target->core->notes.psinfo.pid,
		.command_line = text_string(&target->command_line),
	};
	struct stages stages = {.sampler = NULL};
	int err;

	collector->time_ns = target->written_ns;
	err = profile_add_process(collector->profile, &process, &collector->process);
	if (!err)
		err = walk_threads(collector, target, &stages);
	stages_done(&stages);
	return err;
}

/* Add one core. Returns EXIT_OK, or another status after printing an error. */
static enum exit_status add_core(struct collector *collector, const char *path)
{
	const uint64_t nr_before = collector->nr_samples;
	struct message message = {0};
	struct core_target target;
	enum exit_status status = core_target_open(
		path, &collector->cores->places, collector->cores->full_command, &target, &message);
	int err;

	if (status == EXIT_OK) {
		target_print_untested(&target.runtime.build, target.version);
		err = walk_core(collector, &target);
		if (err)
			status = core_target_explain(&target, err, &message);
		else
			add_run(collector, &target, collector->nr_samples - nr_before);
	}
	core_target_close(&target);
	if (status != EXIT_OK)
		print_error("%s", message.text);
	return status;
}

/* Add all cores. Returns EXIT_OK, or the status if there is no profile, after printing an error. */
static enum exit_status add_cores(struct collector *collector)
{
	const struct core_profile *cores = collector->cores;
	enum exit_status status = EXIT_ERROR;

	for (size_t i = 0; i < cores->nr_paths; i++)
		status = add_core(collector, cores->paths[i]);
	if (!collector->nr_runs)
		return status;
	if (collector->nr_samples)
		return EXIT_OK;
	print_error(cores->crashed_only
			    ? "no Python thread crashed in these cores: leave out --crashed"
			    : "there are no Python threads in these cores");
	return EXIT_NO_SAMPLE;
}

static enum exit_status write_outputs(struct collector *collector, struct outputs *outputs)
{
	cleanup_free struct run *runs = calloc((size_t)collector->nr_runs + 1, sizeof(*runs));
	const struct artefact artefact = {
		.profile = collector->profile,
		.runs = runs,
		.nr_runs = collector->nr_runs,
		.options = collector->cores->layout,
	};

	if (!runs) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	for (uint32_t i = 0; i < collector->nr_runs; i++)
		runs[i] = collector->runs[i].run;
	return outputs_write(outputs, &artefact, &collector->cores->profile);
}

/* Write the outputs whose profile has the same options as the next one's. */
static enum exit_status write_next(const struct core_profile *cores, struct outputs *outputs)
{
	struct profile_options options =
		output_profile_options(outputs_next(outputs), &cores->profile);
	struct collector collector;
	enum exit_status status = EXIT_ERROR;

	options.keep_threads = true;
	if (collector_init(&collector, cores, &options))
		print_error("out of memory");
	else
		status = add_cores(&collector);
	if (status == EXIT_OK)
		status = write_outputs(&collector, outputs);
	else
		outputs_skip(outputs, &options, &cores->profile);
	collector_done(&collector);
	return status;
}

enum exit_status core_profile_write(const struct core_profile *cores, struct outputs *outputs)
{
	enum exit_status status = EXIT_OK;

	while (outputs_next(outputs)) {
		const enum exit_status written = write_next(cores, outputs);

		if (written != EXIT_OK)
			status = written;
	}
	return status;
}
