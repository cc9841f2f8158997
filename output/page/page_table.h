/* SPDX-License-Identifier: MIT */
/* What the page shows without JavaScript: the hottest functions as an HTML table. */
#pragma once

#include <stdio.h>

#include "output/profile/profile.h"

#define PAGE_TABLE_ROWS 20

/*
 * Write the table of the functions with the most self time, summed over lines. Returns 0;
 * -ENOMEM; the stream's error as negative errno.
 */
int page_table_write(const struct profile *profile, FILE *out);
