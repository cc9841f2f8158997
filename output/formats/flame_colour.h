/* SPDX-License-Identifier: MIT */
/* The colours of a static flame graph. */
#pragma once

#include <stdint.h>

#include "output/profile/origin.h"

struct rgb {
	uint8_t red, green, blue;
};

/*
 * The colour of a frame: its hue tells the origin, as inferno's Python palette does (red,
 * aqua, yellow, …), its shade the name, so that neighbours differ and a name is alike everywhere.
 */
struct rgb flame_colour(enum origin origin, const char *name);

/*
 * In a comparison: white where nothing changed, ever redder for shares that grew, bluer for
 * those that shrank; change is -1 to 1.
 */
struct rgb flame_colour_of_change(double change);
