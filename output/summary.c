/* SPDX-License-Identifier: MIT */
#include "output/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/label.h"
#include "output/loss.h"
#include "output/stats.h"
#include "output/text.h"
#include "output/utf8.h"
#include "procmem/cleanup.h"

#define MIN_COLUMNS    60
#define MIN_TIME_WIDTH 7 /* "total s" */
#define BOLD	       "\033[1m"
#define DIM	       "\033[2m"
#define PLAIN	       "\033[0m"

struct row {
	uint32_t frame; /* PROFILE_NONE: samples without a Python frame */
	uint64_t self_ns;
	uint64_t total_ns;
};

struct table {
	const struct profile *profile;
	const struct artefact_options *options;
	struct text out;
	struct text cell; /* being made */
	struct row *rows; /* owned; hottest first */
	uint32_t nr_rows;
	uint32_t nr_shown;
	int time_width;
	int time_decimals;
	size_t name_width;
	size_t place_width;
};

/* The length of the character at the start of a string that is not empty. */
static size_t char_length(const char *string, size_t *ret_width)
{
	uint32_t code_point = '?';
	size_t length = utf8_decode(string, strnlen(string, 4), &code_point);

	*ret_width = utf8_width(code_point);
	return length ? length : 1;
}

static size_t display_width(const char *string)
{
	size_t total = 0;
	size_t width;

	for (; *string; total += width)
		string += char_length(string, &width);
	return total;
}

/* Append a string, or if it is wider than max_width its beginning and "…". */
static void append_head(struct text *out, const char *string, size_t max_width)
{
	size_t end = 0;
	size_t used = 0;

	if (display_width(string) <= max_width) {
		text_puts(out, string);
		return;
	}
	for (;;) {
		size_t width;
		size_t length = char_length(string + end, &width);

		if (used + width > max_width - 1)
			break;
		used += width;
		end += length;
	}
	text_append(out, string, end);
	text_puts(out, "…");
}

/* Append a string, or if it is wider than max_width "…" and its end; returns the width used. */
static size_t append_tail(struct text *out, const char *string, size_t max_width)
{
	size_t left = display_width(string);
	size_t width;

	if (left <= max_width) {
		text_puts(out, string);
		return left;
	}
	for (; left > max_width - 1; left -= width)
		string += char_length(string, &width);
	text_puts(out, "…");
	text_puts(out, string);
	return left + 1;
}

static unsigned table_columns(const struct table *table)
{
	unsigned columns = table->options->columns;

	return columns && columns < MIN_COLUMNS ? MIN_COLUMNS : columns;
}

static void style_begin(struct table *table, const char *style)
{
	if (table->options->colour)
		text_puts(&table->out, style);
}

static void style_end(struct table *table)
{
	style_begin(table, PLAIN);
}

/* The function of a row; NULL if it has none. */
static const struct profile_function *row_function(const struct profile *profile,
						   const struct row *row)
{
	uint32_t nr;
	uint32_t function;

	if (row->frame == PROFILE_NONE)
		return NULL;
	function = profile_frames(profile, &nr)[row->frame].function;
	return function == PROFILE_NONE ? NULL : &profile_functions(profile, &nr)[function];
}

static const char *row_name(struct table *table, const struct row *row)
{
	const struct profile_function *function = row_function(table->profile, row);

	text_clear(&table->cell);
	if (function)
		label_append_function(&table->cell, function->qualname, "", 0, LABEL_DISPLAY);
	else if (row->frame == PROFILE_NONE)
		text_puts(&table->cell, LABEL_NO_PYTHON_FRAMES);
	else
		label_append_frame(&table->cell, table->profile, row->frame, LABEL_DISPLAY);
	return text_string(&table->cell);
}

static const char *row_place(struct table *table, const struct row *row)
{
	const struct profile_function *function = row_function(table->profile, row);
	uint32_t nr;

	text_clear(&table->cell);
	if (function)
		label_append_location(&table->cell, function->path,
				      profile_frames(table->profile, &nr)[row->frame].line,
				      LABEL_DISPLAY);
	return text_string(&table->cell);
}

/* The larger first, as qsort wants it. */
static int compare_descending(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

/* For rows of the same times: by name and path, so that the order does not depend on chance. */
static int row_compare_names(const struct profile *profile, const struct row *a,
			     const struct row *b)
{
	const struct profile_function *function_a = row_function(profile, a);
	const struct profile_function *function_b = row_function(profile, b);
	int order = 0;

	if (function_a && function_b) {
		order = strcmp(function_a->qualname, function_b->qualname);
		if (!order)
			order = strcmp(function_a->path, function_b->path);
	}
	return order ? order : compare_descending(b->frame, a->frame);
}

static int row_compare(const void *left, const void *right, void *profile)
{
	const struct row *a = left;
	const struct row *b = right;
	int order = compare_descending(a->self_ns, b->self_ns);

	if (!order)
		order = compare_descending(a->total_ns, b->total_ns);
	return order ? order : row_compare_names(profile, a, b);
}

/* Time without a Python frame that no thread's root has as its own. */
static uint64_t rootless_idle_ns(const struct table *table)
{
	uint64_t idle_ns = profile_sums(table->profile, PROFILE_SELF)->idle_ns;

	for (uint32_t i = 0; i < table->nr_rows; i++) {
		if (!row_function(table->profile, &table->rows[i]))
			idle_ns -= table->rows[i].self_ns;
	}
	return idle_ns;
}

static int rows_collect(struct table *table)
{
	cleanup_free struct profile_total *totals = NULL;
	uint64_t idle_ns;
	uint32_t nr;
	int err;

	err = profile_totals(table->profile, PROFILE_SELF, &totals);
	if (err)
		return err;
	(void)profile_frames(table->profile, &nr);
	table->rows = calloc((size_t)nr + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		table->rows[i] = (struct row){i, totals[i].self_ns, totals[i].total_ns};
		table->nr_rows++;
	}
	idle_ns = rootless_idle_ns(table);
	if (idle_ns)
		table->rows[table->nr_rows++] = (struct row){PROFILE_NONE, idle_ns, idle_ns};
	qsort_r(table->rows, table->nr_rows, sizeof(*table->rows), row_compare,
		(void *)table->profile);
	table->nr_shown = table->nr_rows;
	if (table->nr_shown > table->options->max_rows)
		table->nr_shown = table->options->max_rows;
	return 0;
}

/* The columns that the numbers take, with the gap behind them. */
static size_t numbers_width(const struct table *table)
{
	return strlen(" self%  total%  ") + 2 * ((size_t)table->time_width + 2);
}

/* Give the names what they need if the places fit too, else at most half of what there is. */
static void widths_share(struct table *table)
{
	size_t left = table_columns(table);
	size_t names;

	if (!left)
		return;
	left -= numbers_width(table) + 2;
	if (table->name_width + table->place_width > left) {
		names = left > table->place_width ? left - table->place_width : 0;
		if (names < left / 2)
			names = left / 2;
		if (table->name_width > names)
			table->name_width = names;
		table->place_width = left - table->name_width;
	}
}

static void widths_find(struct table *table)
{
	uint64_t longest_ns = 0;

	table->name_width = strlen("function");
	table->place_width = strlen("where");
	for (uint32_t i = 0; i < table->nr_shown; i++) {
		size_t name = display_width(row_name(table, &table->rows[i]));
		size_t place = display_width(row_place(table, &table->rows[i]));

		if (name > table->name_width)
			table->name_width = name;
		if (place > table->place_width)
			table->place_width = place;
		if (table->rows[i].total_ns > longest_ns)
			longest_ns = table->rows[i].total_ns;
	}
	/* Milliseconds tell nothing in a run of hours. */
	table->time_decimals = longest_ns < 1000ull * NS_PER_S ? 3 : 1;
	table->time_width =
		snprintf(NULL, 0, "%.*f", table->time_decimals, (double)longest_ns / NS_PER_S);
	if (table->time_width < MIN_TIME_WIDTH)
		table->time_width = MIN_TIME_WIDTH;
	widths_share(table);
}

static void row_print(struct table *table, const struct row *row)
{
	double whole_ns = (double)profile_sums(table->profile, PROFILE_SELF)->time_ns;
	double percent_per_ns = whole_ns > 0 ? 100 / whole_ns : 0;
	struct text *out = &table->out;
	size_t name_width = table->name_width;
	size_t used;

	text_printf(out, "%6.1f  %6.1f  %*.*f  %*.*f  ", (double)row->self_ns * percent_per_ns,
		    (double)row->total_ns * percent_per_ns, table->time_width, table->time_decimals,
		    (double)row->self_ns / NS_PER_S, table->time_width, table->time_decimals,
		    (double)row->total_ns / NS_PER_S);
	if (!row_function(table->profile, row))
		name_width += 2 + table->place_width; /* it has no place */
	used = append_tail(out, row_name(table, row), name_width);
	if (*row_place(table, row)) {
		text_pad(out, name_width - used + 2);
		style_begin(table, DIM);
		(void)append_tail(out, row_place(table, row), table->place_width);
		style_end(table);
	}
	text_puts(out, "\n");
}

static void table_print(struct table *table)
{
	uint32_t nr_more = table->nr_rows - table->nr_shown;

	style_begin(table, BOLD);
	text_printf(&table->out, "%6s  %6s  %*s  %*s  %-*s  %s", "self%", "total%",
		    table->time_width, "self s", table->time_width, "total s",
		    (int)table->name_width, "function", "where");
	style_end(table);
	text_puts(&table->out, "\n");
	for (uint32_t i = 0; i < table->nr_shown; i++)
		row_print(table, &table->rows[i]);
	if (nr_more) {
		style_begin(table, DIM);
		text_printf(&table->out, "     …  and %" PRIu32 " more", nr_more);
		style_end(table);
		text_puts(&table->out, "\n");
	}
}

/* Print the line that is in the cell, cut to the terminal. */
static void header_line(struct table *table, const char *style)
{
	unsigned columns = table_columns(table);

	style_begin(table, style);
	append_head(&table->out, text_string(&table->cell), columns ? columns : SIZE_MAX);
	style_end(table);
	text_puts(&table->out, "\n");
	text_clear(&table->cell);
}

static void header_target(struct table *table, const struct sampler_stats *stats,
			  const struct run_info *info)
{
	struct text *line = &table->cell;
	uint64_t nr_threads = profile_nr_threads(table->profile);

	if (info->pid)
		text_printf(line, "pid %jd · ", (intmax_t)info->pid);
	if (info->python) {
		text_puts(line, "Python ");
		label_append_escaped(line, info->python, strlen(info->python), LABEL_DISPLAY);
		text_puts(line, " · ");
	}
	text_printf(line, "%" PRIu64 " thread%s · %.1f s · %s", nr_threads, text_plural(nr_threads),
		    stats_wall_s(stats), profile_mode_time(profile_mode(table->profile)));
	if (profile_mode(table->profile) != PROFILE_CPU && info->account.nr_cpu_measured)
		text_printf(line, " · %.3f s of CPU time", (double)info->account.cpu_ns / NS_PER_S);
	header_line(table, "");
}

/* Whole Hz, but for rates so low that they have none. */
static void append_rate(struct text *line, double rate_hz)
{
	text_printf(line, "%.*f", rate_hz > 0 && rate_hz < 10 ? 2 : 0, rate_hz);
}

static void append_asked(struct text *line, double asked_hz)
{
	text_puts(line, " of ");
	append_rate(line, asked_hz);
	text_puts(line, " asked");
}

/* " · 0.12% WHAT". */
static void append_share(struct text *line, double percent, const char *what)
{
	text_puts(line, " · ");
	if (percent > 0 && percent < 0.01)
		text_puts(line, "<0.01");
	else
		text_printf(line, "%.*f", percent > 0 ? 2 : 0, percent);
	text_printf(line, "%% %s", what);
}

static void header_sampling(struct table *table, const struct sampler_stats *stats,
			    const struct run_info *info)
{
	struct text *line = &table->cell;

	append_rate(line, stats_achieved_hz(stats));
	text_puts(line, " Hz");
	if (info->asked_hz > 0)
		append_asked(line, info->asked_hz);
	text_printf(line, " · %" PRIu64 " sample%s", stats->samples, text_plural(stats->samples));
	append_share(line, loss_percent(stats), "lost");
	if (stats->trimmed)
		append_share(line, trimmed_percent(stats), "trimmed to the caller");
	text_printf(line, " · %" PRIu64 " late tick%s", stats->late_ticks,
		    text_plural(stats->late_ticks));
	header_line(table, "");
}

static void header_print(struct table *table, const struct sampler_stats *stats,
			 const struct run_info *info)
{
	text_clear(&table->cell);
	if (info->command_line) {
		label_append_escaped(&table->cell, info->command_line, strlen(info->command_line),
				     LABEL_DISPLAY);
		header_line(table, BOLD);
	}
	header_target(table, stats, info);
	header_sampling(table, stats, info);
	text_puts(&table->out, "\n");
}

static int table_write(const struct table *table, FILE *out)
{
	int err = table->cell.error ? table->cell.error : text_write(&table->out, out);

	if (!err && fflush(out))
		err = -errno;
	return err;
}

int summary_write(const struct artefact *artefact, FILE *out)
{
	struct table table = {.profile = artefact->profile, .options = &artefact->options};
	uint64_t nr_samples = 0;
	int err = rows_collect(&table);

	if (!err) {
		widths_find(&table);
		for (uint32_t i = 0; i < artefact->nr_runs; i++) {
			header_print(&table, &artefact->runs[i].stats, &artefact->runs[i].info);
			nr_samples += artefact->runs[i].stats.samples;
		}
		if (table.nr_rows)
			table_print(&table);
		else
			text_puts(&table.out,
				  nr_samples ? "no samples of this mode\n" : "no samples\n");
		err = table_write(&table, out);
	}
	free(table.rows);
	text_done(&table.cell);
	text_done(&table.out);
	return err;
}
