/* SPDX-License-Identifier: MIT */
/* How the parts of a picture show shares of time. */
#pragma once

#include "cmd/top/screen.h"

/* Returns the style of a share of own time: from 20 % on hot, from 5 % on warm. */
static inline enum screen_style share_style(double share)
{
	return share >= 0.20   ? STYLE_HOT
	       : share >= 0.05 ? STYLE_WARM
	       : share > 0     ? STYLE_PLAIN
			       : STYLE_DIM;
}

/* Draw a share as a percentage in width columns. */
static inline void share_draw(struct screen *screen, unsigned row, enum screen_style style,
			      int width, double share)
{
	screen_printf(screen, row, style, "%*.1f", width, share * 100);
}
