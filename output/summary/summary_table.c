/* SPDX-License-Identifier: MIT */
/* The table of a summary: functions by self time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/summary/summary_names.h"
#include "output/summary/summary_sections.h"
#include "procmem/cleanup.h"

struct row {
	struct summary_name name;
	uint64_t self_ns;
	uint64_t total_ns;
};

struct table {
	struct summary_page *page;
	struct row *rows; /* owned; hottest first */
	uint32_t nr_rows;
	uint32_t nr_shown;
	uint64_t whole_ns;
	struct summary_names names;
};

/* Larger first. */
static int compare_descending(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int row_compare(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;
	int order = compare_descending(a->self_ns, b->self_ns);

	if (!order)
		order = compare_descending(a->total_ns, b->total_ns);
	return order ? order : summary_name_compare(&a->name, &b->name);
}

static int rows_collect(struct table *table)
{
	const struct profile *profile = table->page->artefact->profile;
	uint64_t idle_ns = profile_rootless_idle(profile, PROFILE_SHOWN).ns;
	cleanup_free struct profile_total *totals = NULL;
	const struct profile_frame *frames;
	uint32_t nr;
	int err;

	err = profile_totals(profile, PROFILE_SHOWN, &totals);
	if (err)
		return err;
	frames = profile_frames(profile, &nr);
	table->rows = calloc((size_t)nr + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		if (frames[i].root == ROOT_PROCESS) { /* in the table of processes */
			idle_ns += totals[i].self_ns;
			continue;
		}
		table->rows[table->nr_rows++] = (struct row){
			summary_name_of_frame(profile, i),
			totals[i].self_ns,
			totals[i].total_ns,
		};
	}
	if (idle_ns)
		table->rows[table->nr_rows++] = (struct row){
			{.words = LABEL_NO_PYTHON_FRAMES, .frame = PROFILE_NONE},
			idle_ns,
			idle_ns,
		};
	qsort(table->rows, table->nr_rows, sizeof(*table->rows), row_compare);
	return 0;
}

static void widths_find(struct table *table)
{
	uint64_t longest_ns = 0;

	summary_names_init(&table->names);
	for (uint32_t i = 0; i < table->nr_shown; i++) {
		summary_names_widen(&table->names, table->page, &table->rows[i].name);
		if (table->rows[i].total_ns > longest_ns)
			longest_ns = table->rows[i].total_ns;
	}
	summary_page_fit_time(table->page, longest_ns);
	summary_names_fit(&table->names, table->page,
			  strlen(" self%  total%  ") + 2 * summary_page_time_columns(table->page));
}

static void row_print(const struct table *table, const struct row *row)
{
	struct summary_page *page = table->page;

	summary_page_share(page, row->self_ns, table->whole_ns);
	summary_page_share(page, row->total_ns, table->whole_ns);
	summary_page_time(page, row->self_ns);
	summary_page_time(page, row->total_ns);
	summary_names_print(&table->names, page, &row->name);
}

void summary_more_print(struct summary_page *page, uint64_t nr_more)
{
	if (!nr_more)
		return;
	summary_page_style(page, SUMMARY_DIM);
	text_printf(&page->out, "     …  and %" PRIu64 " more", nr_more);
	summary_page_plain(page);
	text_puts(&page->out, "\n");
}

static void table_print(struct table *table)
{
	struct summary_page *page = table->page;

	summary_page_style(page, SUMMARY_BOLD);
	text_printf(&page->out, "%6s  %6s  ", "self%", "total%");
	summary_page_time_head(page, "self");
	summary_page_time_head(page, "total");
	summary_names_print_head(&table->names, page);
	for (uint32_t i = 0; i < table->nr_shown; i++)
		row_print(table, &table->rows[i]);
	summary_more_print(page, table->nr_rows - table->nr_shown);
}

int summary_table_print(struct summary_page *page)
{
	struct table table = {
		.page = page,
		.whole_ns = profile_sums(page->artefact->profile, PROFILE_SHOWN)->time_ns,
	};
	int err = rows_collect(&table);

	if (!err) {
		table.nr_shown = table.nr_rows;
		if (table.nr_shown > page->artefact->options.max_rows)
			table.nr_shown = page->artefact->options.max_rows;
		widths_find(&table);
		table_print(&table);
	}
	free(table.rows);
	return err;
}
