/* SPDX-License-Identifier: MIT */
/* How far a word is from another, to suggest names to people who have mistyped one. */
#pragma once

#include <limits.h>

/* Longer words have no distance: it takes their lengths' product of steps. */
enum { EDIT_DISTANCE_MAX_BYTES = 64 };

#define EDIT_DISTANCE_NONE UINT_MAX

/*
 * Returns how many bytes to insert, remove or replace, or neighbours to swap, turn one word into
 * the other; the case of ASCII letters is ignored. EDIT_DISTANCE_NONE if one is too long.
 *
 * Source: the "optimal string alignment" distance, Damerau 1964.
 */
unsigned edit_distance(const char *left, const char *right);
