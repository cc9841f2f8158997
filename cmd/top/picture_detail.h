/* SPDX-License-Identifier: MIT */
/* The lower part of a picture: the callers, call tree and source lines of the selected row. */
#pragma once

#include "cmd/top/picture_input.h"
#include "cmd/top/screen.h"
#include "cmd/top/view.h"

/* Draw it into nr rows from a row on: both beside each other if there is room. */
void picture_detail_draw(const struct picture *picture, struct view *view, struct screen *screen,
			 unsigned row, unsigned nr);
