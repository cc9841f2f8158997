/* SPDX-License-Identifier: MIT */
/*
 * `pysample core`, in this process, on a core in a descriptor, of nothing but the core: whatever
 * files it names, none is found.
 */
#pragma once

/* With which options: text, JSON, both with variables, text with C frames. */
enum { NR_CORE_REPORTS = 5 };

/*
 * Report on the core that fd has, which stays open, to stdout; kind: below NR_CORE_REPORTS.
 * Returns the exit status of the command.
 */
int core_report(int fd, unsigned int kind);

/* Have what the command complains of go nowhere; sanitizers still write to the terminal. */
void core_report_quietly(void);
