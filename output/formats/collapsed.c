/* SPDX-License-Identifier: MIT */
#include "output/formats/collapsed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "output/profile/label.h"
#include "output/profile/stack_path.h"
#include "output/run/run_json.h"
#include "output/text/text.h"

#define NS_PER_US 1000u

/* The labels of all frames, made once. */
struct frame_labels {
	struct text text; /* all labels, each terminated */
	size_t *start;	  /* owned; the start of each, and the end of the last */
};

static void frame_labels_done(struct frame_labels *labels)
{
	text_done(&labels->text);
	free(labels->start);
}

static int frame_labels_init(struct frame_labels *labels, const struct profile *profile)
{
	uint32_t nr;

	(void)profile_frames(profile, &nr);
	*labels = (struct frame_labels){.start = calloc((size_t)nr + 1, sizeof(size_t))};
	if (!labels->start)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		label_append_frame(&labels->text, profile, i, LABEL_COLLAPSED);
		text_append(&labels->text, "", 1);
		labels->start[i + 1] = labels->text.length;
	}
	return labels->text.error;
}

/* State of the writer. */
struct writer {
	FILE *out;
	const struct profile *profile;
	bool has_base;
	struct frame_labels labels;
	struct text line;
	struct stack_path path;
};

/* Returns the number of a stack without a base. */
static uint64_t stack_count(const struct profile *profile, struct profile_weight weight)
{
	return profile_mode(profile) == PROFILE_CPU ? (weight.ns + NS_PER_US / 2) / NS_PER_US
						    : weight.samples;
}

/*
 * Returns the number of a stack in a comparison: microseconds, of which both sides have as many in
 * all as the shown one. A stack that has samples is not 0, which would mean that it is new or gone.
 */
static uint64_t compared_count(const struct profile *profile, enum profile_side side,
			       struct profile_weight weight)
{
	const double shown_ns = (double)profile_sums(profile, PROFILE_SHOWN)->time_ns;
	const double whole_ns = (double)profile_sums(profile, side)->time_ns;
	const double part = whole_ns > 0 ? (double)weight.ns / whole_ns : 0;
	const uint64_t count = (uint64_t)(part * shown_ns / NS_PER_US + 0.5);

	return !count && weight.samples ? 1 : count;
}

/* The numbers of a stack by side; the base's is 0 if there is no base. */
struct counts {
	uint64_t of[NR_PROFILE_SIDES];
};

static bool counts_none(const struct counts *counts)
{
	return !counts->of[PROFILE_SHOWN] && !counts->of[PROFILE_BASE];
}

/* Returns the numbers of a stack with a weight on each side. */
static struct counts counts_of(const struct writer *writer, struct profile_weight shown,
			       struct profile_weight base)
{
	const struct profile *profile = writer->profile;

	if (!writer->has_base)
		return (struct counts){{[PROFILE_SHOWN] = stack_count(profile, shown)}};
	return (struct counts){{
		[PROFILE_SHOWN] = compared_count(profile, PROFILE_SHOWN, shown),
		[PROFILE_BASE] = compared_count(profile, PROFILE_BASE, base),
	}};
}

/* Write the stack in the line with its numbers. */
static int line_write(struct writer *writer, const struct counts *counts)
{
	int err;

	if (writer->has_base)
		text_printf(&writer->line, " %" PRIu64, counts->of[PROFILE_BASE]);
	text_printf(&writer->line, " %" PRIu64 "\n", counts->of[PROFILE_SHOWN]);
	err = text_write(&writer->line, writer->out);
	text_clear(&writer->line);
	return err;
}

static int node_write(struct writer *writer, uint32_t node, const struct counts *counts)
{
	const struct frame_labels *labels = &writer->labels;
	const struct stack_path *path = &writer->path;
	struct text *line = &writer->line;
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(writer->profile, &nr);
	int err = stack_path_read(&writer->path, writer->profile, node);

	if (err)
		return err;
	for (size_t i = path->start; i < path->max; i++) {
		uint32_t frame = path->frames[i];
		size_t start = labels->start[frame];

		if (i > path->start)
			text_puts(line, ";");
		text_append(line, labels->text.bytes + start, labels->start[frame + 1] - start - 1);
	}
	if (frames[path->frames[path->max - 1]].function == PROFILE_NONE)
		text_puts(line, ";" LABEL_NO_PYTHON_FRAMES);
	return line_write(writer, counts);
}

/* Write the samples with neither frames nor a thread's root. */
static int idle_write(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	const struct counts counts =
		counts_of(writer, profile_rootless_idle(profile, PROFILE_SHOWN),
			  profile_rootless_idle(profile, PROFILE_BASE));

	if (counts_none(&counts))
		return 0;
	text_puts(&writer->line, LABEL_NO_PYTHON_FRAMES);
	return line_write(writer, &counts);
}

/* Write a line for each run. Readers ignore it: it begins with # and never ends in a number. */
static int runs_write(const char *key, const struct run *runs, uint32_t nr, FILE *out)
{
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++) {
		struct json json;

		if (fprintf(out, "# %s ", key) < 0)
			return -errno;
		json_init(&json, out, 0);
		run_append_json(&json, &runs[i]);
		err = json_finish(&json);
	}
	return err;
}

static int stacks_write(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	uint32_t nr;
	int err;

	(void)profile_nodes(profile, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct counts counts =
			counts_of(writer, profile_weight(profile, PROFILE_SHOWN, i),
				  profile_weight(profile, PROFILE_BASE, i));

		if (counts_none(&counts))
			continue;
		err = node_write(writer, i, &counts);
		if (err)
			return err;
	}
	err = idle_write(writer);
	if (err)
		return err;
	return fflush(writer->out) ? -errno : 0;
}

int collapsed_write(const struct artefact *artefact, FILE *out)
{
	const struct profile *profile = artefact->profile;
	struct writer writer = {
		.out = out,
		.profile = profile,
		.has_base = artefact->has_base,
	};
	int err = frame_labels_init(&writer.labels, profile);

	if (!err && artefact->options.header) {
		err = runs_write("run", artefact->runs, artefact->nr_runs, out);
		if (!err)
			err = runs_write("base", artefact->base_runs, artefact->nr_base_runs, out);
	}
	if (!err)
		err = stacks_write(&writer);
	frame_labels_done(&writer.labels);
	text_done(&writer.line);
	stack_path_done(&writer.path);
	return err;
}
