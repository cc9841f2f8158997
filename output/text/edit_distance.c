/* SPDX-License-Identifier: MIT */
#include "output/text/edit_distance.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Distances of a beginning of the left word to each beginning of the right one. */
struct row {
	unsigned to[EDIT_DISTANCE_MAX_BYTES + 1];
};

static int lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
}

static bool same(char a, char b)
{
	return lower(a) == lower(b);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned edit_distance(const char *left, const char *right)
{
	const size_t nr_left = strlen(left), nr_right = strlen(right);
	struct row before = {{0}}, previous, current = {{0}};

	if (nr_left > EDIT_DISTANCE_MAX_BYTES || nr_right > EDIT_DISTANCE_MAX_BYTES)
		return EDIT_DISTANCE_NONE;
	for (size_t k = 0; k <= nr_right; k++)
		current.to[k] = (unsigned)k;
	for (size_t i = 1; i <= nr_left; i++) {
		previous = current;
		current.to[0] = (unsigned)i;
		for (size_t k = 1; k <= nr_right; k++) {
			const bool is_same = same(left[i - 1], right[k - 1]);
			unsigned distance = previous.to[k - 1] + !is_same;

			distance = least(distance, previous.to[k] + 1);
			distance = least(distance, current.to[k - 1] + 1);
			if (i > 1 && k > 1 && same(left[i - 1], right[k - 2]) &&
			    same(left[i - 2], right[k - 1]))
				distance = least(distance, before.to[k - 2] + 1);
			current.to[k] = distance;
		}
		before = previous;
	}
	return current.to[nr_right];
}
