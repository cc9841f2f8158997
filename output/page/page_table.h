/* SPDX-License-Identifier: MIT */
/* What the page shows without JavaScript: the functions with the most time, as an HTML table. */
#pragma once

#include <stdio.h>

#include "output/profile/profile.h"

#define PAGE_TABLE_ROWS 20

/*
 * Write the table of the functions with the most time of their own, whatever lines the
 * profile's rows are. 0; -ENOMEM; the stream's error as negative errno.
 */
int page_table_write(const struct profile *profile, FILE *out);
