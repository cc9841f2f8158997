/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the stream of a recording, and as a file, replayed into a profile and written. The
 * sum of the bytes chooses the options, filter and format. Most profiles are smaller than the
 * input needs: they must keep to their limit and still count every sample that passed the filter.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "output/format.h"
#include "output/recording/recorded_threads.h"
#include "output/recording/replay.h"
#include "procmem/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Limit on the samples read from one input: a few bytes can stand for millions. */
enum { MAX_SAMPLES = 1 << 14 };

/* What the input chooses. */
struct choice {
	struct profile_options options;
	struct replay_filter filter;
	const struct format *format; /* one with a writer */
	bool has_base;
};

static struct choice choose(const uint8_t *data, size_t size)
{
	static const char *const threads[] = {"MainThread", "1"}, *const processes[] = {"p*", "7"};
	static const struct replay_filter filters[] = {
		{0},
		{.from_ns = 1000000, .to_ns = -1000},
		{.threads = {threads, 2}},
		{.processes = {processes, 2}, .flags_clear = SAMPLE_IDLE},
	};
	static const uint32_t max_nodes[] = {4, 9, 100, 0};
	struct choice choice = {0};
	size_t nr_formats;
	const struct format *formats = format_list(&nr_formats);
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += data[i];
	choice.format = &formats[sum % nr_formats];
	if (!choice.format->write)
		choice.format = formats;
	sum /= (uint32_t)nr_formats;
	choice.options = (struct profile_options){
		.mode = sum % NR_PROFILE_MODES,
		.by_line = choice.format->by_line || sum & 4,
		.by_thread = sum & 8,
		.keep_samples = choice.format->keep_samples || sum & 16,
		.max_nodes = max_nodes[sum / 32 % 4],
	};
	choice.filter = filters[sum / 128 % 4];
	choice.has_base = choice.format->compares && sum & 512;
	choice.options.by_process = sum & 1024;
	choice.options.merges_names = choice.has_base;
	return choice;
}

/* Check that the profile keeps to its limits and that every sample is in it. */
static void check(const struct profile *profile, const struct choice *choice)
{
	const uint64_t nr_shown = profile_sums(profile, PROFILE_SHOWN)->account.nr_shown;
	uint64_t nr_found = profile_rootless_idle(profile, PROFILE_SHOWN).samples;
	uint32_t nr_nodes, nr_functions, nr_samples;

	(void)profile_nodes(profile, &nr_nodes);
	(void)profile_functions(profile, &nr_functions);
	(void)profile_samples(profile, &nr_samples);
	for (uint32_t i = 0; i < nr_nodes; i++)
		nr_found += profile_weight(profile, PROFILE_SHOWN, i).samples;
	require(nr_found == nr_shown);
	require(nr_samples == (choice->options.keep_samples ? nr_shown : 0));
	if (choice->options.max_nodes)
		require(nr_nodes <= choice->options.max_nodes &&
			nr_functions <= choice->options.max_nodes);
}

static void write_profile(const struct recording *recording, const struct profile *profile,
			  const struct choice *choice)
{
	const struct artefact artefact = {
		.profile = profile,
		.has_base = choice->has_base,
		.runs = recording_run(recording),
		.nr_runs = 1,
		.base_runs = choice->has_base ? recording_run(recording) : NULL,
		.nr_base_runs = choice->has_base,
		.options = {.max_rows = 20, .columns = 80, .no_source = true},
	};
	FILE *out = fopen("/dev/null", "w");

	if (!out)
		return;
	require(choice->format->write(&artefact, out) == 0);
	require(fclose(out) == 0);
}

static void play(struct recording *recording, const struct choice *choice)
{
	struct profile *profile = profile_create(&choice->options);

	if (!profile)
		return;
	require(replay(recording, &choice->filter, profile, PROFILE_SHOWN) == 0);
	if (choice->has_base)
		require(replay(recording, &(struct replay_filter){0}, profile, PROFILE_BASE) == 0);
	check(profile, choice);
	if (profile_sums(profile, PROFILE_SHOWN)->account.nr_shown)
		write_profile(recording, profile, choice);
	profile_destroy(profile);
}

static void read_file(const uint8_t *data, size_t size, const struct choice *choice)
{
	cleanup_close int fd = memfd_create("recording", MFD_CLOEXEC);
	struct recording *recording;
	struct recorded_threads threads;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	if (recording_open(fd, &recording, NULL) != 0)
		return;
	require(recorded_threads_read(recording, &threads) == 0);
	if (threads.nr_samples <= MAX_SAMPLES)
		play(recording, choice);
	recorded_threads_done(&threads);
	recording_close(recording);
}

/* Read the input as the contents of a file's only frame, which bypasses the checksum. */
static void read_stream(const uint8_t *data, size_t size, const struct choice *choice)
{
	const size_t max = ZSTD_compressBound(size);
	cleanup_free uint8_t *frame = malloc(max);
	const size_t bytes = frame ? ZSTD_compress(frame, max, data, size, 1) : 0;

	if (frame && !ZSTD_isError(bytes))
		read_file(frame, bytes, choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct choice choice = choose(data, size);

	read_stream(data, size, &choice);
	read_file(data, size, &choice);
	return 0;
}
