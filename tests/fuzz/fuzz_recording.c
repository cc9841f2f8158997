/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the stream of a recording, which bypasses the checksums of frames, and as a file.
 * Indices must refer to what was passed on before, time must never go back, and a file must be
 * read as it was when it was opened.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "output/recording/recording.h"
#include "output/recording/recording_decoder.h"
#include "procmem/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Limit on the samples read from one input: a few bytes can stand for millions. */
enum { MAX_SAMPLES = 1 << 16 };

struct counts {
	uint32_t nr_processes, nr_threads, nr_functions, nr_nodes, nr_samples;
	uint64_t time_ns;
};

static int on_process(void *context, const struct process_info *process)
{
	struct counts *counts = context;

	require(process->name && process->command_line);
	counts->nr_processes++;
	return 0;
}

static int on_process_end(void *context, uint32_t process, uint64_t end_ns)
{
	const struct counts *counts = context;

	(void)end_ns;
	require(process < counts->nr_processes);
	return 0;
}

static int on_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	struct counts *counts = context;

	require(process == PROFILE_NONE || process < counts->nr_processes);
	require(process == thread->process);
	require(!thread->name[sizeof(thread->name) - 1]);
	counts->nr_threads++;
	return 0;
}

static int on_function(void *context, const struct function *function)
{
	struct counts *counts = context;

	require(function->id == counts->nr_functions && function->kind < NR_FUNCTION_KINDS);
	require(function->qualname && function->path);
	counts->nr_functions++;
	return 0;
}

static int on_node(void *context, uint32_t parent, uint32_t function, int32_t line)
{
	struct counts *counts = context;

	(void)line;
	require(parent == PROFILE_NONE || parent < counts->nr_nodes);
	require(function < counts->nr_functions);
	counts->nr_nodes++;
	return 0;
}

static int on_renamed(void *context, uint32_t thread, const char *name)
{
	const struct counts *counts = context;

	require(thread < counts->nr_threads && name);
	return 0;
}

static int on_sample(void *context, const struct recorded_sample *sample)
{
	struct counts *counts = context;

	require(sample->thread < counts->nr_threads);
	require(sample->node == PROFILE_NONE || sample->node < counts->nr_nodes);
	require(sample->time_ns >= counts->time_ns && sample->time_ns % 1000 == 0);
	counts->time_ns = sample->time_ns;
	return ++counts->nr_samples < MAX_SAMPLES ? 0 : -1;
}

static int on_reset(void *context)
{
	struct counts *counts = context;

	counts->nr_functions = 0;
	counts->nr_nodes = 0;
	return 0;
}

static const struct recording_ops ops = {
	.process = on_process,
	.process_ended = on_process_end,
	.thread = on_thread,
	.function = on_function,
	.node = on_node,
	.renamed = on_renamed,
	.sample = on_sample,
	.reset = on_reset,
};

static void read_stream(const uint8_t *data, size_t size)
{
	struct recording_decoder *decoder = calloc(1, sizeof(*decoder));
	struct counts counts = {0};
	struct stored_run stored = {0};

	if (!decoder)
		return;
	decoder->ops = &ops;
	decoder->context = &counts;
	decoder->run = &stored;
	(void)recording_decoder_decode(decoder, data, size);
	recording_decoder_done(decoder);
	stored_run_done(&stored);
	free(decoder);
}

static void read_file(const uint8_t *data, size_t size)
{
	cleanup_close int fd = memfd_create("recording", MFD_CLOEXEC);
	struct recording *recording;
	struct counts counts = {0};

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	if (recording_open(fd, &recording, NULL) != 0)
		return;
	require(recording_read(recording, &ops, &counts) ==
		(counts.nr_samples < MAX_SAMPLES ? 0 : -1));
	recording_close(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_stream(data, size);
	read_file(data, size);
	return 0;
}
