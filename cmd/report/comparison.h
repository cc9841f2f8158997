/* SPDX-License-Identifier: MIT */
/* Whether functions take more than they did: report --fail-above. */
#pragma once

#include <stdbool.h>

#include "cmd/rendering.h"

/*
 * Compare the shares of every function, its own and with what it calls, of all the time that
 * both sides show, and print those that grew by more than so many percentage points, the
 * worst first. 0 and *ret_grew, whether there are any; an error of replay().
 */
int comparison_print(const struct rendering *rendering, double max_points, bool *ret_grew);
