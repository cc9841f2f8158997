/* SPDX-License-Identifier: MIT */
#include "output/summary/summary_names.h"

#include <string.h>

#include "output/profile/label.h"
#include "output/text/text_width.h"

struct summary_name summary_name_of_frame(const struct profile *profile, uint32_t frame)
{
	uint32_t nr;
	const struct profile_frame *row = &profile_frames(profile, &nr)[frame];
	struct summary_name name = {
		.frame = frame, .line = row->line, .mark = label_line_mark(profile, frame)};

	if (row->function != PROFILE_NONE)
		name.function = &profile_functions(profile, &nr)[row->function];
	return name;
}

int summary_name_compare(const struct summary_name *a, const struct summary_name *b)
{
	int order = 0;

	if (a->function && b->function) {
		order = strcmp(a->function->qualname, b->function->qualname);
		if (!order)
			order = strcmp(a->function->path, b->function->path);
	}
	return order ? order : (a->frame > b->frame) - (a->frame < b->frame);
}

/* Put the name in the page's cell. */
static const char *name_text(struct summary_page *page, const struct summary_name *name)
{
	text_clear(&page->cell);
	if (name->words)
		text_puts(&page->cell, name->words);
	else if (name->function)
		label_append_function(&page->cell, name->function->qualname, "", 0, LABEL_DISPLAY);
	else
		label_append_frame(&page->cell, page->artefact->profile, name->frame,
				   LABEL_DISPLAY);
	return text_string(&page->cell);
}

/* Put the place in the page's cell; "" if there is none. */
static const char *place_text(struct summary_page *page, const struct summary_name *name)
{
	text_clear(&page->cell);
	if (!name->words && name->function)
		label_append_location(&page->cell, name->function->path, name->mark, name->line,
				      LABEL_DISPLAY);
	return text_string(&page->cell);
}

void summary_names_init(struct summary_names *names)
{
	*names = (struct summary_names){strlen("function"), strlen("where")};
}

void summary_names_widen(struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name)
{
	size_t name_width = text_width(name_text(page, name));
	size_t place_width = text_width(place_text(page, name));

	if (name_width > names->name_width)
		names->name_width = name_width;
	if (place_width > names->place_width)
		names->place_width = place_width;
}

/*
 * If both columns do not fit, the places get their width and the names the rest, but at least
 * half.
 */
void summary_names_fit(struct summary_names *names, const struct summary_page *page,
		       size_t numbers_width)
{
	size_t left = summary_page_columns(page);
	size_t name_width;

	if (!left)
		return;
	left -= numbers_width + 2;
	if (names->name_width + names->place_width <= left)
		return;
	name_width = left > names->place_width ? left - names->place_width : 0;
	if (name_width < left / 2)
		name_width = left / 2;
	if (names->name_width > name_width)
		names->name_width = name_width;
	names->place_width = left - names->name_width;
}

void summary_names_print_head(const struct summary_names *names, struct summary_page *page)
{
	text_printf(&page->out, "%-*s  %s", (int)names->name_width, "function", "where");
	summary_page_plain(page);
	text_puts(&page->out, "\n");
}

void summary_names_print(const struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name)
{
	size_t name_width = names->name_width;
	size_t used;

	if (name->words || !name->function)
		name_width += 2 + names->place_width; /* use the space of the place */
	used = text_append_tail(&page->out, name_text(page, name), name_width);
	if (*place_text(page, name)) {
		text_pad(&page->out, name_width - used + 2);
		summary_page_style(page, SUMMARY_DIM);
		(void)text_append_tail(&page->out, text_string(&page->cell), names->place_width);
		summary_page_plain(page);
	}
	text_puts(&page->out, "\n");
}
