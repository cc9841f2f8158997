/* SPDX-License-Identifier: MIT */
/* The table of processes of a summary, if the profile has roots of processes. */
#include <errno.h>
#include <stdlib.h>

#include "output/profile/label.h"
#include "output/summary/summary_sections.h"
#include "procmem/cleanup.h"

struct row {
	uint32_t frame; /* its root */
	uint64_t total_ns;
};

/* Larger first; equal ones in the order in which they were first seen. */
static int row_compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return (a->frame > b->frame) - (a->frame < b->frame);
}

/* Collect the processes, sorted. rows has room for all frames. */
static int rows_collect(const struct profile *profile, struct row *rows, uint32_t *ret_nr)
{
	cleanup_free struct profile_total *totals = NULL;
	uint32_t nr_frames;
	uint32_t nr = 0;
	const struct profile_frame *frames = profile_frames(profile, &nr_frames);
	int err = profile_totals(profile, PROFILE_SHOWN, &totals);

	if (err)
		return err;
	for (uint32_t i = 0; i < nr_frames; i++)
		if (frames[i].root == ROOT_PROCESS)
			rows[nr++] = (struct row){i, totals[i].total_ns};
	qsort(rows, nr, sizeof(*rows), row_compare);
	*ret_nr = nr;
	return 0;
}

static void rows_print(struct summary_page *page, const struct row *rows, uint32_t nr)
{
	const struct profile *profile = page->artefact->profile;
	const uint64_t whole_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns;
	uint32_t nr_shown = nr;

	if (nr_shown > page->artefact->options.max_rows)
		nr_shown = page->artefact->options.max_rows;
	summary_page_fit_time(page, rows[0].total_ns);
	summary_page_style(page, SUMMARY_BOLD);
	text_printf(&page->out, "%6s  ", "time%");
	summary_page_time_head(page, "time");
	text_puts(&page->out, "process");
	summary_page_plain(page);
	text_puts(&page->out, "\n");
	for (uint32_t i = 0; i < nr_shown; i++) {
		summary_page_share(page, rows[i].total_ns, whole_ns);
		summary_page_time(page, rows[i].total_ns);
		label_append_frame(&page->out, profile, rows[i].frame, LABEL_DISPLAY);
		text_puts(&page->out, "\n");
	}
	summary_more_print(page, nr - nr_shown);
	text_puts(&page->out, "\n");
}

int summary_processes_print(struct summary_page *page)
{
	const struct profile *profile = page->artefact->profile;
	cleanup_free struct row *rows = NULL;
	uint32_t nr;
	int err;

	(void)profile_frames(profile, &nr);
	rows = calloc((size_t)nr + 1, sizeof(*rows));
	err = rows ? rows_collect(profile, rows, &nr) : -ENOMEM;
	if (!err && nr)
		rows_print(page, rows, nr);
	return err ? err : page->out.error;
}
