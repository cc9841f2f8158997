/* SPDX-License-Identifier: MIT */
/* The table of a comparison: the share of each function now and before. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/summary/summary_names.h"
#include "output/summary/summary_sections.h"
#include "procmem/cleanup.h"

/* Narrower terminals omit the times, or the shares before. */
#define MIN_COLUMNS_WITH_TIMES	130
#define MIN_COLUMNS_WITH_BEFORE 96

/* Changes are integers in these units, so that rounding errors do not affect the order. */
#define CHANGE_UNITS 1000000

struct row {
	struct summary_name name;
	struct profile_total now, before;
	int64_t self_change, total_change; /* in CHANGE_UNITS of a percentage point */
};

struct table {
	struct summary_page *page;
	struct row *rows; /* owned; largest change first */
	uint32_t nr_rows;
	uint32_t nr_shown;
	uint64_t whole_now_ns, whole_before_ns;
	bool has_times, has_before;
	struct summary_names names;
};

/* Larger changes first, whatever their sign. */
static int compare_changes(int64_t a, int64_t b)
{
	int64_t amount_a = a < 0 ? -a : a;
	int64_t amount_b = b < 0 ? -b : b;

	return (amount_a < amount_b) - (amount_a > amount_b);
}

static int row_compare(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;
	int order = compare_changes(a->self_change, b->self_change);

	if (!order)
		order = compare_changes(a->total_change, b->total_change);
	return order ? order : summary_name_compare(&a->name, &b->name);
}

/* Returns the change between two shares. */
static int64_t change_of(const struct table *table, uint64_t now_ns, uint64_t before_ns)
{
	double points = summary_percent(now_ns, table->whole_now_ns) -
			summary_percent(before_ns, table->whole_before_ns);

	return (int64_t)(points * CHANGE_UNITS + (points < 0 ? -0.5 : 0.5));
}

static void row_add(struct table *table, struct summary_name name, struct profile_total now,
		    struct profile_total before)
{
	if (!now.total_ns && !before.total_ns)
		return;
	table->rows[table->nr_rows++] = (struct row){
		.name = name,
		.now = now,
		.before = before,
		.self_change = change_of(table, now.self_ns, before.self_ns),
		.total_change = change_of(table, now.total_ns, before.total_ns),
	};
}

static int rows_collect(struct table *table)
{
	const struct profile *profile = table->page->artefact->profile;
	const struct profile_weight idle_now = profile_rootless_idle(profile, PROFILE_SHOWN);
	const struct profile_weight idle_before = profile_rootless_idle(profile, PROFILE_BASE);
	cleanup_free struct profile_total *now = NULL;
	cleanup_free struct profile_total *before = NULL;
	uint32_t nr;
	int err;

	err = profile_totals(profile, PROFILE_SHOWN, &now);
	if (!err)
		err = profile_totals(profile, PROFILE_BASE, &before);
	if (err)
		return err;
	(void)profile_frames(profile, &nr);
	table->rows = calloc((size_t)nr + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		row_add(table, summary_name_of_frame(profile, i), now[i], before[i]);
	row_add(table,
		(struct summary_name){.words = LABEL_NO_PYTHON_FRAMES, .frame = PROFILE_NONE},
		(struct profile_total){idle_now.ns, idle_now.ns, idle_now.samples},
		(struct profile_total){idle_before.ns, idle_before.ns, idle_before.samples});
	qsort(table->rows, table->nr_rows, sizeof(*table->rows), row_compare);
	return 0;
}

/* Returns the width of the numbers and the mark, with the gaps after them. */
static size_t numbers_width(const struct table *table)
{
	size_t width = 4 * strlen(" self%  ") + strlen("gone  ");

	if (table->has_before)
		width += 2 * strlen("before  ");
	if (table->has_times)
		width += 4 * summary_page_time_columns(table->page);
	return width;
}

static void widths_find(struct table *table)
{
	unsigned columns = summary_page_columns(table->page);
	uint64_t longest_ns = 0;

	table->has_times = !columns || columns >= MIN_COLUMNS_WITH_TIMES;
	table->has_before = !columns || columns >= MIN_COLUMNS_WITH_BEFORE;
	summary_names_init(&table->names);
	for (uint32_t i = 0; i < table->nr_shown; i++) {
		const struct row *row = &table->rows[i];

		summary_names_widen(&table->names, table->page, &row->name);
		if (row->now.total_ns > longest_ns)
			longest_ns = row->now.total_ns;
		if (row->before.total_ns > longest_ns)
			longest_ns = row->before.total_ns;
	}
	summary_page_fit_time(table->page, longest_ns);
	summary_names_fit(&table->names, table->page, numbers_width(table));
}

static void change_print(const struct table *table, uint64_t now_ns, uint64_t before_ns,
			 int64_t change)
{
	double points = (double)change / CHANGE_UNITS;

	summary_page_share(table->page, now_ns, table->whole_now_ns);
	if (table->has_before)
		summary_page_share(table->page, before_ns, table->whole_before_ns);
	/* No "-0.0". */
	text_printf(&table->page->out, "%+6.1f  ", points < 0 && points > -0.05 ? 0.0 : points);
}

static const char *row_mark(const struct row *row)
{
	if (!row->before.total_samples)
		return "new";
	return row->now.total_samples ? "" : "gone";
}

static void row_print(const struct table *table, const struct row *row)
{
	struct summary_page *page = table->page;

	change_print(table, row->now.self_ns, row->before.self_ns, row->self_change);
	change_print(table, row->now.total_ns, row->before.total_ns, row->total_change);
	if (table->has_times) {
		summary_page_time(page, row->now.self_ns);
		summary_page_time(page, row->before.self_ns);
		summary_page_time(page, row->now.total_ns);
		summary_page_time(page, row->before.total_ns);
	}
	text_printf(&page->out, "%-4s  ", row_mark(row));
	summary_names_print(&table->names, page, &row->name);
}

static void head_print(const struct table *table)
{
	struct summary_page *page = table->page;
	const char *before = table->has_before ? "before  " : "";

	summary_page_style(page, SUMMARY_BOLD);
	text_printf(&page->out, "%6s  %s%6s  %6s  %s%6s  ", "self%", before, "diff", "total%",
		    before, "diff");
	if (table->has_times)
		text_printf(&page->out, "%*s  %*s  %*s  %*s  ", page->time_width, "self s",
			    page->time_width, "before", page->time_width, "total s",
			    page->time_width, "before");
	text_pad(&page->out, strlen("gone  "));
	summary_names_print_head(&table->names, page);
}

int summary_diff_print(struct summary_page *page)
{
	const struct profile *profile = page->artefact->profile;
	struct table table = {
		.page = page,
		.whole_now_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns,
		.whole_before_ns = profile_sums(profile, PROFILE_BASE)->time_ns,
	};
	int err = rows_collect(&table);

	if (!err) {
		table.nr_shown = table.nr_rows;
		if (table.nr_shown > page->artefact->options.max_rows)
			table.nr_shown = page->artefact->options.max_rows;
		widths_find(&table);
		head_print(&table);
		for (uint32_t i = 0; i < table.nr_shown; i++)
			row_print(&table, &table.rows[i]);
		summary_more_print(page, table.nr_rows - table.nr_shown);
	}
	free(table.rows);
	return err;
}
