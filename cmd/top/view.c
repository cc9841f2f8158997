/* SPDX-License-Identifier: MIT */
#include "cmd/top/view.h"

#include <string.h>

enum profile_side view_side(const struct view *view)
{
	return view->sort == VIEW_BY_ALL_OWN || view->sort == VIEW_BY_ALL_TOTAL ? LIVE_ALL
										: LIVE_RECENT;
}

void view_forget(struct view *view)
{
	view->has_row = false;
	view->rows = (struct view_list){.nr_shown = view->rows.nr_shown};
	view->threads = (struct view_list){.nr_shown = view->threads.nr_shown};
	view->detail = (struct view_list){.nr_shown = view->detail.nr_shown};
}

/* Keys. */

/* Show the rows from the first one. */
static void rewind_rows(struct view *view)
{
	view->has_row = false;
	view->rows.selected = view->rows.first = 0;
}

/* Change the filter by a key. Returns whether the key was for it. */
static bool edit_filter(struct view *view, int key)
{
	const size_t length = strlen(view->filter);

	if (key == VIEW_KEY_ENTER || key == '\n') {
		view->edits_filter = false;
	} else if (key == VIEW_KEY_ESCAPE) {
		view->edits_filter = false;
		view->filter[0] = '\0';
	} else if (key == VIEW_KEY_DELETE || key == '\b') {
		size_t end = length;

		/* A character of UTF-8 is a byte and those that continue it. */
		while (end && (view->filter[--end] & 0xc0) == 0x80)
			;
		view->filter[end] = '\0';
	} else if (key >= ' ' && key < VIEW_KEY_UP && key != VIEW_KEY_DELETE) {
		if (length + 1 < sizeof(view->filter)) {
			view->filter[length] = (char)key;
			view->filter[length + 1] = '\0';
		}
	} else {
		return false;
	}
	rewind_rows(view);
	return true;
}

/* Move in a list. Returns whether the key does. */
static bool move(struct view_list *list, int key)
{
	enum { FAR = INT32_MAX / 2 };
	const int32_t page = list->nr_shown > 1 ? (int32_t)list->nr_shown - 1 : 1;

	switch (key) {
	case VIEW_KEY_UP:
	case 'k':
		list->move--;
		return true;
	case VIEW_KEY_DOWN:
	case 'j':
		list->move++;
		return true;
	case VIEW_KEY_PAGE_UP:
		list->move -= page;
		return true;
	case VIEW_KEY_PAGE_DOWN:
		list->move += page;
		return true;
	case VIEW_KEY_HOME:
		list->move = -FAR;
		return true;
	case VIEW_KEY_END:
		list->move = FAR;
		return true;
	default:
		return false;
	}
}

/* The list that a key moves in: with a detail, pages are those of the detail. */
static struct view_list *list_of(struct view *view, int key)
{
	const bool is_page = key == VIEW_KEY_PAGE_UP || key == VIEW_KEY_PAGE_DOWN ||
			     key == VIEW_KEY_HOME || key == VIEW_KEY_END;

	if (view->has_detail && is_page)
		return &view->detail;
	return view->shows_threads ? &view->threads : &view->rows;
}

static void set_sort(struct view *view, unsigned sort)
{
	view->sort = (enum view_sort)(sort % NR_VIEW_SORTS);
	rewind_rows(view);
}

/* Close what is open, one thing a time. */
static void escape(struct view *view)
{
	if (view->has_detail)
		view->has_detail = view->has_row = false;
	else if (view->filter[0])
		view->filter[0] = '\0';
	else
		view->shows_threads = false;
}

/* Change what is shown. Returns whether the key does. */
static bool choose(struct view *view, int key)
{
	switch (key) {
	case VIEW_KEY_ENTER:
	case '\n':
		view->has_detail = !view->has_detail || view->shows_threads;
		view->shows_threads = false;
		view->has_row = false;
		view->detail.first = 0;
		return true;
	case VIEW_KEY_TAB:
		view->shows_source = !view->has_detail || !view->shows_source;
		view->has_detail = true;
		view->shows_threads = false;
		view->detail.first = 0;
		return true;
	case VIEW_KEY_ESCAPE:
		escape(view);
		return true;
	case VIEW_KEY_FILTER:
	case '/':
	case 'F':
		view->edits_filter = true;
		view->shows_threads = false;
		return true;
	case '\\':
		view->filter[0] = '\0';
		return true;
	case VIEW_KEY_SORT:
	case '>':
	case 's':
		set_sort(view, view->sort + 1);
		return true;
	case '<':
		set_sort(view, view->sort + NR_VIEW_SORTS - 1);
		return true;
	case 'l':
		view->by_line = !view->by_line;
		rewind_rows(view);
		return true;
	case 't':
		view->shows_threads = !view->shows_threads;
		view->has_detail = false;
		return true;
	case VIEW_KEY_HELP:
	case '?':
	case 'h':
		view->shows_help = true;
		return true;
	default:
		return false;
	}
}

enum view_action view_press(struct view *view, int key)
{
	if (view->edits_filter && edit_filter(view, key))
		return VIEW_DRAW;
	if (!key)
		return VIEW_DRAW;
	if (view->shows_help && key != VIEW_KEY_QUIT) {
		view->shows_help = false; /* any key */
		return VIEW_DRAW;
	}
	if (move(list_of(view, key), key) || choose(view, key))
		return VIEW_DRAW;
	switch (key) {
	case VIEW_KEY_QUIT:
	case 'q':
		return VIEW_QUIT;
	case 'p':
	case ' ':
		return VIEW_PAUSE;
	case 'r':
		return VIEW_RESET;
	case 'S':
		return VIEW_SAVE;
	case 'i':
		return VIEW_TOGGLE_IDLE;
	case 'n':
		return VIEW_EXPLAIN_NATIVE;
	default:
		return VIEW_DRAW;
	}
}

/* Lists. */

void view_list_settle(struct view_list *list, uint32_t nr, uint32_t nr_shown)
{
	int64_t selected = (int64_t)list->selected + list->move;

	list->move = 0;
	list->nr_shown = nr_shown;
	if (selected >= nr)
		selected = (int64_t)nr - 1;
	list->selected = selected < 0 ? 0 : (uint32_t)selected;
	if (list->first > list->selected)
		list->first = list->selected;
	if (nr_shown && list->selected - list->first >= nr_shown)
		list->first = list->selected - nr_shown + 1;
	if (list->first && nr - list->first < nr_shown)
		list->first = nr > nr_shown ? nr - nr_shown : 0;
}

void view_arrange(struct view *view, struct live_figures *figures)
{
	static const enum live_order orders[NR_VIEW_SORTS] = {
		[VIEW_BY_RECENT_OWN] = LIVE_BY_OWN, [VIEW_BY_RECENT_TOTAL] = LIVE_BY_TOTAL,
		[VIEW_BY_ALL_OWN] = LIVE_BY_OWN,    [VIEW_BY_ALL_TOTAL] = LIVE_BY_TOTAL,
		[VIEW_BY_NAME] = LIVE_BY_NAME,
	};
	struct view_list *rows = &view->rows;

	if (view->filter[0])
		live_figures_filter(figures, view->filter);
	live_figures_sort(figures, view_side(view), orders[view->sort]);
	if (view->has_row)
		for (uint32_t i = 0; i < figures->nr_rows; i++)
			if (figures->rows[i].id == view->row_id)
				rows->selected = i;
	view_list_settle(rows, figures->nr_rows, rows->nr_shown);
	view->has_row = view->has_detail && figures->nr_rows;
	if (view->has_row)
		view->row_id = figures->rows[rows->selected].id;
}

size_t view_keep_name_columns(struct view *view, size_t screen_columns, size_t needed)
{
	if (view->screen_columns != screen_columns || view->name_columns < needed)
		view->name_columns = needed;
	view->screen_columns = screen_columns;
	return view->name_columns;
}
