/* SPDX-License-Identifier: MIT */
/* What the user has chosen to see, and how keys change that. It knows no terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/top/keys.h"
#include "output/live/live.h"
#include "output/live/live_figures.h"

/* What the owner of the view must do for a key. */
enum view_action {
	VIEW_DRAW, /* nothing but show the view again */
	VIEW_QUIT,
	VIEW_PAUSE,
	VIEW_RESET,
	VIEW_SAVE,
	VIEW_TOGGLE_IDLE,
	VIEW_EXPLAIN_NATIVE,
};

/* The column by which rows are sorted, in the order of the columns. */
enum view_sort {
	VIEW_BY_RECENT_OWN,
	VIEW_BY_RECENT_TOTAL,
	VIEW_BY_ALL_OWN,
	VIEW_BY_ALL_TOTAL,
	VIEW_BY_NAME,
	NR_VIEW_SORTS,
};

enum { VIEW_FILTER_MAX_BYTES = 64 };

/* A list of which a part is on the screen. */
struct view_list {
	uint32_t selected; /* index; below the number of rows, if there are any */
	uint32_t first;	   /* index of the first row on the screen */
	uint32_t nr_shown; /* rows that fit; set when it was drawn */
	int32_t move;	   /* rows to move the selection by, when it is next drawn */
};

/* All zero: functions by their recent own time. */
struct view {
	enum view_sort sort;
	bool by_line, shows_threads, has_detail, shows_source, shows_help, edits_filter;
	bool is_plain; /* no row is selected, and there are no keys */
	char filter[VIEW_FILTER_MAX_BYTES];
	struct view_list rows, threads, detail;
	/* With a detail, the selection follows its row, whatever place that gets. */
	bool has_row;
	uint32_t row_id; /* live_row.id */
	/* for names in the table of functions, on a screen of that width; 0: none yet */
	size_t name_columns, screen_columns;
};

/* Change the view by a key; 0 changes nothing. */
enum view_action view_press(struct view *view, int key);

/* The side that the sort order and the detail are about. */
enum profile_side view_side(const struct view *view);

/* Sort and filter the rows, which are of the view's kind, and find the selected one. */
void view_arrange(struct view *view, struct live_figures *figures);

/* Apply the move of a list that has nr rows, of which nr_shown fit, and choose the first one. */
void view_list_settle(struct view_list *list, uint32_t nr, uint32_t nr_shown);

/*
 * Returns the columns for names: as many as needed, but never fewer than before on a screen of this
 * width, so that the table stays where it is.
 */
size_t view_keep_name_columns(struct view *view, size_t screen_columns, size_t needed);

/* After a reset rows have other ids. */
void view_forget(struct view *view);
