/* SPDX-License-Identifier: MIT */
#include "cmd/report/comparison.h"

#include <errno.h>
#include <stdlib.h>

#include "cmd/print.h"
#include "output/profile/label.h"
#include "procmem/cleanup.h"

/* Limit on the functions that are printed; a line says how many more there are. */
enum { MAX_PRINTED = 10 };

/* Percent of all time on each side. */
struct share {
	double base, self;
};

struct grown {
	uint32_t frame;
	struct share own, total;
};

static double growth(struct share share)
{
	return share.self - share.base;
}

static double worst(const struct grown *grown)
{
	const double own = growth(grown->own), total = growth(grown->total);

	return own > total ? own : total;
}

/* Sorts by growth, the largest first; equal ones in the order in which they were first seen. */
static int grown_compare(const void *left, const void *right)
{
	const struct grown *a = left, *b = right;
	const double difference = worst(b) - worst(a);

	if (difference != 0)
		return difference > 0 ? 1 : -1;
	return (a->frame > b->frame) - (a->frame < b->frame);
}

static double percent(const struct profile *profile, enum profile_side side, uint64_t ns)
{
	const uint64_t whole_ns = profile_sums(profile, side)->time_ns;

	return whole_ns ? (double)ns * 100 / (double)whole_ns : 0;
}

/*
 * Collect the frames that grew by more than max_points, unsorted. rows has room for all frames
 * and one more.
 */
static int collect(const struct profile *profile, double max_points, struct grown *rows,
		   uint32_t *ret_nr)
{
	cleanup_free struct profile_total *shown = NULL;
	cleanup_free struct profile_total *base = NULL;
	uint32_t nr_frames;
	uint32_t nr = 0;
	int err = profile_totals(profile, PROFILE_SHOWN, &shown);

	if (!err)
		err = profile_totals(profile, PROFILE_BASE, &base);
	if (err)
		return err;
	(void)profile_frames(profile, &nr_frames);
	for (uint32_t i = 0; i < nr_frames; i++) {
		rows[nr] = (struct grown){
			.frame = i,
			.own = {percent(profile, PROFILE_BASE, base[i].self_ns),
				percent(profile, PROFILE_SHOWN, shown[i].self_ns)},
			.total = {percent(profile, PROFILE_BASE, base[i].total_ns),
				  percent(profile, PROFILE_SHOWN, shown[i].total_ns)},
		};
		nr += worst(&rows[nr]) > max_points;
	}
	*ret_nr = nr;
	return 0;
}

static int print_grown(const struct profile *profile, const struct grown *rows, uint32_t nr)
{
	struct text label = {0};
	int err = 0;

	for (uint32_t i = 0; !err && i < nr && i < MAX_PRINTED; i++) {
		const struct grown *row = &rows[i];

		text_clear(&label);
		label_append_frame(&label, profile, row->frame, LABEL_DISPLAY);
		err = label.error;
		if (!err)
			print_error("grew: %s: own share from %.1f %% to %.1f %%, with "
				    "callees from %.1f %% to %.1f %%",
				    text_string(&label), row->own.base, row->own.self,
				    row->total.base, row->total.self);
	}
	if (nr > MAX_PRINTED)
		print_error("grew: %u more", nr - MAX_PRINTED);
	text_done(&label);
	return err;
}

int comparison_print(const struct rendering *rendering, double max_points, bool *ret_grew)
{
	const struct profile_options options = {
		.mode = rendering->profile.mode,
		.keep_plumbing = rendering->profile.keep_plumbing,
	};
	cleanup_free struct grown *rows = NULL;
	struct profile *profile;
	uint32_t nr;
	int err = rendering_profile(rendering, &options, &profile);

	if (err)
		return err;
	(void)profile_frames(profile, &nr);
	rows = calloc((size_t)nr + 1, sizeof(*rows)); /* + 1: never 0; collect() fills one more */
	err = rows ? collect(profile, max_points, rows, &nr) : -ENOMEM;
	if (!err) {
		qsort(rows, nr, sizeof(*rows), grown_compare);
		err = print_grown(profile, rows, nr);
		*ret_grew = nr > 0;
	}
	profile_destroy(profile);
	return err;
}
