/* SPDX-License-Identifier: MIT */
/*
 * The progress of the sampling on stderr: on a terminal one line that is rewritten twice a
 * second, elsewhere a line every ten seconds.
 *
 * It never waits for the reader: what cannot be written at once is dropped. Between two updates
 * it costs one comparison a tick.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/text/text.h"

/* What is shown. */
struct progress_figures {
	uint64_t elapsed_ns; /* since the first tick */
	uint64_t active_ns;  /* the time in which ticks were due, of all processes */
	bool is_paused;
	uint64_t nr_samples;
	uint64_t nr_ticks;
	double requested_hz;
	double lost_percent;
	uint64_t recorded_bytes; /* size of the recording; 0: there is none */
};

/*
 * Append the line for figures, without a line end. It has only the parts that fit into columns,
 * but at least the first; 0 means no limit. ASCII without control characters.
 */
void progress_format(const struct progress_figures *figures, size_t columns, struct text *line);

/* Append the rate of nr_ticks and the requested rate: "998 of 1000 Hz". */
void progress_append_rate(uint64_t nr_ticks, uint64_t elapsed_ns, double requested_hz,
			  struct text *text);

/* Append a size with a unit: "812 B", "3.4 MiB". */
void progress_append_bytes(uint64_t bytes, struct text *text);

/* Private. All zero: nothing is shown, and no update is due. */
struct progress {
	uint64_t due_ns;   /* CLOCK_MONOTONIC of the next update */
	uint64_t pause_ns; /* between two updates; 0: nothing is shown */
	int fd;		   /* borrowed */
	int own_fd;	   /* the same file, opened not to wait for it; -1: not possible */
	bool rewrites;	   /* a terminal: the line is rewritten */
	size_t nr_drawn;   /* columns of the line that is shown now */
	bool is_paused;
	struct text line;
};

/*
 * Begin at now_ns. The descriptor fd, which is stderr except in tests, is borrowed until
 * progress_end(). shares_terminal: another program uses that terminal; then nothing is shown if
 * fd is a terminal.
 */
void progress_begin(struct progress *progress, int fd, bool shares_terminal, uint64_t now_ns);
void progress_end(struct progress *progress);

/* Whether an update is due. */
static inline bool progress_is_due(const struct progress *progress, uint64_t now_ns)
{
	return progress->pause_ns && now_ns >= progress->due_ns;
}

/* Show figures, and set the time of the next update. */
void progress_show(struct progress *progress, const struct progress_figures *figures,
		   uint64_t now_ns);

/*
 * Print a line, "pysample: " and the text, which has no control characters, in place of the one
 * that is shown. Does nothing if nothing is shown.
 */
void progress_print_line(struct progress *progress, const char *text);

/* Print a line if the sampling is paused or resumed. */
void progress_set_paused(struct progress *progress, bool is_paused);

/* Erase the line before something else is printed. */
void progress_clear(struct progress *progress);
