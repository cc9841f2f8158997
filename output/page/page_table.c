/* SPDX-License-Identifier: MIT */
#include "output/page/page_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/profile/tree_walk.h"
#include "output/text/text.h"
#include "output/text/xml.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"

/* A function with its times, summed over its lines. */
struct row {
	const struct profile_function *function;
	uint64_t self_ns, total_ns;
};

static uint32_t function_of(const struct profile *profile, const struct tree_walk *walk,
			    uint32_t node)
{
	uint32_t nr;

	return profile_frames(profile, &nr)[walk->nodes[node].frame].function;
}

/* Sum the times of functions. nr_active counts each function's occurrences on the current path. */
static void sum_functions(const struct profile *profile, const struct tree_walk *walk,
			  uint32_t *nr_active, struct row *rows)
{
	for (struct tree_step step = TREE_STEP_BEGIN; tree_walk_next(walk, &step);) {
		uint32_t function = function_of(profile, walk, step.node);

		if (function == PROFILE_NONE)
			continue;
		if (step.is_exit) {
			nr_active[function]--;
			continue;
		}
		rows[function].self_ns += walk->nodes[step.node].self_ns;
		if (nr_active[function]++ == 0)
			rows[function].total_ns += walk->sums[step.node].ns;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *one = a;
	const struct row *other = b;

	if (one->self_ns != other->self_ns)
		return one->self_ns > other->self_ns ? -1 : 1;
	if (one->total_ns != other->total_ns)
		return one->total_ns > other->total_ns ? -1 : 1;
	return strcmp(one->function->qualname, other->function->qualname);
}

/* Collect all functions, those with the most self time first; the caller frees *ret_rows. */
static int collect_rows(const struct profile *profile, struct row **ret_rows, uint32_t *ret_nr)
{
	const struct profile_function *functions = profile_functions(profile, ret_nr);
	cleanup_free struct row *rows = calloc((size_t)*ret_nr + 1, sizeof(*rows));
	cleanup_free uint32_t *nr_active = calloc((size_t)*ret_nr + 1, sizeof(*nr_active));
	struct tree_walk walk;
	int err;

	if (!rows || !nr_active)
		return -ENOMEM;
	for (uint32_t i = 0; i < *ret_nr; i++)
		rows[i].function = &functions[i];
	err = tree_walk_init(&walk, profile, PROFILE_SHOWN);
	if (!err)
		sum_functions(profile, &walk, nr_active, rows);
	tree_walk_done(&walk);
	if (err)
		return err;
	qsort(rows, *ret_nr, sizeof(*rows), compare_rows);
	*ret_rows = take_ptr(rows);
	return 0;
}

static void put_time(struct text *text, uint64_t ns, uint64_t all_ns)
{
	text_printf(text, "<td>%.3f s<td>%.1f%%", (double)ns / NS_PER_S,
		    all_ns ? 100 * (double)ns / (double)all_ns : 0);
}

static void put_row(struct text *text, const struct row *row, uint64_t all_ns)
{
	struct text label = {0};

	label_append_function(&label, row->function->qualname, row->function->path,
			      row->function->first_line, LABEL_DISPLAY);
	text_puts(text, "<tr>");
	put_time(text, row->self_ns, all_ns);
	put_time(text, row->total_ns, all_ns);
	text_puts(text, "<td>");
	xml_append(text, text_string(&label), label.length);
	text_puts(text, "\n");
	text->error = text->error ? text->error : label.error;
	text_done(&label);
}

int page_table_write(const struct profile *profile, FILE *out)
{
	uint64_t all_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns;
	cleanup_free struct row *rows = NULL;
	struct text text = {0};
	uint32_t nr;
	int err = collect_rows(profile, &rows, &nr);

	if (err)
		return err;
	text_puts(&text, "<table>\n<tr><th>self<th><th>total<th><th>function\n");
	for (uint32_t i = 0; i < nr && i < PAGE_TABLE_ROWS; i++)
		put_row(&text, &rows[i], all_ns);
	text_puts(&text, "</table>\n");
	err = text_write(&text, out);
	text_done(&text);
	return err;
}
