/* SPDX-License-Identifier: MIT */
#include "cmd/top/picture_detail.h"

#include <inttypes.h>

#include "cmd/top/picture_share.h"
#include "output/profile/label.h"

/* From this width on, the tree and the source are beside each other. */
enum { TWO_PANES_COLUMNS = 120 };

/* Longer gaps between lines with samples are left out, except for these lines around them. */
enum { MAX_GAP_LINES = 12, CONTEXT_LINES = 2 };

/* The area of a pane: nr rows from row on, of which the first_line-th line is the first shown. */
struct pane {
	struct screen *screen;
	unsigned row, nr;
	size_t begin, end;   /* columns */
	uint32_t first_line; /* of the content */
	uint32_t nr_lines;   /* drawn or scrolled out so far */
};

/* Begin the next line of a pane. Returns whether it is on the screen. */
static bool next_line(struct pane *pane, unsigned *ret_row)
{
	const uint32_t line = pane->nr_lines++;

	if (line < pane->first_line || line - pane->first_line >= pane->nr)
		return false;
	*ret_row = pane->row + (line - pane->first_line);
	screen_pad(pane->screen, *ret_row, STYLE_PLAIN, pane->begin);
	return true;
}

/* Returns the columns that are left of a line. */
static size_t left_of(const struct pane *pane, unsigned row)
{
	const size_t used = screen_used(pane->screen, row);

	return used < pane->end ? pane->end - used : 0;
}

/* The tree. */

static void draw_heading(struct pane *pane, const char *text)
{
	unsigned row;

	if (next_line(pane, &row))
		screen_name(pane->screen, row, STYLE_DIM, text, left_of(pane, row));
}

/* Draw a caller or a node: its shares, its place in the tree, its name. */
static void draw_call(struct pane *pane, const struct live_call *call, uint64_t whole_ns,
		      bool has_own)
{
	const struct profile_function *const function = call->function;
	const double share = live_share(call->total_ns, whole_ns);
	unsigned row;

	if (!next_line(pane, &row))
		return;
	share_draw(pane->screen, row, has_own ? share_style(share) : STYLE_PLAIN, 6, share);
	if (has_own)
		share_draw(pane->screen, row, STYLE_DIM, 6, live_share(call->own_ns, whole_ns));
	else
		screen_puts(pane->screen, row, STYLE_PLAIN, "      ");
	screen_puts(pane->screen, row, STYLE_PLAIN, "  ");
	for (uint32_t i = 0; i < call->depth && left_of(pane, row) > 20; i++)
		screen_puts(pane->screen, row, STYLE_DIM, i + 1 == call->depth ? "└ " : "  ");
	screen_name(pane->screen, row, call->depth || !has_own ? STYLE_PLAIN : STYLE_BOLD,
		    function ? function->qualname : "[outermost]", left_of(pane, row));
	if (function && left_of(pane, row) > 8) {
		struct text where = {0};

		label_append_location(&where, function->path, "", function->first_line,
				      LABEL_DISPLAY);
		screen_puts(pane->screen, row, STYLE_PLAIN, "  ");
		screen_name_tail(pane->screen, row, STYLE_DIM, text_string(&where),
				 left_of(pane, row));
		text_done(&where);
	}
}

static void draw_tree(const struct picture *picture, struct pane *pane, uint64_t whole_ns)
{
	const struct live_detail *detail = picture->detail;

	draw_heading(pane, "total%        called by");
	for (uint32_t i = 0; i < detail->nr_callers; i++)
		draw_call(pane, &detail->callers[i], whole_ns, false);
	draw_heading(pane, "total%  own%  calls");
	for (uint32_t i = 0; i < detail->nr_tree; i++)
		draw_call(pane, &detail->tree[i], whole_ns, true);
}

/* The source. */

/* Draw a line of source, with its weights if it has samples. */
static void draw_source_line(const struct picture *picture, struct pane *pane, const char *path,
			     int32_t number, const struct live_line *line, uint64_t whole_ns)
{
	const double own = line ? live_share(line->weight.self_ns, whole_ns) : 0;
	const char *source = NULL;
	struct text expanded = {0};
	unsigned row;

	if (!next_line(pane, &row))
		return;
	if (line) {
		share_draw(pane->screen, row, share_style(own), 6, own);
		share_draw(pane->screen, row, STYLE_PLAIN, 8,
			   live_share(line->weight.total_ns, whole_ns));
	} else {
		screen_printf(pane->screen, row, STYLE_PLAIN, "%14s", "");
	}
	if (number > 0)
		screen_printf(pane->screen, row, STYLE_DIM, "%7" PRId32 "  ", number);
	else
		screen_puts(pane->screen, row, STYLE_DIM, "      ?  ");
	if (!picture->sources || source_lines_get(picture->sources, path, number, &source) != 0)
		source = "";
	for (; *source == '\t' || *source == ' '; source++)
		text_puts(&expanded, *source == '\t' ? "    " : " ");
	text_puts(&expanded, source);
	screen_name(pane->screen, row, line ? STYLE_PLAIN : STYLE_DIM, text_string(&expanded),
		    left_of(pane, row));
	text_done(&expanded);
}

/* Draw the lines between two others; long gaps are left out but for their ends. */
static void draw_gap(const struct picture *picture, struct pane *pane, const char *path,
		     int32_t before, int32_t after)
{
	const bool is_long = (int64_t)after - before - 1 > MAX_GAP_LINES;

	for (int32_t i = before + 1; i < after; i++) {
		if (is_long && i == before + CONTEXT_LINES + 1) {
			draw_heading(pane, "                 …");
			i = after - CONTEXT_LINES;
		}
		draw_source_line(picture, pane, path, i, NULL, 0);
	}
}

static void draw_source(const struct picture *picture, struct pane *pane,
			const struct profile_function *function, uint64_t whole_ns)
{
	const struct live_detail *detail = picture->detail;
	const char *source;
	const bool has_source =
		detail->nr_lines && picture->sources &&
		source_lines_get(picture->sources, function->path,
				 detail->lines[detail->nr_lines - 1].line, &source) == 0;
	/* A line above the def is of a decorator, or 0: unknown. */
	int32_t last = function->first_line > 0 ? function->first_line - 1 : INT32_MAX;

	draw_heading(pane, has_source ? "  own%  total%   line  source"
				      : "  own%  total%   line  (its source may not be shown)");
	for (uint32_t i = 0; i < detail->nr_lines; i++) {
		const struct live_line *line = &detail->lines[i];

		if (has_source && last < line->line)
			draw_gap(picture, pane, function->path, last, line->line);
		draw_source_line(picture, pane, function->path, line->line, line, whole_ns);
		if (line->line > 0)
			last = line->line;
	}
}

/* The whole. */

static void draw_bar(const struct view *view, const struct live_row *data, struct screen *screen,
		     unsigned row)
{
	const bool is_recent = view_side(view) == LIVE_RECENT;
	const bool is_wide = screen->columns >= TWO_PANES_COLUMNS;

	screen_puts(screen, row, STYLE_BAR, " ");
	screen_name(screen, row, STYLE_BAR_BOLD, data->function->qualname, screen->columns / 2);
	screen_puts(screen, row, STYLE_BAR, is_recent ? " · last seconds" : " · since the start");
	if (!is_wide) {
		screen_puts(screen, row, STYLE_BAR, " · Tab: ");
		screen_puts(screen, row, view->shows_source ? STYLE_BAR : STYLE_BAR_BOLD,
			    "call tree");
		screen_puts(screen, row, STYLE_BAR, " ");
		screen_puts(screen, row, view->shows_source ? STYLE_BAR_BOLD : STYLE_BAR, "source");
	}
	screen_pad(screen, row, STYLE_BAR, screen->columns);
}

/* Scroll a list of lines: its selected line is the first one shown. */
static void scroll(struct view_list *list, uint32_t nr_lines, uint32_t nr_shown)
{
	const uint32_t last = nr_lines > nr_shown ? nr_lines - nr_shown : 0;
	int64_t first = (int64_t)list->first + list->move;

	list->nr_shown = nr_shown;
	list->move = 0;
	list->first = first < 0 ? 0 : first > last ? last : (uint32_t)first;
}

static void draw_panes(const struct picture *picture, const struct view *view,
		       const struct live_row *data, struct pane *tree, struct pane *source)
{
	const uint64_t whole_ns = profile_sums(picture->figures->profile, view_side(view))->time_ns;
	const bool is_wide = tree->screen->columns >= TWO_PANES_COLUMNS;

	tree->first_line = source->first_line = view->detail.first;
	tree->nr_lines = source->nr_lines = 0;
	if (is_wide || !view->shows_source)
		draw_tree(picture, tree, whole_ns);
	if (is_wide || view->shows_source)
		draw_source(picture, source, data->function, whole_ns);
}

void picture_detail_draw(const struct picture *picture, struct view *view, struct screen *screen,
			 unsigned row, unsigned nr)
{
	const struct live_row *data = &picture->figures->rows[view->rows.selected];
	const bool is_wide = screen->columns >= TWO_PANES_COLUMNS;
	const size_t middle = is_wide ? screen->columns / 2 : 0;
	struct pane tree = {
		.screen = screen, .row = row + 1, .end = is_wide ? middle - 1 : screen->columns};
	struct pane source = {
		.screen = screen, .row = row + 1, .begin = middle, .end = screen->columns};

	draw_bar(view, data, screen, row);
	/* Once with no room, to count the lines. */
	draw_panes(picture, view, data, &tree, &source);
	scroll(&view->detail, tree.nr_lines > source.nr_lines ? tree.nr_lines : source.nr_lines,
	       nr - 1);
	tree.nr = source.nr = nr - 1;
	draw_panes(picture, view, data, &tree, &source);
}
