/* SPDX-License-Identifier: MIT */
/*
 * How far the sampling is, on stderr: on a terminal one line that is written anew twice a
 * second, anywhere else a line every ten seconds.
 *
 * It never waits for whoever reads that: what cannot be written at once is left out. Between two
 * updates it costs a comparison a tick.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/text/text.h"

/* What there is to tell. */
struct progress_figures {
	uint64_t elapsed_ns; /* since the first tick */
	uint64_t nr_samples;
	uint64_t nr_ticks;
	double asked_hz;
	double lost_percent;
	uint64_t recorded_bytes; /* of the recording; 0: there is none */
};

/*
 * Append the line for figures, without an end: as many of its parts as have room in so many
 * columns, at least the first; 0: all. ASCII without control characters.
 */
void progress_format(const struct progress_figures *figures, size_t columns, struct text *line);

/* Append the rate of so many ticks and that asked for: "998 of 1000 Hz". */
void progress_append_rate(uint64_t nr_ticks, uint64_t elapsed_ns, double asked_hz,
			  struct text *text);

/* Append a size as people read it: "812 B", "3.4 MiB". */
void progress_append_bytes(uint64_t bytes, struct text *text);

/* Private. All zero it shows nothing, which is never due. */
struct progress {
	uint64_t due_ns;   /* CLOCK_MONOTONIC; of the next update */
	uint64_t pause_ns; /* between two updates; 0: it shows nothing */
	int fd;		   /* borrowed */
	int own_fd;	   /* the same file opened anew, not to wait for it; -1: that cannot be */
	bool rewrites;	   /* a terminal's line */
	size_t nr_drawn;   /* columns of the line that stands there now */
	struct text line;
};

/*
 * Begin, at now_ns, with the descriptor fd, stderr but for tests, borrowed until
 * progress_end(). shares_terminal: another program uses that terminal, so that no line
 * of ours may stand there; then nothing is shown on one.
 */
void progress_begin(struct progress *progress, int fd, bool shares_terminal, uint64_t now_ns);
void progress_end(struct progress *progress);

/* Whether an update is due. */
static inline bool progress_is_due(const struct progress *progress, uint64_t now_ns)
{
	return progress->pause_ns && now_ns >= progress->due_ns;
}

/* Update. */
void progress_show(struct progress *progress, const struct progress_figures *figures,
		   uint64_t now_ns);

/*
 * Print a line of its own, in place of the one that stands there: "pysample: " and the text,
 * which has no control characters. Nothing if nothing is shown.
 */
void progress_tell(struct progress *progress, const char *text);

/* Take the line away, because something else is about to be printed. */
void progress_clear(struct progress *progress);
