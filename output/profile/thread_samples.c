/* SPDX-License-Identifier: MIT */
#include "output/profile/thread_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void thread_samples_done(struct thread_samples *samples)
{
	free(samples->order);
	free(samples->slices);
	*samples = (struct thread_samples){0};
}

uint64_t thread_samples_begin_ns(const struct profile_sample *sample)
{
	return sample->time_ns > sample->wall_ns ? sample->time_ns - sample->wall_ns : 0;
}

const struct profile_process *thread_samples_process(const struct profile *profile, uint32_t thread)
{
	uint32_t nr_threads;
	uint32_t nr_processes;
	const struct profile_thread *threads = profile_threads(profile, &nr_threads);
	const struct profile_process *processes = profile_processes(profile, &nr_processes);

	if (thread == PROFILE_NONE || threads[thread].process == PROFILE_NONE)
		return NULL;
	return &processes[threads[thread].process];
}

uint32_t thread_samples_node(const struct profile *profile, uint32_t node)
{
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(profile, &nr);
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	if (node == PROFILE_NONE || frames[nodes[node].frame].function == PROFILE_NONE)
		return PROFILE_NONE;
	return node;
}

void thread_samples_name(struct text *text, const struct profile *profile, uint32_t thread)
{
	uint32_t nr;
	const struct profile_thread *row = profile_threads(profile, &nr);
	size_t length;

	if (thread == PROFILE_NONE) {
		text_puts(text, LABEL_OTHER_THREADS);
		return;
	}
	row += thread;
	length = strnlen(row->name, sizeof(row->name));
	label_append_escaped(text, row->name, length, LABEL_DISPLAY);
	if (!length)
		text_printf(text, "thread %jd", (intmax_t)row->tid);
	if (row->interpreter_id)
		text_printf(text, " (interpreter %" PRId64 ")", row->interpreter_id);
}

/* While slices are filled there is one per row, and one more for threads without a row. */
static uint32_t bucket_of(const struct profile_sample *sample, uint32_t nr_threads)
{
	return sample->thread < nr_threads ? sample->thread : nr_threads;
}

/* Count each thread's samples in end, and sum their times. */
static void slices_count(struct thread_slice *slices, const struct profile *profile)
{
	uint32_t nr_threads;
	uint32_t nr;
	const struct profile_sample *rows = profile_samples(profile, &nr);

	(void)profile_threads(profile, &nr_threads);
	for (uint32_t i = 0; i <= nr_threads; i++)
		slices[i].thread = i < nr_threads ? i : PROFILE_NONE;
	for (uint32_t i = 0; i < nr; i++) {
		struct thread_slice *slice = &slices[bucket_of(&rows[i], nr_threads)];

		slice->end++;
		slice->cpu_ns += rows[i].cpu_ns;
		if (thread_samples_node(profile, rows[i].node) != PROFILE_NONE)
			slice->with_frames_ns += rows[i].weight_ns;
	}
}

/* Turn the counts in end into positions: first and end are where each slice begins. */
static void slices_place(struct thread_slice *slices, uint32_t nr)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t nr_samples = slices[i].end;

		slices[i].first = place;
		slices[i].end = place;
		place += nr_samples;
	}
}

/* By time, then in order of arrival. */
static int sample_compare(const void *a, const void *b, void *context)
{
	const struct profile_sample *rows = context;
	uint32_t left = *(const uint32_t *)a;
	uint32_t right = *(const uint32_t *)b;

	if (rows[left].time_ns != rows[right].time_ns)
		return rows[left].time_ns < rows[right].time_ns ? -1 : 1;
	return (left > right) - (left < right);
}

/* Sort a slice. It is in order already unless recordings were merged out of order. */
static void slice_sort(struct thread_samples *samples, const struct thread_slice *slice,
		       const struct profile_sample *rows)
{
	uint32_t *order = samples->order;

	for (uint32_t i = slice->first + 1; i < slice->end; i++)
		if (rows[order[i]].time_ns < rows[order[i - 1]].time_ns) {
			qsort_r(order + slice->first, slice->end - slice->first, sizeof(*order),
				sample_compare, (void *)rows);
			return;
		}
}

/* By process, main threads first, then in order of arrival; the slice without a row last. */
static int slice_compare(const void *a, const void *b, void *context)
{
	const struct profile_thread *threads = context;
	const struct thread_slice *left = a;
	const struct thread_slice *right = b;
	const struct profile_thread *one;
	const struct profile_thread *other;

	if (left->thread == PROFILE_NONE || right->thread == PROFILE_NONE)
		return left->thread == PROFILE_NONE ? 1 : -1;
	one = &threads[left->thread];
	other = &threads[right->thread];
	if (one->process != other->process)
		return one->process < other->process ? -1 : 1;
	if (one->is_main != other->is_main)
		return one->is_main ? -1 : 1;
	return left->thread < right->thread ? -1 : 1;
}

static void slices_fill(struct thread_samples *samples, const struct profile *profile)
{
	uint32_t nr_threads;
	uint32_t nr;
	const struct profile_sample *rows = profile_samples(profile, &nr);

	(void)profile_threads(profile, &nr_threads);
	for (uint32_t i = 0; i < nr; i++)
		samples->order[samples->slices[bucket_of(&rows[i], nr_threads)].end++] = i;
	for (uint32_t i = 0; i <= nr_threads; i++)
		slice_sort(samples, &samples->slices[i], rows);
}

/* Drop the threads without samples and sort the others. */
static void slices_arrange(struct thread_samples *samples, const struct profile *profile)
{
	uint32_t nr_threads;
	const struct profile_thread *threads = profile_threads(profile, &nr_threads);

	for (uint32_t i = 0; i <= nr_threads; i++)
		if (samples->slices[i].first < samples->slices[i].end)
			samples->slices[samples->nr_slices++] = samples->slices[i];
	qsort_r(samples->slices, samples->nr_slices, sizeof(*samples->slices), slice_compare,
		(void *)threads);
}

static bool is_busier(const struct thread_slice *slice, const struct thread_slice *than)
{
	if (slice->cpu_ns != than->cpu_ns)
		return slice->cpu_ns > than->cpu_ns;
	return slice->with_frames_ns > than->with_frames_ns;
}

/* Compute what concerns all threads: the busiest one, start and end. */
static void slices_summarise(struct thread_samples *samples, const struct profile *profile)
{
	uint32_t nr;
	const struct profile_sample *rows = profile_samples(profile, &nr);

	for (uint32_t i = 1; i < samples->nr_slices; i++)
		if (is_busier(&samples->slices[i], &samples->slices[samples->busiest]))
			samples->busiest = i;
	samples->start_ns = nr ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t begin_ns = thread_samples_begin_ns(&rows[i]);

		if (begin_ns < samples->start_ns)
			samples->start_ns = begin_ns;
		if (rows[i].time_ns > samples->end_ns)
			samples->end_ns = rows[i].time_ns;
	}
}

int thread_samples_init(struct thread_samples *samples, const struct profile *profile)
{
	uint32_t nr_threads;
	uint32_t nr;

	(void)profile_threads(profile, &nr_threads);
	(void)profile_samples(profile, &nr);
	/*
	 * One more of each: the slice without a row; for samples, because calloc() may return
	 * NULL for 0.
	 */
	*samples = (struct thread_samples){
		.order = calloc((size_t)nr + 1, sizeof(*samples->order)),
		.slices = calloc((size_t)nr_threads + 1, sizeof(*samples->slices)),
	};
	if (!samples->order || !samples->slices) {
		thread_samples_done(samples);
		return -ENOMEM;
	}
	slices_count(samples->slices, profile);
	slices_place(samples->slices, nr_threads + 1);
	slices_fill(samples, profile);
	slices_arrange(samples, profile);
	slices_summarise(samples, profile);
	return 0;
}
