/* SPDX-License-Identifier: MIT */
/*
 * Run `pysample core` in this process on a core given as a descriptor. Uses nothing but the core:
 * files that it names are not found.
 */
#pragma once

/* The sets of options: text, JSON, both with variables, text with C frames. */
enum { NR_CORE_REPORTS = 5 };

/*
 * Write a report on the core in fd, which stays open, to stdout. kind is below NR_CORE_REPORTS.
 * Returns the command's exit status.
 */
int damaged_core_report(int fd, unsigned int kind);

/* Discard the command's error messages. Sanitizers still write to the terminal. */
void damaged_core_report_quietly(void);
