/* SPDX-License-Identifier: MIT */
/*
 * All that pysample says of a core file, of nothing but the file: no other is opened, whatever
 * the core names.
 */
#pragma once

#include <stdio.h>

/*
 * Find the interpreter of the core that fd has, which is closed, and write its threads to out
 * as text and as JSON. 0, or the error that a user would be told of: any of procmem/memory.h.
 */
int core_report(int fd, FILE *out);
