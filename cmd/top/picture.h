/* SPDX-License-Identifier: MIT */
/*
 * Draws what a view shows of a running process onto a screen. It depends on its arguments alone,
 * and on the source files that may be shown.
 */
#pragma once

#include "cmd/top/picture_input.h"
#include "cmd/top/screen.h"
#include "cmd/top/view.h"

/* Draw the whole screen, and settle the lists of the view. Errors are kept in its texts. */
void picture_draw(const struct picture *picture, struct view *view, struct screen *screen);

/* For plain text: the rows that a screen has with nr functions, and drawing them and the header. */
unsigned picture_plain_rows(uint32_t nr);
void picture_draw_plain(const struct picture *picture, struct view *view, struct screen *screen);
