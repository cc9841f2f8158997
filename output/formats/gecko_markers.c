/* SPDX-License-Identifier: MIT */
#include "output/formats/gecko_markers.h"

static const struct {
	const char *name;
	uint32_t flag; /* of the samples */
} kinds[NR_GECKO_MARKERS] = {
	[GECKO_COLLECTS] = {"GC", SAMPLE_GC},
	[GECKO_HAS_GIL] = {"Has GIL", SAMPLE_HOLDS_GIL},
	[GECKO_WAITS_FOR_GIL] = {"Waits for GIL", SAMPLE_WAITS_FOR_GIL},
	[GECKO_IN_JIT] = {"In JIT", SAMPLE_IN_JIT},
	[GECKO_APPROXIMATE] = {"Approximate", SAMPLE_APPROXIMATE},
	[GECKO_WAITS] = {"Idle", SAMPLE_IDLE},
};

const char *gecko_marker_name(enum gecko_marker_kind kind)
{
	return kinds[kind].name;
}

void gecko_markers_init(struct gecko_markers *markers, const struct profile *profile,
			const struct thread_samples *samples, const struct thread_slice *slice)
{
	uint32_t nr;

	*markers = (struct gecko_markers){
		.rows = profile_samples(profile, &nr),
		.order = samples->order,
		.first = slice->first,
		.next = slice->first,
		.end = slice->end,
	};
}

static const struct profile_sample *sample_at(const struct gecko_markers *markers, uint32_t index)
{
	return &markers->rows[markers->order[index]];
}

/* Whether a sample has the flag and directly continues the previous one. */
static bool continues(const struct gecko_markers *markers, uint32_t index, uint32_t flag)
{
	const struct profile_sample *before;

	if (index == markers->first || !(sample_at(markers, index)->flags & flag))
		return false;
	before = sample_at(markers, index - 1);
	return (before->flags & flag) &&
	       thread_samples_begin_ns(sample_at(markers, index)) <= before->time_ns;
}

/* Whether a marker begins at the sample. */
static bool begins(const struct gecko_markers *markers, uint32_t index, uint32_t flag)
{
	return (sample_at(markers, index)->flags & flag) && !continues(markers, index, flag);
}

/* Returns the marker that begins at the sample. */
static struct gecko_marker marker_at(const struct gecko_markers *markers, uint32_t index,
				     enum gecko_marker_kind kind)
{
	uint32_t last = index;

	while (last + 1 < markers->end && continues(markers, last + 1, kinds[kind].flag))
		last++;
	return (struct gecko_marker){
		.kind = kind,
		.begin_ns = thread_samples_begin_ns(sample_at(markers, index)),
		.end_ns = sample_at(markers, last)->time_ns,
	};
}

bool gecko_markers_next(struct gecko_markers *markers, struct gecko_marker *ret_marker)
{
	for (; markers->next < markers->end; markers->next++) {
		for (; markers->kind < NR_GECKO_MARKERS; markers->kind++) {
			enum gecko_marker_kind kind = markers->kind;

			if (begins(markers, markers->next, kinds[kind].flag)) {
				*ret_marker = marker_at(markers, markers->next, kind);
				markers->kind++;
				return true;
			}
		}
		markers->kind = 0;
	}
	return false;
}
