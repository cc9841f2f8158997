/* SPDX-License-Identifier: MIT */
#include "output/collapsed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/label.h"
#include "output/text.h"

#define NS_PER_US 1000u

/* The label of every frame: made once, used in many lines. */
struct frame_labels {
	struct text text; /* one after the other, each terminated */
	size_t *start;	  /* owned; where each begins, and the end of the last */
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

/* What writing needs besides the profile. */
struct writer {
	FILE *out;
	const struct profile *profile;
	struct frame_labels labels;
	struct text line;
	uint32_t *path; /* owned; frames of a stack, innermost first */
	size_t max_path;
};

/* Room for one frame more in the path. */
static int path_reserve(struct writer *writer, size_t nr)
{
	size_t max = writer->max_path ? writer->max_path * 2 : 64;
	uint32_t *path;

	if (nr < writer->max_path)
		return 0;
	path = reallocarray(writer->path, max, sizeof(*path));
	if (!path)
		return -ENOMEM;
	writer->path = path;
	writer->max_path = max;
	return 0;
}

static int path_read(struct writer *writer, uint32_t node, size_t *ret_nr)
{
	uint32_t nr_nodes;
	const struct profile_node *nodes = profile_nodes(writer->profile, &nr_nodes);
	size_t nr = 0;
	int err;

	for (; node != PROFILE_NONE; node = nodes[node].parent) {
		err = path_reserve(writer, nr);
		if (err)
			return err;
		writer->path[nr++] = nodes[node].frame;
	}
	*ret_nr = nr;
	return 0;
}

static int line_write(struct writer *writer, uint64_t count)
{
	int err;

	text_printf(&writer->line, " %" PRIu64 "\n", count);
	err = text_write(&writer->line, writer->out);
	text_clear(&writer->line);
	return err;
}

/* The number behind a stack. */
static uint64_t stack_count(const struct profile *profile, uint64_t nr_samples, uint64_t ns)
{
	return profile_mode(profile) == PROFILE_CPU ? (ns + NS_PER_US / 2) / NS_PER_US : nr_samples;
}

static int node_write(struct writer *writer, uint32_t node)
{
	const struct frame_labels *labels = &writer->labels;
	struct text *line = &writer->line;
	uint32_t nr;
	const struct profile_node *self = &profile_nodes(writer->profile, &nr)[node];
	const struct profile_frame *frames = profile_frames(writer->profile, &nr);
	size_t depth;
	int err;

	err = path_read(writer, node, &depth);
	if (err)
		return err;
	for (size_t i = depth; i-- > 0;) {
		uint32_t frame = writer->path[i];
		size_t start = labels->start[frame];

		text_append(line, labels->text.bytes + start, labels->start[frame + 1] - start - 1);
		if (i)
			text_puts(line, ";");
	}
	if (frames[self->frame].function == PROFILE_NONE)
		text_puts(line, ";" LABEL_NO_PYTHON_FRAMES);
	return line_write(writer, stack_count(writer->profile, self->self_samples, self->self_ns));
}

/* The number for samples without a Python frame that no thread's root has counted. */
static uint64_t rootless_idle_count(const struct profile *profile)
{
	uint64_t nr_samples = profile_sums(profile, PROFILE_SELF)->nr_idle_samples;
	uint64_t ns = profile_sums(profile, PROFILE_SELF)->idle_ns;
	uint32_t nr_nodes;
	uint32_t nr_frames;
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	const struct profile_frame *frames = profile_frames(profile, &nr_frames);

	for (uint32_t i = 0; i < nr_nodes; i++) {
		if (frames[nodes[i].frame].function != PROFILE_NONE)
			continue;
		nr_samples -= nodes[i].self_samples;
		ns -= nodes[i].self_ns;
	}
	return stack_count(profile, nr_samples, ns);
}

static int stacks_write(struct writer *writer)
{
	uint64_t idle = rootless_idle_count(writer->profile);
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(writer->profile, &nr);
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		if (!stack_count(writer->profile, nodes[i].self_samples, nodes[i].self_ns))
			continue;
		err = node_write(writer, i);
		if (err)
			return err;
	}
	if (idle) {
		text_puts(&writer->line, LABEL_NO_PYTHON_FRAMES);
		err = line_write(writer, idle);
		if (err)
			return err;
	}
	return fflush(writer->out) ? -errno : 0;
}

int collapsed_write(const struct artefact *artefact, FILE *out)
{
	const struct profile *profile = artefact->profile;
	struct writer writer = {.out = out, .profile = profile};
	int err = frame_labels_init(&writer.labels, profile);

	if (!err)
		err = stacks_write(&writer);
	frame_labels_done(&writer.labels);
	text_done(&writer.line);
	free(writer.path);
	return err;
}
