/* SPDX-License-Identifier: MIT */
#include "output/page/page_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"

#define NS_PER_US 1000u

void page_index_done(struct page_index *index)
{
	free(index->frames);
	free(index->frame_of);
	string_table_done(&index->strings);
	text_done(&index->root_names);
	free(index->functions);
	free(index->ticks_us);
	free(index->stacks);
	free(index->stack_of);
	free(index->samples);
	free(index->first_sample);
}

uint64_t page_index_time_us(const struct page_index *index, const struct profile_sample *sample)
{
	return sample->time_ns / NS_PER_US - index->start_us;
}

/* Number the frames. Those without a node, because the tree was full, are left out. */
static int index_frames(struct page_index *index)
{
	uint32_t nr_frames;
	uint32_t nr_nodes;
	const struct profile_node *nodes = profile_nodes(index->profile, &nr_nodes);

	(void)profile_frames(index->profile, &nr_frames);
	index->frames = calloc((size_t)nr_frames + 1, sizeof(*index->frames));
	index->frame_of = calloc((size_t)nr_frames + 1, sizeof(*index->frame_of));
	if (!index->frames || !index->frame_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_frames; i++)
		index->frame_of[i] = PROFILE_NONE;
	for (uint32_t i = 0; i < nr_nodes; i++) {
		uint32_t frame = nodes[i].frame;

		if (index->frame_of[frame] != PROFILE_NONE)
			continue;
		index->frame_of[frame] = index->nr_frames;
		index->frames[index->nr_frames++] = frame;
	}
	return 0;
}

/* Make the names of all threads' roots first, because adding one may move them. */
static int name_roots(struct page_index *index, uint32_t *ret_nr)
{
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(index->profile, &nr);

	*ret_nr = 0;
	for (uint32_t i = 0; i < index->nr_frames; i++) {
		if (frames[index->frames[i]].function != PROFILE_NONE)
			continue;
		label_append_frame(&index->root_names, index->profile, index->frames[i],
				   LABEL_DISPLAY);
		text_append(&index->root_names, "", 1);
		++*ret_nr;
	}
	return index->root_names.error;
}

/* Append a row with the numbers of its strings. */
static int add_function(struct page_index *index, struct page_function row, const char *name,
			const char *path)
{
	int err = string_table_get(&index->strings, name, &row.name);

	if (!err)
		err = string_table_get(&index->strings, path, &row.path);
	if (!err)
		index->functions[index->nr_functions++] = row;
	return err;
}

static int index_functions(struct page_index *index)
{
	uint32_t nr;
	uint32_t nr_roots;
	const struct profile_function *functions = profile_functions(index->profile, &nr);
	char *name;
	int err = name_roots(index, &nr_roots);

	if (err)
		return err;
	index->functions = calloc((size_t)nr + nr_roots + 1, sizeof(*index->functions));
	if (!index->functions)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < nr; i++) {
		const struct page_function row = {
			.first_line = functions[i].first_line,
			.kind = functions[i].kind,
			.origin = origin_of(&functions[i]),
		};

		err = add_function(index, row, functions[i].qualname, functions[i].path);
	}
	name = index->root_names.bytes;
	for (uint32_t i = 0; !err && i < nr_roots; i++, name += strlen(name) + 1)
		err = add_function(index, (struct page_function){.origin = ORIGIN_OTHER}, name, "");
	return err;
}

static uint32_t stack_key(const struct profile_sample *sample)
{
	return sample->node == PROFILE_NONE ? 0 : sample->node + 1;
}

uint32_t page_index_stack(const struct page_index *index, const struct profile_sample *sample)
{
	return index->stack_of[stack_key(sample)];
}

/* More samples first; stack_of still has their counts. */
static int compare_stacks(const void *a, const void *b, void *context)
{
	const struct page_index *index = context;
	uint32_t one = *(const uint32_t *)a;
	uint32_t other = *(const uint32_t *)b;

	if (index->stack_of[one] != index->stack_of[other])
		return index->stack_of[one] > index->stack_of[other] ? -1 : 1;
	return one < other ? -1 : one > other;
}

/* Number the stacks so that frequent ones have small numbers. */
static int index_stacks(struct page_index *index)
{
	uint32_t nr_nodes;
	uint32_t nr_samples;
	const struct profile_sample *samples = profile_samples(index->profile, &nr_samples);

	(void)profile_nodes(index->profile, &nr_nodes);
	index->stacks = calloc((size_t)nr_nodes + 2, sizeof(*index->stacks));
	index->stack_of = calloc((size_t)nr_nodes + 2, sizeof(*index->stack_of));
	if (!index->stacks || !index->stack_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_samples; i++)
		index->stack_of[stack_key(&samples[i])]++;
	for (uint32_t i = 0; i <= nr_nodes; i++)
		if (index->stack_of[i])
			index->stacks[index->nr_stacks++] = i;
	qsort_r(index->stacks, index->nr_stacks, sizeof(*index->stacks), compare_stacks, index);
	for (uint32_t i = 0; i < index->nr_stacks; i++)
		index->stack_of[index->stacks[i]] = i;
	return 0;
}

/* Returns the group of a sample: its thread's, or the last one. */
static uint32_t group_of(const struct page_index *index, const struct profile_sample *sample)
{
	return sample->thread == PROFILE_NONE ? index->nr_groups - 1 : sample->thread;
}

static int compare_times(const void *a, const void *b, void *context)
{
	const struct page_index *index = context;
	uint32_t one = *(const uint32_t *)a;
	uint32_t other = *(const uint32_t *)b;
	uint32_t nr;
	const struct profile_sample *samples = profile_samples(index->profile, &nr);

	if (samples[one].time_ns != samples[other].time_ns)
		return samples[one].time_ns < samples[other].time_ns ? -1 : 1;
	return one < other ? -1 : one > other;
}

/* Sort a group by time. It is in order already unless recordings were merged out of order. */
static void sort_group(struct page_index *index, uint32_t group)
{
	uint32_t nr;
	const struct profile_sample *samples = profile_samples(index->profile, &nr);
	uint32_t *first = index->samples + index->first_sample[group];
	uint32_t *end = index->samples + index->first_sample[group + 1];

	for (uint32_t *one = first; one + 1 < end; one++)
		if (samples[one[0]].time_ns > samples[one[1]].time_ns) {
			qsort_r(first, (size_t)(end - first), sizeof(*first), compare_times, index);
			return;
		}
}

/* Sort the samples by thread, with a counting sort, and then by time. */
static int index_samples(struct page_index *index)
{
	uint32_t nr;
	const struct profile_sample *samples = profile_samples(index->profile, &nr);
	uint32_t *next;

	(void)profile_threads(index->profile, &index->nr_groups);
	index->nr_groups++;
	index->samples = calloc((size_t)nr + 1, sizeof(*index->samples));
	/* One more: during the sort, the start of each group is one place later. */
	index->first_sample = calloc((size_t)index->nr_groups + 2, sizeof(*index->first_sample));
	if (!index->samples || !index->first_sample)
		return -ENOMEM;
	next = index->first_sample + 1;
	for (uint32_t i = 0; i < nr; i++)
		next[group_of(index, &samples[i]) + 1]++;
	for (uint32_t i = 0; i < index->nr_groups; i++)
		next[i + 1] += next[i];
	for (uint32_t i = 0; i < nr; i++)
		index->samples[next[group_of(index, &samples[i])]++] = i;
	for (uint32_t i = 0; i < index->nr_groups; i++)
		sort_group(index, i);
	return 0;
}

static int compare_us(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a;
	uint64_t other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

/* Remove duplicates, after sorting if needed. */
static void unify_ticks(struct page_index *index, bool in_order)
{
	uint32_t nr = 0;

	if (!in_order)
		qsort(index->ticks_us, index->nr_ticks, sizeof(*index->ticks_us), compare_us);
	for (uint32_t i = 0; i < index->nr_ticks; i++)
		if (!nr || index->ticks_us[nr - 1] != index->ticks_us[i])
			index->ticks_us[nr++] = index->ticks_us[i];
	index->nr_ticks = nr;
}

/*
 * Collect the times of samples that differ from the previous sample's; before ticks_us is
 * allocated, only count them. Returns whether they are in order.
 */
static bool collect_ticks(struct page_index *index, uint64_t *ret_first_us)
{
	uint32_t nr;
	const struct profile_sample *samples = profile_samples(index->profile, &nr);
	uint64_t previous_us = UINT64_MAX;
	bool in_order = true;

	*ret_first_us = UINT64_MAX;
	index->nr_ticks = 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t time_us = samples[i].time_ns / NS_PER_US;

		if (time_us == previous_us)
			continue;
		if (previous_us != UINT64_MAX && time_us < previous_us)
			in_order = false;
		if (time_us < *ret_first_us)
			*ret_first_us = time_us;
		if (index->ticks_us)
			index->ticks_us[index->nr_ticks] = time_us - index->start_us;
		index->nr_ticks++;
		previous_us = time_us;
	}
	return in_order;
}

/* Returns the start of the first run or, if that is unknown or later, the first sample. */
static uint64_t start_of(const struct artefact *artefact, uint64_t first_us)
{
	uint64_t start_us = UINT64_MAX;

	for (uint32_t i = 0; i < artefact->nr_runs; i++) {
		uint64_t run_us = artefact->runs[i].info.start_unix_ns / NS_PER_US;

		if (run_us && run_us < start_us)
			start_us = run_us;
	}
	if (start_us > first_us)
		start_us = first_us;
	return start_us == UINT64_MAX ? 0 : start_us;
}

static int index_ticks(struct page_index *index, const struct artefact *artefact)
{
	uint64_t first_us;
	bool in_order = collect_ticks(index, &first_us);

	index->start_us = start_of(artefact, first_us);
	index->ticks_us = calloc((size_t)index->nr_ticks + 1, sizeof(*index->ticks_us));
	if (!index->ticks_us)
		return -ENOMEM;
	(void)collect_ticks(index, &first_us);
	unify_ticks(index, in_order);
	return 0;
}

uint32_t page_index_tick(const struct page_index *index, uint64_t time_us, uint32_t hint)
{
	uint32_t low = index->ticks_us[hint] <= time_us ? hint : 0;
	uint32_t step = 1;
	uint32_t high;

	/* Double the step until the time is in [low, low + step). */
	while (low + step < index->nr_ticks && index->ticks_us[low + step] <= time_us) {
		low += step;
		step *= 2;
	}
	high = low + step < index->nr_ticks ? low + step : index->nr_ticks;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (index->ticks_us[middle] <= time_us)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int page_index_init(struct page_index *index, const struct artefact *artefact)
{
	int err;

	*index = (struct page_index){.profile = artefact->profile};
	err = index_frames(index);
	if (!err)
		err = index_functions(index);
	if (!err)
		err = index_stacks(index);
	if (!err)
		err = index_ticks(index, artefact);
	if (!err)
		err = index_samples(index);
	if (err)
		page_index_done(index);
	return err;
}
