/* SPDX-License-Identifier: MIT */
#include "tests/support/tape_run.h"

#include <errno.h>

#include "output/dump/dump.h"
#include "output/formats/collapsed.h"
#include "output/profile/profile.h"
#include "sampler/cpython/find/build.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/sampler.h"

/*
 * The first ticks learn what to copy. How fast they do is the sampler's own affair, so only the
 * steady state after them is compared.
 */
enum { NR_LEARNING_TICKS = 6, NR_TICKS = 8, TICK_NS = 1000000 };

/* Passes on samples from the first tick after the learning ticks. */
struct late_sink {
	struct sample_sink sink;
	struct sample_sink *inner;
};

static int late_sink_sample(struct sample_sink *sink, const struct sample *sample)
{
	const struct late_sink *late = (const struct late_sink *)sink;
	const uint64_t first_ns = (uint64_t)(NR_LEARNING_TICKS + 1) * TICK_NS;
	struct sample passed = *sample;

	if (sample->time_ns < first_ns)
		return 0;
	/* The inner sink did not get the previous sample, so no frame is unchanged since it. */
	if (sample->time_ns == first_ns)
		passed.nr_unchanged = 0;
	return late->inner->ops->sample(late->inner, &passed);
}

static int write_dump(struct remote_memory *memory, const struct py_build *build,
		      remote_addr runtime_addr, FILE *out)
{
	char version[VERSION_MAX_BYTES];
	const struct run_info info = {.target.command_line = "tape", .python.version = version};
	struct sampler *sampler = NULL;
	struct dump *dump = dump_create();
	int err = dump ? sampler_create(NULL, memory, build, runtime_addr, &sampler) : -ENOMEM;

	version_format(build->version_hex, version);
	if (!err)
		err = sampler_dump(sampler, dump_sink(dump));
	if (!err)
		err = dump_write_text(dump, &info, out);
	dump_destroy(dump);
	sampler_destroy(sampler);
	return err;
}

static int write_ticks(struct remote_memory *memory, const struct py_build *build,
		       remote_addr runtime_addr, FILE *out)
{
	static const struct sample_sink_ops ops = {.sample = late_sink_sample};
	const struct profile_options options = {.by_line = true, .by_thread = true};
	struct profile *profile = profile_create(&options);
	struct late_sink late = {.sink.ops = &ops};
	struct sampler *sampler = NULL;
	int err = profile ? sampler_create(NULL, memory, build, runtime_addr, &sampler) : -ENOMEM;

	if (profile)
		late.inner = profile_sink(profile);
	for (uint64_t i = 1; !err && i <= NR_LEARNING_TICKS + NR_TICKS; i++)
		err = sampler_tick(sampler, &late.sink, i * TICK_NS);
	if (!err)
		err = collapsed_write(&(struct artefact){.profile = profile}, out);
	profile_destroy(profile);
	sampler_destroy(sampler);
	return err;
}

int tape_run(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
	     FILE *out)
{
	struct py_build build;
	int err = build_load(memory, runtime_addr, version_hex, &build, NULL);

	if (!err)
		err = write_dump(memory, &build, runtime_addr, out);
	if (!err && fputs("\n", out) == EOF)
		err = -EIO;
	if (!err)
		err = write_ticks(memory, &build, runtime_addr, out);
	return err;
}
