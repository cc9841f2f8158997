/* SPDX-License-Identifier: MIT */
/* The colours of a static flame graph. */
#pragma once

#include <stdint.h>

#include "output/profile/origin.h"

struct rgb {
	uint8_t red, green, blue;
};

/*
 * Returns the colour of a frame. The hue is that of its origin, as in inferno's Python palette
 * (red, aqua, yellow, …). The shade depends on the name, so that neighbours differ and equal
 * names match.
 */
struct rgb flame_colour(enum origin origin, const char *name);

/*
 * Returns the colour in a comparison: white for no change, redder for shares that grew, bluer for
 * those that shrank. change is between -1 and 1.
 */
struct rgb flame_colour_of_change(double change);
