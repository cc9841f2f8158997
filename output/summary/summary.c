/* SPDX-License-Identifier: MIT */
#include "output/summary/summary.h"

#include <errno.h>
#include <stdbool.h>

#include "output/summary/summary_parts.h"

/* Explain why there is no table: no samples, or none that the mode shows. */
static void nothing_print(struct summary_page *page)
{
	const struct artefact *artefact = page->artefact;
	uint64_t nr_samples = 0;

	for (uint32_t i = 0; i < artefact->nr_runs; i++)
		nr_samples += artefact->runs[i].stats.samples;
	text_puts(&page->out, nr_samples ? "no samples of this mode\n" : "no samples\n");
}

static bool is_empty(const struct artefact *artefact)
{
	return !profile_sums(artefact->profile, PROFILE_SELF)->account.nr_shown &&
	       !(artefact->has_base &&
		 profile_sums(artefact->profile, PROFILE_BASE)->account.nr_shown);
}

/*
 * Print the parts that were requested, one below the other: callers, callees, tree; else the
 * table.
 */
static int body_print(struct summary_page *page)
{
	const struct artefact_options *options = &page->artefact->options;
	bool has_calls = options->callers || options->callees;
	int err = 0;

	if (options->callers)
		err = summary_calls_print(page, SUMMARY_CALLERS, options->callers);
	if (!err && options->callers && options->callees)
		text_puts(&page->out, "\n");
	if (!err && options->callees)
		err = summary_calls_print(page, SUMMARY_CALLEES, options->callees);
	if (!err && has_calls && options->tree)
		text_puts(&page->out, "\n");
	if (!err && options->tree)
		err = summary_tree_print(page);
	if (!err && !has_calls && !options->tree)
		err = page->artefact->has_base ? summary_diff_print(page)
					       : summary_table_print(page);
	return err;
}

static int page_write(const struct summary_page *page, FILE *out)
{
	int err = page->cell.error ? page->cell.error : text_write(&page->out, out);

	if (!err && fflush(out))
		err = -errno;
	return err;
}

int summary_write(const struct artefact *artefact, FILE *out)
{
	struct summary_page page = {.artefact = artefact};
	int err = 0;

	summary_header_print(&page);
	if (is_empty(artefact))
		nothing_print(&page);
	else
		err = body_print(&page);
	if (!err)
		err = page_write(&page, out);
	summary_page_done(&page);
	return err;
}
