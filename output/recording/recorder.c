/* SPDX-License-Identifier: MIT */
#include "output/recording/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/profile/profile.h"
#include "output/profile/profile_tree.h"
#include "output/recording/process_records.h"
#include "output/recording/record_stream.h"
#include "output/recording/run_records.h"
#include "output/recording/samples_writer.h"
#include "output/recording/tree_records.h"
#include "procmem/array.h"
#include "procmem/clock.h"

/* A torn recording lacks at most one second, including the time of a write. */
#define FLUSH_EVERY_NS 900000000u

/* Samples of one record: some hundred KB if each has another stack. */
enum { SAMPLES_PER_RECORD = 1 << 16 };

/*
 * A tree of this size, 100 MB, is replaced by an empty one. It must have room for any one stack;
 * the deepest has 2^20 frames. The strings of one more second must fit into a reader's limit,
 * too.
 */
#define TREE_MAX_NODES	       (1u << 21)
#define TREE_MAX_STRINGS_BYTES (64u << 20)

enum { US_NS = 1000 };

/* What is kept of the thread in a slot, besides its path. */
struct recorder_thread {
	struct sample_state state;
	uint64_t last_ns;      /* of its last sample's tick */
	uint64_t last_sample;  /* value of nr_samples after it */
	uint32_t wall_rest_ns; /* remainder of the weights received that is not stored yet */
	/* The same; negative if more was stored than received. */
	int64_t cpu_rest_ns;
	bool has_waited; /* it had samples that the mode hides because it waited */
};

/* The last sample's tick. */
struct recorder_tick {
	bool is_begun; /* it has samples in the record that is being made */
	uint64_t time_ns, time_units;
};

/* What has been written so far. */
struct recorder_counts {
	uint64_t nr_samples; /* including those of the record being made */
	uint32_t nr_threads;
};

struct recorder {
	struct sample_sink sink; /* first: the sink is the recorder */
	struct record_stream stream;
	struct stored_run known; /* the run as of its beginning */
	struct run_records run_records;
	struct process_records processes;
	const struct sampler_stats *stats; /* borrowed; or NULL */
	uint64_t epoch_us;
	struct profile_sums sums;

	struct profile_tree tree;
	struct tree_records tree_records;
	struct thread_paths paths;
	struct recorder_thread *threads; /* owned; by slot */
	uint32_t max_threads;

	struct samples_writer samples;
	struct recorder_tick tick;
	struct recorder_counts counts;
	uint64_t flushed_ns;
};

/*
 * Returns CLOCK_REALTIME at CLOCK_MONOTONIC's 0, as of the start of the run if known, else as of
 * now.
 */
static uint64_t find_epoch_us(const struct run *run)
{
	uint64_t unix_ns = run->info.start_unix_ns;
	uint64_t monotonic_ns = run->stats.start_ns;

	if (!unix_ns || !monotonic_ns || unix_ns < monotonic_ns) {
		unix_ns = clock_ns(CLOCK_REALTIME);
		monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	}
	return unix_ns > monotonic_ns ? (unix_ns - monotonic_ns) / US_NS : 0;
}

static void store_pair(void *context, const char *name, const char *value)
{
	struct recorder *recorder = context;

	if (stored_run_set(&recorder->known, name, value) != 0)
		recorder->stream.error = -ENOMEM;
}

/* Write what is new of a run, with the totals of the recorder. */
static int write_run(struct recorder *recorder, const struct run *known, bool is_final)
{
	struct run run = *known;

	run.info.account = recorder->sums.account;
	run.info.shown_ns = recorder->sums.time_ns;
	if (!run.info.start_unix_ns && run.stats.start_ns)
		run.info.start_unix_ns = recorder->epoch_us * US_NS + run.stats.start_ns;
	return run_records_write(&recorder->run_records, &run, is_final, &recorder->stream);
}

/* Write the current state of the run. */
static int write_counters(struct recorder *recorder, uint64_t now_ns)
{
	struct run run = recorder->known.run;

	if (recorder->stats) {
		run.stats = *recorder->stats;
		run.stats.p50_lateness_ns = histogram_quantile(&run.stats.lateness, 500);
		run.stats.p99_lateness_ns = histogram_quantile(&run.stats.lateness, 990);
	}
	if (run.stats.start_ns && !run.stats.end_ns)
		run.stats.end_ns = now_ns;
	return write_run(recorder, &run, false);
}

/* Write the samples since the last SAMPLES record, after the nodes they refer to. */
static int flush_samples(struct recorder *recorder)
{
	int err = tree_records_write(&recorder->tree_records, &recorder->tree, &recorder->stream);

	recorder->tick.is_begun = false;
	return err ? err : samples_writer_flush(&recorder->samples, &recorder->stream);
}

static void tree_init(struct profile_tree *tree)
{
	*tree = (struct profile_tree){
		.by_line = true,
		.keep_plumbing = true,
		.max_nodes = TREE_MAX_NODES,
	};
}

/* Start over with an empty tree, and no thread in it. */
static int reset(struct recorder *recorder)
{
	int err = flush_samples(recorder);

	if (err)
		return err;
	profile_tree_done(&recorder->tree);
	tree_init(&recorder->tree);
	tree_records_reset(&recorder->tree_records);
	for (uint32_t i = 0; i < recorder->paths.nr; i++)
		thread_path_cut(&recorder->paths.paths[i], 0);
	for (uint32_t i = 0; i < recorder->max_threads; i++)
		recorder->threads[i].state.node = 0;
	(void)record_stream_begin(&recorder->stream);
	return record_stream_end(&recorder->stream, RECORD_RESET, NULL, 0);
}

int recorder_flush(struct recorder *recorder, const struct run *run, uint64_t now_ns)
{
	int err = flush_samples(recorder);

	recorder->flushed_ns = now_ns;
	if (!err && recorder->tree_records.strings_bytes > TREE_MAX_STRINGS_BYTES)
		err = reset(recorder);
	if (!err)
		err = run ? write_run(recorder, run, false) : write_counters(recorder, now_ns);
	return err ? err : record_stream_flush(&recorder->stream);
}

/* Flush if the last flush is FLUSH_EVERY_NS ago. */
static int flush_periodically(struct recorder *recorder, uint64_t now_ns)
{
	if (!recorder->flushed_ns)
		recorder->flushed_ns = now_ns;
	if (now_ns < recorder->flushed_ns || now_ns - recorder->flushed_ns < FLUSH_EVERY_NS)
		return recorder->stream.error;
	return recorder_flush(recorder, NULL, now_ns);
}

/* Write that a thread occupies a slot. */
static int write_thread(struct recorder *recorder, const struct sample_thread *thread)
{
	struct byte_buffer *payload;
	uint32_t process;
	int err;

	if (recorder->counts.nr_threads == RECORDING_MAX_THREADS)
		return -E2BIG;
	err = process_records_write(&recorder->processes, thread->process, &recorder->stream,
				    &process);
	if (err)
		return err;
	recorder->counts.nr_threads++;
	payload = record_stream_begin(&recorder->stream);
	byte_buffer_uint(payload, thread->slot);
	byte_buffer_uint(payload, process == PROFILE_NONE ? 0 : (uint64_t)process + 1);
	byte_buffer_int(payload, thread->tid);
	byte_buffer_int(payload, thread->interpreter_id);
	byte_buffer_uint(payload, thread->is_main ? RECORD_MAIN_THREAD : 0);
	byte_buffer_string(payload, thread->name, THREAD_NAME_MAX_BYTES - 1);
	return record_stream_end(&recorder->stream, RECORD_THREAD, NULL, 0);
}

/* Returns what is kept of the thread in a slot; NULL if out of memory. */
static struct recorder_thread *thread_get(struct recorder *recorder, uint32_t slot)
{
	const uint32_t nr = recorder->max_threads;
	struct recorder_thread *threads = array_reserve(recorder->threads, slot + 1,
							&recorder->max_threads, sizeof(*threads));

	if (!threads)
		return NULL;
	memset(threads + nr, 0, (recorder->max_threads - nr) * sizeof(*threads));
	recorder->threads = threads;
	return &threads[slot];
}

/*
 * Add a thread at its first sample. Samples not yet written of the earlier thread in its slot are
 * written first.
 */
static int thread_begin(struct recorder *recorder, const struct sample_thread *thread,
			struct thread_path **ret_path)
{
	struct recorder_thread *kept;
	struct thread_path *path;
	int err;

	if (thread->slot >= RECORDING_MAX_SLOTS)
		return -ENOMEM;
	err = thread_paths_begin(&recorder->paths, thread, &path);
	if (err)
		return err;
	kept = thread_get(recorder, thread->slot);
	if (!kept)
		return -ENOMEM;
	if (kept->last_sample > recorder->counts.nr_samples - recorder->samples.nr_samples)
		err = flush_samples(recorder);
	if (!err)
		err = write_thread(recorder, thread);
	if (err)
		return err;
	*kept = (struct recorder_thread){0};
	path->is_used = true;
	*ret_path = path;
	return 0;
}

/* Find the node of a sample; *ret_node is it + 1, or 0 for none. */
static int find_node(struct recorder *recorder, const struct sample *sample, uint64_t *ret_node)
{
	struct thread_path *path = thread_paths_find(&recorder->paths, sample->thread);
	int err = path ? 0 : thread_begin(recorder, sample->thread, &path);
	uint32_t leaf;

	if (err)
		return err;
	err = thread_path_follow(path, &recorder->tree, sample);
	if (err == -E2BIG) {
		err = reset(recorder);
		if (!err)
			err = thread_path_follow(path, &recorder->tree, sample);
	}
	if (err)
		return err;
	leaf = thread_path_leaf(path);
	*ret_node = leaf == PROFILE_NONE ? 0 : (uint64_t)leaf + 1;
	return 0;
}

/* Returns the whole microseconds of a time and an earlier remainder. */
static uint64_t round_us(uint64_t time_ns, uint32_t *rest_ns)
{
	uint64_t sum_ns = time_ns + *rest_ns;

	*rest_ns = (uint32_t)(sum_ns % US_NS);
	return sum_ns / US_NS;
}

/*
 * Returns a CPU time and an earlier remainder, rounded to units, or the wall time if they differ
 * by less than two units. The thread then ran all the time, as far as two clocks read one after
 * the other can show, and storing that takes almost no room. The remainder keeps the sums right
 * either way.
 */
static uint64_t round_cpu_us(uint64_t cpu_ns, uint64_t wall_us, uint64_t unit_ns, int64_t *rest_ns)
{
	const int64_t unit = (int64_t)unit_ns;
	const int64_t due_ns = (int64_t)cpu_ns + *rest_ns;
	int64_t stored_ns = (int64_t)(wall_us * US_NS);

	if (due_ns - stored_ns >= 2 * unit || stored_ns - due_ns >= 2 * unit)
		stored_ns = due_ns < 0 ? 0 : due_ns - due_ns % unit;
	*rest_ns = due_ns - stored_ns;
	return (uint64_t)stored_ns / US_NS;
}

/*
 * Set the flags and weights of a sample. Weights are stored only if they do not follow from the
 * ticks' times.
 */
static void set_weights(const struct recorder *recorder, struct recorder_thread *thread,
			const struct sample *sample, struct stored_sample *stored)
{
	const struct sample_state *state = &thread->state;
	const uint64_t unit_ns = recorder->samples.times.unit_ns;
	const uint64_t since_ns = state->has_time ? recorder->tick.time_ns - thread->last_ns : 0;
	const uint32_t ran = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;

	stored->flags = sample->flags & RECORD_SAMPLE_FLAGS;
	if (sample->wall_ns != since_ns || (sample->cpu_ns && (sample->flags & ran) != ran))
		stored->flags |= RECORD_WEIGHED;
	if (stored->flags & RECORD_WEIGHED)
		stored->wall_us = round_us(sample->wall_ns, &thread->wall_rest_ns);
	else if (state->has_time)
		stored->wall_us = (recorder->tick.time_units - state->units) * (unit_ns / US_NS);
	if (sample->cpu_ns)
		stored->cpu_us = round_cpu_us(sample->cpu_ns, stored->wall_us, unit_ns,
					      &thread->cpu_rest_ns);
}

/* Count a sample as a profile of the recording would. */
static void count_sample(struct recorder *recorder, struct recorder_thread *thread,
			 const struct stored_sample *stored)
{
	const enum profile_mode mode = recorder->known.run.info.mode;
	struct profile_sample sample = {
		.flags = stored->flags & ~RECORD_WEIGHED,
		.wall_ns = stored->wall_us * US_NS,
		.cpu_ns = stored->cpu_us * US_NS,
	};
	const bool is_shown = profile_mode_shows(mode, sample.flags, sample.wall_ns, sample.cpu_ns,
						 &sample.weight_ns);

	profile_sums_add(&recorder->sums, mode, &sample, is_shown, stored->node != 0);
	if (!is_shown && mode == PROFILE_BUSY && !thread->has_waited) {
		thread->has_waited = true;
		recorder->sums.account.nr_idle_threads++;
	}
}

/* Add a sample to the SAMPLES record that is being made. */
static void store_sample(struct recorder *recorder, const struct sample *sample, uint64_t node)
{
	struct recorder_thread *thread = &recorder->threads[sample->thread->slot];
	struct stored_sample stored = {.slot = sample->thread->slot, .node = node};

	set_weights(recorder, thread, sample, &stored);
	if (!recorder->tick.is_begun)
		samples_writer_tick(&recorder->samples, recorder->tick.time_units);
	recorder->tick.is_begun = true;
	samples_writer_add(&recorder->samples, &thread->state, &stored);
	thread->state.has_time = true;
	thread->state.units = recorder->tick.time_units;
	thread->last_ns = recorder->tick.time_ns;
	thread->last_sample = ++recorder->counts.nr_samples;
	count_sample(recorder, thread, &stored);
}

/* Begin a tick if the sample is later than the last one. Time never goes back. */
static int begin_tick(struct recorder *recorder, uint64_t time_ns)
{
	if (time_ns <= recorder->tick.time_ns && recorder->counts.nr_samples)
		return recorder->stream.error;
	recorder->tick.time_ns = time_ns;
	recorder->tick.time_units = time_ns / recorder->samples.times.unit_ns;
	recorder->tick.is_begun = false;
	if (recorder->samples.nr_samples >= SAMPLES_PER_RECORD && flush_samples(recorder) != 0)
		return recorder->stream.error;
	return flush_periodically(recorder, time_ns);
}

static int recorder_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct recorder *recorder = (struct recorder *)sink;
	uint64_t node;
	int err = begin_tick(recorder, sample->time_ns);

	if (!err && recorder->samples.nr_samples >= 2 * SAMPLES_PER_RECORD)
		err = flush_samples(recorder);
	if (!err)
		err = find_node(recorder, sample, &node);
	if (!err)
		store_sample(recorder, sample, node);
	return err;
}

static void recorder_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct recorder *recorder = (struct recorder *)sink;
	struct byte_buffer *payload;

	if (!thread_paths_find(&recorder->paths, thread))
		return;
	payload = record_stream_begin(&recorder->stream);
	byte_buffer_uint(payload, thread->slot);
	byte_buffer_string(payload, thread->name, THREAD_NAME_MAX_BYTES - 1);
	(void)record_stream_end(&recorder->stream, RECORD_RENAME, NULL,
				0); /* the next call returns the error */
}

static int recorder_tick(struct sample_sink *sink, uint64_t now_ns)
{
	return flush_periodically((struct recorder *)sink, now_ns);
}

int recorder_create(int fd, const struct run *run, struct recorder **ret_recorder)
{
	static const struct sample_sink_ops ops = {
		.sample = recorder_sample,
		.renamed = recorder_renamed,
		.tick = recorder_tick,
	};
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct tick_times *times;
	int err;

	if (!recorder)
		return -ENOMEM;
	recorder->sink.ops = &ops;
	recorder->epoch_us = find_epoch_us(run);
	tree_init(&recorder->tree);
	times = &recorder->samples.times;
	if (run->info.requested_hz > 0)
		times->interval_ns = (uint64_t)(NS_PER_S / run->info.requested_hz);
	times->unit_ns = (uint64_t)US_NS << tick_times_shift(times->interval_ns);
	err = record_stream_init(&recorder->stream, fd, recorder->epoch_us);
	if (!err) {
		run_for_each_pair(run, store_pair, recorder);
		err = write_run(recorder, &recorder->known.run, false);
	}
	if (!err) /* so that the file can be read at once */
		err = record_stream_flush(&recorder->stream);
	if (err)
		recorder_destroy(recorder);
	else
		*ret_recorder = recorder;
	return err;
}

void recorder_destroy(struct recorder *recorder)
{
	if (!recorder)
		return;
	thread_paths_done(&recorder->paths);
	free(recorder->threads);
	samples_writer_done(&recorder->samples);
	tree_records_done(&recorder->tree_records);
	profile_tree_done(&recorder->tree);
	run_records_done(&recorder->run_records);
	process_records_done(&recorder->processes);
	stored_run_done(&recorder->known);
	record_stream_done(&recorder->stream);
	free(recorder);
}

struct sample_sink *recorder_sink(struct recorder *recorder)
{
	return &recorder->sink;
}

int recorder_add_process(struct recorder *recorder, const struct process_info *info,
			 uint32_t *ret_process)
{
	return process_records_add(&recorder->processes, info, ret_process);
}

int recorder_end_process(struct recorder *recorder, uint32_t process, uint64_t end_ns)
{
	return process_records_end(&recorder->processes, process, end_ns, &recorder->stream);
}

void recorder_set_stats(struct recorder *recorder, const struct sampler_stats *stats)
{
	recorder->stats = stats;
}

uint64_t recorder_bytes(const struct recorder *recorder)
{
	return recorder->stream.file.bytes;
}

const struct profile_sums *recorder_sums(const struct recorder *recorder)
{
	return &recorder->sums;
}

int recorder_finish(struct recorder *recorder, const struct run *run)
{
	int err = flush_samples(recorder);

	if (!err)
		err = write_run(recorder, run, true);
	if (err)
		return err;
	byte_buffer_uint(record_stream_begin(&recorder->stream), recorder->counts.nr_samples);
	err = record_stream_end(&recorder->stream, RECORD_END, NULL, 0);
	return err ? err : record_stream_finish(&recorder->stream);
}

int recorder_copy(struct recorder *recorder, const struct run *run, uint64_t now_ns, int from_fd,
		  int to_fd)
{
	struct record_stream *stream = &recorder->stream;
	int err = recorder_flush(recorder, run, now_ns);

	if (!err)
		err = zstd_file_fork(&stream->file, from_fd, to_fd);
	if (err)
		return err;
	byte_buffer_uint(record_stream_begin(stream), recorder->counts.nr_samples);
	(void)record_stream_end(stream, RECORD_END, NULL, 0);
	err = record_stream_finish(stream);
	zstd_file_join(&stream->file);
	stream->error = 0; /* that of the copy */
	return err;
}
