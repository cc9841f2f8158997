/* SPDX-License-Identifier: MIT */
/*
 * Shows a page in the user's browser (--open). A process of its own waits from the beginning of
 * the command on, because the rights that it needs are gone at the end (session_rights.h), and a
 * browser cannot be without those that we give up. Under sudo it is the user who called it. It
 * has a session of its own and none of our descriptors, so that nobody waits for it or is told
 * of its end; if we end without a page, so does it.
 *
 * The browser is xdg-open's if DISPLAY or WAYLAND_DISPLAY is set, else the program in BROWSER.
 * Source: xdg-open(1), sudo(8)
 */
#pragma once

#include <stdbool.h>

#include "cmd/outputs.h"

struct page_opener {
	int fd; /* leads to the process; -1: there is none */
};

#define PAGE_OPENER_NONE ((struct page_opener){.fd = -1})

/*
 * Start the process if the outputs ask for it and there is something to open a page with. Call it
 * before rights are dropped and threads are started. page_opener_stop() must follow in any case.
 */
void page_opener_start(struct page_opener *opener, const struct outputs *outputs);

/*
 * Open the page that was written, if the outputs ask for that and there is one. Prints a line that
 * names it unless is_quiet, and an error if it cannot be opened.
 */
void page_opener_show(struct page_opener *opener, const struct outputs *outputs, bool is_quiet);

void page_opener_stop(struct page_opener *opener);
