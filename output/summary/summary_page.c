/* SPDX-License-Identifier: MIT */
#include "output/summary/summary_page.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "output/text/text_width.h"
#include "procmem/clock.h"
#include "sampler/sample.h"

#define PLAIN	       "\033[0m"
#define MIN_TIME_WIDTH 7 /* "total s" */

void summary_page_done(struct summary_page *page)
{
	text_done(&page->cell);
	text_done(&page->out);
}

unsigned summary_page_columns(const struct summary_page *page)
{
	unsigned columns = page->artefact->options.columns;

	return columns && columns < SUMMARY_MIN_COLUMNS ? SUMMARY_MIN_COLUMNS : columns;
}

void summary_page_style(struct summary_page *page, const char *style)
{
	if (page->artefact->options.colour)
		text_puts(&page->out, style);
}

void summary_page_plain(struct summary_page *page)
{
	summary_page_style(page, PLAIN);
}

void summary_page_line(struct summary_page *page, const char *style)
{
	unsigned columns = summary_page_columns(page);

	summary_page_style(page, style);
	text_append_head(&page->out, text_string(&page->cell), columns ? columns : SIZE_MAX);
	summary_page_plain(page);
	text_puts(&page->out, "\n");
	text_clear(&page->cell);
}

static bool is_time(const struct summary_page *page)
{
	return profile_mode_is_time(profile_mode(page->artefact->profile));
}

/* Returns a weight as the page shows it: in seconds, or as a count. */
static double amount_of(const struct summary_page *page, uint64_t weight)
{
	return (double)weight / (is_time(page) ? NS_PER_S : 1);
}

void summary_page_fit_time(struct summary_page *page, uint64_t longest_ns)
{
	/* Milliseconds are noise in runs of hours. */
	page->time_decimals = longest_ns < 1000ull * NS_PER_S ? 3 : 1;
	if (!is_time(page))
		page->time_decimals = 0;
	page->time_width =
		snprintf(NULL, 0, "%.*f", page->time_decimals, amount_of(page, longest_ns));
	if (page->time_width < MIN_TIME_WIDTH)
		page->time_width = MIN_TIME_WIDTH;
}

size_t summary_page_time_columns(const struct summary_page *page)
{
	return (size_t)page->time_width + 2;
}

void summary_page_time(struct summary_page *page, uint64_t ns)
{
	text_printf(&page->out, "%*.*f  ", page->time_width, page->time_decimals,
		    amount_of(page, ns));
}

void summary_page_time_head(struct summary_page *page, const char *what)
{
	const char *unit = is_time(page) ? " s" : "";

	text_printf(&page->out, "%*s%s  ", page->time_width - (int)strlen(unit), what, unit);
}

void summary_page_amount(struct summary_page *page, uint64_t ns)
{
	if (is_time(page))
		text_printf(&page->cell, "%.3f s", amount_of(page, ns));
	else
		text_printf(&page->cell, "%" PRIu64 " %s", ns,
			    profile_mode_unit(profile_mode(page->artefact->profile)));
}

double summary_percent(uint64_t ns, uint64_t whole_ns)
{
	return whole_ns ? 100 * (double)ns / (double)whole_ns : 0;
}

void summary_page_share(struct summary_page *page, uint64_t ns, uint64_t whole_ns)
{
	text_printf(&page->out, "%6.1f  ", summary_percent(ns, whole_ns));
}
