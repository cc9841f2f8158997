/* SPDX-License-Identifier: MIT */
#include "cmd/top/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/picture_detail.h"
#include "cmd/top/picture_share.h"
#include "output/profile/label.h"
#include "output/run/loss.h"
#include "output/run/stats.h"
#include "output/text/text_width.h"
#include "procmem/clock.h"

/* The header. */

/* "0:01:23" */
static void format_time(uint64_t time_ns, char (*ret_text)[32])
{
	const uint64_t s = time_ns / NS_PER_S;

	(void)snprintf(*ret_text, sizeof(*ret_text), "%" PRIu64 ":%02u:%02u", s / 3600,
		       (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

static void draw_title(const struct picture *picture, struct screen *screen, unsigned row)
{
	const struct run_info *info = &picture->run->info;
	const char *const state = picture->has_ended   ? "ENDED "
				  : picture->is_paused ? "PAUSED "
						       : "";
	struct text facts = {0};
	char time[32];
	size_t right;

	format_time(picture->elapsed_ns, &time);
	right = strlen(state) + strlen(time) + 1;
	text_printf(&facts, " · pid %d%s · Python ", info->target.pid,
		    picture->of_tree ? " and its children" : "");
	label_append_string(&facts, info->python.version ? info->python.version : "not found yet");
	if (info->python.free_threaded)
		text_puts(&facts, "t");
	screen_puts(screen, row, STYLE_BAR, " ");
	if (screen->columns > right + 20) {
		const size_t room = screen->columns - right - 2;
		const size_t width = text_width(text_string(&facts));

		screen_name(screen, row, STYLE_BAR_BOLD, picture->name,
			    room > width + 16 ? room - width : 16);
		if (room > screen_used(screen, row))
			screen_name(screen, row, STYLE_BAR, text_string(&facts),
				    room - screen_used(screen, row));
	}
	if (screen->columns > right)
		screen_pad(screen, row, STYLE_BAR, screen->columns - right);
	screen_puts(screen, row, STYLE_BAR_BOLD, state);
	screen_puts(screen, row, STYLE_BAR, time);
	screen_pad(screen, row, STYLE_BAR, screen->columns);
	text_done(&facts);
}

/* Draw "NAME[||||   12.3%]"; share is of full; negative: unknown. */
static void draw_meter(struct screen *screen, unsigned row, const char *name, double share,
		       double full, size_t columns)
{
	const size_t begin = screen_used(screen, row);
	char value[24];
	size_t room, filled;

	if (share < 0)
		(void)snprintf(value, sizeof(value), "–");
	else
		(void)snprintf(value, sizeof(value), share < 1 ? "%.1f%%" : "%.0f%%", share * 100);
	screen_puts(screen, row, STYLE_BOLD, name);
	screen_puts(screen, row, STYLE_PLAIN, "[");
	if (columns < strlen(name) + text_width(value) + 3)
		return;
	room = columns - strlen(name) - 2 - text_width(value);
	filled = share > 0 ? (size_t)((share < full ? share / full : 1) * (double)room + 0.5) : 0;
	for (size_t i = 0; i < filled; i++)
		screen_puts(screen, row, share >= full * 0.9 ? STYLE_HOT : STYLE_GOOD, "|");
	screen_pad(screen, row, STYLE_PLAIN, begin + columns - 1 - text_width(value));
	screen_puts(screen, row, STYLE_BOLD, value);
	screen_puts(screen, row, STYLE_PLAIN, "]");
}

static void draw_meters(const struct picture *picture, const struct live_summary *summary,
			struct screen *screen, unsigned row)
{
	const bool has_gil = !picture->run->info.python.free_threaded;
	const size_t width = screen->columns / 3;
	const size_t columns = width > 45 ? 44 : width ? width - 1 : 0;
	const double nr_cpus = picture->nr_cpus > 0 ? picture->nr_cpus : 1;

	draw_meter(screen, row, "CPU", picture->cpu_share, nr_cpus, columns);
	screen_puts(screen, row, STYLE_PLAIN, " ");
	draw_meter(screen, row, "GIL", has_gil ? summary->gil_share : -1, 1, columns);
	screen_puts(screen, row, STYLE_PLAIN, " ");
	draw_meter(screen, row, "GC", summary->gc_share, 1, columns);
}

/* Fewer threads that wait for the GIL, on average, are no news. */
#define LEAST_GIL_WAITERS 0.1

static void draw_threads_line(const struct picture *picture, const struct live_summary *summary,
			      struct screen *screen, unsigned row)
{
	const uint32_t nr_busy = summary->nr_threads - summary->nr_idle;

	screen_puts(screen, row, STYLE_BOLD, "Threads ");
	screen_printf(screen, row, STYLE_PLAIN, "%" PRIu32, summary->nr_threads);
	if (picture->of_tree)
		screen_printf(screen, row, STYLE_PLAIN, " in %" PRIu32 " processes",
			      summary->nr_processes);
	screen_puts(screen, row, STYLE_PLAIN, ": ");
	screen_printf(screen, row, nr_busy ? STYLE_GOOD : STYLE_PLAIN, "%" PRIu32 " busy", nr_busy);
	screen_printf(screen, row, STYLE_DIM, ", %" PRIu32 " idle", summary->nr_idle);
	if (summary->gil_wait_share < LEAST_GIL_WAITERS)
		return;
	screen_puts(screen, row, STYLE_PLAIN, ", ");
	screen_printf(screen, row, STYLE_ALERT, "%.1f waiting for the GIL",
		      summary->gil_wait_share);
	screen_puts(screen, row, STYLE_DIM, " on average");
}

static void draw_sampling_line(const struct picture *picture, const struct live_summary *summary,
			       bool is_plain, struct screen *screen, unsigned row)
{
	const struct sampler_stats *stats = &picture->run->stats;
	const struct run_info *info = &picture->run->info;
	const double lost = loss_percent(stats);
	const enum profile_mode mode = profile_mode(picture->figures->profile);

	screen_puts(screen, row, STYLE_BOLD, "Rate ");
	screen_printf(screen, row, STYLE_PLAIN, "%.0f of %.4g Hz, %s, ", stats_achieved_hz(stats),
		      info->requested_hz, info->engine ? info->engine : "no engine");
	screen_printf(screen, row, lost >= 2 ? STYLE_ALERT : STYLE_PLAIN, "%.2f%% lost", lost);
	screen_puts(screen, row, STYLE_PLAIN, "   ");
	screen_puts(screen, row, STYLE_BOLD, "Shown ");
	if (mode == PROFILE_BUSY)
		screen_printf(screen, row, STYLE_PLAIN,
			      "busy threads; %" PRIu32 " idle hidden (%s)", summary->nr_idle,
			      is_plain ? "--idle" : "i");
	else if (mode == PROFILE_WALL)
		screen_puts(screen, row, STYLE_PLAIN, "all threads, also idle ones");
	else
		screen_puts(screen, row, STYLE_PLAIN, profile_mode_time(mode));
}

/* Draw the filter that is edited, else the message, else the filter that applies. */
static void draw_message(const struct picture *picture, const struct view *view,
			 struct screen *screen, unsigned row)
{
	if (view->edits_filter || (view->filter[0] && !picture->message[0])) {
		screen_puts(screen, row, STYLE_BOLD, "Filter: ");
		screen_name(screen, row, STYLE_PLAIN, view->filter, screen->columns);
		screen_puts(screen, row, STYLE_BOLD, view->edits_filter ? "_" : "");
		screen_puts(screen, row, STYLE_DIM,
			    view->edits_filter ? "  Enter keeps it, Esc clears it"
					       : "  \\ clears it");
	} else {
		screen_puts(screen, row, STYLE_BOLD, picture->message);
	}
}

enum { HEADER_ROWS = 5 };

static void draw_header(const struct picture *picture, const struct view *view,
			struct screen *screen)
{
	struct live_summary summary;

	live_summarize(picture->live, &summary);
	draw_title(picture, screen, 0);
	draw_meters(picture, &summary, screen, 1);
	draw_threads_line(picture, &summary, screen, 2);
	draw_sampling_line(picture, &summary, view->is_plain, screen, 3);
	draw_message(picture, view, screen, 4);
}

/* The table of functions. */

/* Below this width the figures since the start are left out but the time. */
enum { NARROW_COLUMNS = 70 };

/* The columns of all figures. */
enum { FIGURES_COLUMNS = 36 };

static void draw_table_heading(const struct picture *picture, const struct view *view,
			       struct screen *screen, unsigned row)
{
	static const struct {
		const char *text;
		enum view_sort sort;
		bool is_wide;
	} cells[] = {
		{" own%", VIEW_BY_RECENT_OWN, false},  {" total%", VIEW_BY_RECENT_TOTAL, false},
		{"  own%", VIEW_BY_ALL_OWN, true},     {" total%", VIEW_BY_ALL_TOTAL, true},
		{"    own s", VIEW_BY_ALL_OWN, false},
	};
	char recent[32];

	(void)snprintf(recent, sizeof(recent), "last %.0f s",
		       (double)live_recent_ns(picture->live) / NS_PER_S);
	screen_printf(screen, row, STYLE_DIM, "%12s", recent);
	if (screen->columns >= NARROW_COLUMNS)
		screen_printf(screen, row, STYLE_DIM, "%22s", "since the start");
	row++;
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		if (!cells[i].is_wide || screen->columns >= NARROW_COLUMNS)
			screen_puts(screen, row,
				    cells[i].sort == view->sort ? STYLE_BAR_BOLD : STYLE_BAR,
				    cells[i].text);
	screen_puts(screen, row, STYLE_BAR, "  ");
	screen_puts(screen, row, view->sort == VIEW_BY_NAME ? STYLE_BAR_BOLD : STYLE_BAR,
		    view->by_line ? "line of function" : "function");
	screen_pad(screen, row, STYLE_BAR, screen->columns);
}

/* Where a row is. */
static void format_place(const struct live_row *data, struct text *where)
{
	label_append_location(where, data->function->path, "", data->line, LABEL_DISPLAY);
}

/* Draw the name of a row in name_columns, and where it is in what is left of the line. */
static void draw_place(const struct live_row *data, size_t name_columns, struct screen *screen,
		       unsigned row, enum screen_style style)
{
	const size_t begin = screen_used(screen, row);
	struct text where = {0};

	format_place(data, &where);
	screen_name(screen, row, style, data->function->qualname, name_columns);
	screen_pad(screen, row, style, begin + name_columns + 2);
	if (screen->columns > screen_used(screen, row) + 4)
		screen_name_tail(screen, row, style == STYLE_PLAIN ? STYLE_DIM : style,
				 text_string(&where), screen->columns - screen_used(screen, row));
	text_done(&where);
}

/*
 * Returns the columns for the names of these rows, if room is for them and their places: as many
 * as the longest needs, unless its place would have too few then.
 */
static size_t name_columns_of(const struct live_row *rows, uint32_t nr, size_t room)
{
	size_t longest = 0, longest_place = 0, least;

	for (uint32_t i = 0; i < nr; i++) {
		struct text name = {0}, where = {0};
		size_t width;

		label_append_string(&name, rows[i].function->qualname);
		format_place(&rows[i], &where);
		width = text_width(text_string(&name));
		longest = width > longest ? width : longest;
		width = text_width(text_string(&where));
		longest_place = width > longest_place ? width : longest_place;
		text_done(&name);
		text_done(&where);
	}
	least = room * 3 / 5;
	if (longest <= least || room < 4)
		return longest;
	if (longest + longest_place + 2 <= room)
		return longest;
	return longest_place + 2 < room - least ? room - longest_place - 2 : least;
}

/* How a row is drawn. */
struct row_layout {
	size_t name_columns;
	bool is_selected;
};

static void draw_row(const struct picture *picture, const struct live_row *data,
		     const struct row_layout *layout, struct screen *screen, unsigned row)
{
	const bool is_selected = layout->is_selected;
	const struct profile *profile = picture->figures->profile;
	const uint64_t recent_ns = profile_sums(profile, LIVE_RECENT)->time_ns;
	const uint64_t all_ns = profile_sums(profile, LIVE_ALL)->time_ns;
	const struct profile_total *recent = &data->weights[LIVE_RECENT];
	const struct profile_total *all = &data->weights[LIVE_ALL];
	const double own = live_share(recent->self_ns, recent_ns);
	const enum screen_style style = is_selected ? STYLE_SELECTED : STYLE_PLAIN;

	share_draw(screen, row, is_selected ? style : share_style(own), 5, own);
	share_draw(screen, row, style, 7, live_share(recent->total_ns, recent_ns));
	if (screen->columns >= NARROW_COLUMNS) {
		share_draw(screen, row, style, 6, live_share(all->self_ns, all_ns));
		share_draw(screen, row, style, 7, live_share(all->total_ns, all_ns));
	}
	screen_printf(screen, row, style, "%9.2f  ", (double)all->self_ns / NS_PER_S);
	draw_place(data, layout->name_columns, screen, row, style);
	if (is_selected)
		screen_pad(screen, row, style, screen->columns);
}

/* Draw the table from a row on, with nr rows of data. */
static void draw_table(const struct picture *picture, struct view *view, struct screen *screen,
		       unsigned row, unsigned nr)
{
	const struct live_figures *figures = picture->figures;
	struct row_layout layout = {.name_columns = 0};
	uint32_t first, nr_shown;

	view_list_settle(&view->rows, figures->nr_rows, nr);
	first = view->rows.first;
	nr_shown = figures->nr_rows - first < nr ? figures->nr_rows - first : nr;
	draw_table_heading(picture, view, screen, row);
	if (screen->columns > FIGURES_COLUMNS)
		layout.name_columns =
			view_keep_name_columns(view, screen->columns,
					       name_columns_of(&figures->rows[first], nr_shown,
							       screen->columns - FIGURES_COLUMNS));
	for (unsigned i = 0; i < nr_shown; i++) {
		layout.is_selected = !view->is_plain && first + i == view->rows.selected;
		draw_row(picture, &figures->rows[first + i], &layout, screen, row + 2 + i);
	}
	if (!figures->nr_rows)
		screen_puts(screen, row + 2, STYLE_DIM,
			    view->filter[0]		 ? "  no function matches the filter"
			    : !picture->run->stats.ticks ? "  waiting for the first samples"
							 : "  no thread is busy");
}

/* The table of threads. */

/* The busiest first. */
static int compare_threads(const void *left, const void *right)
{
	const struct live_thread *a = *(const struct live_thread *const *)left;
	const struct live_thread *b = *(const struct live_thread *const *)right;
	const uint64_t busy_a = a->state_ns[LIVE_HOLDS_GIL] + a->state_ns[LIVE_RUNS];
	const uint64_t busy_b = b->state_ns[LIVE_HOLDS_GIL] + b->state_ns[LIVE_RUNS];

	if (busy_a != busy_b)
		return busy_a < busy_b ? 1 : -1;
	return (a->thread.id > b->thread.id) - (a->thread.id < b->thread.id);
}

/* The innermost Python function of a thread, or its innermost one; NULL: none. */
static const struct profile_function *function_of(const struct profile *profile, uint32_t node,
						  int32_t *ret_line)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);
	const struct profile_frame *frames = profile_frames(profile, &nr);
	const struct profile_function *functions = profile_functions(profile, &nr);
	const struct profile_function *innermost = NULL;

	for (; node != PROFILE_NONE; node = nodes[node].parent) {
		const struct profile_frame *frame = &frames[nodes[node].frame];

		if (!innermost || functions[frame->function].kind == FUNCTION_PYTHON) {
			innermost = &functions[frame->function];
			*ret_line = frame->line;
		}
		if (innermost->kind == FUNCTION_PYTHON)
			break;
	}
	return innermost;
}

/* Fewer columns are for the function of a thread alone, more also for where it is. */
enum { LEAST_PLACE_COLUMNS = 40 };

static void draw_thread(const struct picture *picture, const struct live_thread *thread,
			const struct row_layout *layout, struct screen *screen, unsigned row)
{
	static const char *const states[NR_LIVE_STATES] = {
		[LIVE_HOLDS_GIL] = "has GIL",
		[LIVE_WAITS_FOR_GIL] = "waits GIL",
		[LIVE_RUNS] = "runs",
		[LIVE_WAITS] = "idle",
	};
	static const enum screen_style styles[NR_LIVE_STATES] = {
		[LIVE_HOLDS_GIL] = STYLE_GOOD,
		[LIVE_WAITS_FOR_GIL] = STYLE_ALERT,
		[LIVE_RUNS] = STYLE_GOOD,
		[LIVE_WAITS] = STYLE_DIM,
	};
	const enum live_state state = live_state_of(thread->flags);
	const enum screen_style style = layout->is_selected ? STYLE_SELECTED : STYLE_PLAIN;
	const uint64_t recent_ns = live_recent_ns(picture->live);
	int32_t line = 0;
	const struct profile_function *function =
		function_of(picture->figures->profile, thread->node, &line);
	size_t begin, left;

	if (picture->of_tree) {
		const struct live_process *process =
			live_process(picture->live, thread->thread.process);

		screen_printf(screen, row, style, "%7d ", process ? process->pid : 0);
	}
	screen_printf(screen, row, style, "%7d  ", thread->thread.tid);
	screen_printf(screen, row, layout->is_selected ? style : styles[state], "%-9s",
		      states[state]);
	for (int i = 0; i < NR_LIVE_STATES; i++)
		share_draw(screen, row, style, 6, live_share(thread->state_ns[i], recent_ns));
	screen_puts(screen, row, style, "  ");
	begin = screen_used(screen, row);
	left = (screen->columns - begin) / 2;
	left = layout->name_columns < left ? layout->name_columns : left;
	screen_name_tail(screen, row, style, thread->thread.name, left); /* "…Executor-0_7" */
	screen_pad(screen, row, style, begin + left + 2);
	left = screen->columns - screen_used(screen, row);
	if (function) {
		const struct live_row data = {.function = function, .line = line};

		draw_place(&data, left < LEAST_PLACE_COLUMNS ? left : left / 2, screen, row, style);
	}
	screen_pad(screen, row, style, screen->columns);
}

/* Returns the width of a thread's name as it is drawn. */
static size_t width_of(const struct live_thread *thread)
{
	struct text name = {0};
	size_t width;

	label_append_string(&name, thread->thread.name);
	width = text_width(text_string(&name));
	text_done(&name);
	return width;
}

static void draw_threads(const struct picture *picture, struct view *view, struct screen *screen,
			 unsigned row, unsigned nr)
{
	struct row_layout layout = {.name_columns = 0};
	uint32_t nr_threads, nr_used = 0;
	const struct live_thread *threads = live_threads(picture->live, &nr_threads);
	const struct live_thread **used =
		calloc((size_t)nr_threads + 1, sizeof(const struct live_thread *));

	for (uint32_t i = 0; used && i < nr_threads; i++) {
		if (!threads[i].is_used)
			continue;
		used[nr_used++] = &threads[i];
		if (width_of(&threads[i]) > layout.name_columns)
			layout.name_columns = width_of(&threads[i]);
	}
	if (nr_used)
		qsort(used, nr_used, sizeof(const struct live_thread *), compare_threads);
	view_list_settle(&view->threads, nr_used, nr);
	screen_printf(screen, row, STYLE_DIM, "%*s", picture->of_tree ? 50 : 42,
		      "% of the last seconds   ");
	screen_printf(screen, row + 1, STYLE_BAR,
		      "%s    tid  state      gil  wait  runs  idle  thread and where it is",
		      picture->of_tree ? "    pid " : "");
	screen_pad(screen, row + 1, STYLE_BAR, screen->columns);
	for (unsigned i = 0; i < nr; i++) {
		const uint32_t index = view->threads.first + i;

		layout.is_selected = index == view->threads.selected;
		if (index < nr_used)
			draw_thread(picture, used[index], &layout, screen, row + 2 + i);
	}
	free(used);
}

/* Help and the bottom line. */

static void draw_help(struct screen *screen, unsigned row)
{
	static const char *const lines[] = {
		"  Up Down PgUp PgDn Home End   move (with a call tree, pages move in it)",
		"  Enter     call tree of the selected function: its callers and what it calls",
		"  Tab       its source lines with their shares",
		"  F4 / F    filter by a part of the name or path; \\ clears it",
		"  F6 s < >  sort: own or total, now or since the start, or by name",
		"  l         rows are functions or lines",
		"  t         threads, their states, and where they are",
		"  i         show idle threads, too, or hide them again",
		"  p Space   pause sampling, and go on",
		"  r         reset: begin again from zero",
		"  S         save all samples since the start or reset, for pysample report",
		"  n         C frames",
		"  Esc       close what is open; Ctrl-L: draw the screen anew",
		"  q F10     quit",
		"",
		"  own: time in the function itself; total: with all that it called.",
		"  Shares are of the time of all threads that are shown.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines) && row + i + 1 < screen->rows; i++)
		screen_puts(screen, row + (unsigned)i, STYLE_PLAIN, lines[i]);
}

static void draw_keys(struct screen *screen, unsigned row)
{
	static const struct {
		const char *key, *meaning;
	} keys[] = {
		{"?", "Help"},	 {"q", "Quit"}, {"Enter", "Tree"}, {"Tab", "Source"},
		{"/", "Filter"}, {"s", "Sort"}, {"t", "Threads"},  {"p", "Pause"},
		{"r", "Reset"},	 {"S", "Save"}, {"l", "Lines"},	   {"i", "Idle"},
		{"n", "Native"},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const size_t needed = strlen(keys[i].key) + strlen(keys[i].meaning);

		if (screen_used(screen, row) + needed > screen->columns)
			break;
		screen_puts(screen, row, STYLE_BOLD, keys[i].key);
		screen_puts(screen, row, STYLE_BAR, keys[i].meaning);
		screen_puts(screen, row, STYLE_PLAIN, " ");
	}
}

enum { TABLE_HEADING_ROWS = 2, LEAST_TABLE_ROWS = 3 };

void picture_draw(const struct picture *picture, struct view *view, struct screen *screen)
{
	const unsigned used = HEADER_ROWS + TABLE_HEADING_ROWS + 1;
	const unsigned left = screen->rows > used ? screen->rows - used : 0;
	unsigned nr = left;

	draw_header(picture, view, screen);
	if (view->shows_help) {
		draw_help(screen, HEADER_ROWS);
	} else if (view->shows_threads) {
		draw_threads(picture, view, screen, HEADER_ROWS, left);
	} else {
		if (picture->detail) {
			nr = left / 3 > LEAST_TABLE_ROWS ? left / 3 : LEAST_TABLE_ROWS;
			if (nr > left)
				nr = left;
		}
		draw_table(picture, view, screen, HEADER_ROWS, nr);
		if (picture->detail && nr < left)
			picture_detail_draw(picture, view, screen,
					    HEADER_ROWS + TABLE_HEADING_ROWS + nr, left - nr);
	}
	if (screen->rows >= used)
		draw_keys(screen, screen->rows - 1);
}

unsigned picture_plain_rows(uint32_t nr)
{
	return HEADER_ROWS + TABLE_HEADING_ROWS + (nr ? nr : 1);
}

void picture_draw_plain(const struct picture *picture, struct view *view, struct screen *screen)
{
	draw_header(picture, view, screen);
	draw_table(picture, view, screen, HEADER_ROWS,
		   screen->rows - HEADER_ROWS - TABLE_HEADING_ROWS);
}
