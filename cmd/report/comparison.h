/* SPDX-License-Identifier: MIT */
/* Whether functions take a larger share of the time than before: report --fail-above. */
#pragma once

#include <stdbool.h>

#include "cmd/rendering.h"

/*
 * Compare the share of each function, its own and with its callees, of all the time that a side
 * shows. Prints those that grew by more than max_points percentage points, the worst first;
 * *ret_grew says whether there are any. Returns 0, or an error of replay().
 */
int comparison_print(const struct rendering *rendering, double max_points, bool *ret_grew);
