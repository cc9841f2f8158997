/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/progress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "procmem/clock.h"
#include "sampler/sample.h"

#define TERMINAL_PAUSE_NS (NS_PER_S / 2)
#define OTHER_PAUSE_NS	  (10ull * NS_PER_S)

/* Assumed for a terminal that does not report its width. */
enum { USUAL_COLUMNS = 80 };

/* What a terminal may echo after the line: a ^C or ^Z that was typed. */
enum { ECHO_COLUMNS = 2 };

/*
 * The parts of the line, in this order. A part that does not fit is left out, with all that
 * follow.
 */
enum part { PART_ELAPSED, PART_PAUSED, PART_SAMPLES, PART_RATE, PART_LOST, PART_BYTES, NR_PARTS };

static void append_elapsed(uint64_t elapsed_ns, struct text *line)
{
	uint64_t elapsed_s = elapsed_ns / NS_PER_S;

	if (elapsed_s < 60)
		text_printf(line, "%" PRIu64 ".%u s", elapsed_s,
			    (unsigned)(elapsed_ns / (NS_PER_S / 10) % 10));
	else if (elapsed_s < 3600)
		text_printf(line, "%" PRIu64 " min %02" PRIu64 " s", elapsed_s / 60,
			    elapsed_s % 60);
	else
		text_printf(line, "%" PRIu64 " h %02" PRIu64 " min", elapsed_s / 3600,
			    elapsed_s / 60 % 60);
}

/* A low rate has decimals, as the requested rate may have. */
void progress_append_rate(uint64_t nr_ticks, uint64_t elapsed_ns, double requested_hz,
			  struct text *text)
{
	double elapsed_s = (double)elapsed_ns / NS_PER_S;
	double rate_hz = elapsed_s > 0 ? (double)nr_ticks / elapsed_s : 0;

	text_printf(text, "%.*f of %.10g Hz", rate_hz < 10 ? 2 : 0, rate_hz, requested_hz);
}

void progress_append_bytes(uint64_t bytes, struct text *text)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double amount = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		text_printf(text, "%" PRIu64 " B", bytes);
		return;
	}
	for (; amount >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		amount /= 1024;
	text_printf(text, "%.1f %s", amount, units[unit]);
}

static void append_part(enum part part, const struct progress_figures *figures, struct text *line)
{
	switch (part) {
	case PART_ELAPSED:
		append_elapsed(figures->elapsed_ns, line);
		break;
	case PART_PAUSED:
		if (figures->is_paused)
			text_puts(line, ", paused");
		break;
	case PART_SAMPLES:
		text_printf(line, ", %" PRIu64 " sample%s", figures->nr_samples,
			    text_plural(figures->nr_samples));
		break;
	case PART_RATE:
		text_puts(line, ", ");
		progress_append_rate(figures->nr_ticks, figures->active_ns, figures->requested_hz,
				     line);
		break;
	case PART_LOST:
		text_printf(line, ", %.2f %% lost", figures->lost_percent);
		break;
	case PART_BYTES:
	case NR_PARTS:
		if (figures->recorded_bytes) {
			text_puts(line, ", ");
			progress_append_bytes(figures->recorded_bytes, line);
		}
		break;
	}
}

void progress_format(const struct progress_figures *figures, size_t columns, struct text *line)
{
	size_t begin = line->length;

	text_puts(line, "pysample: ");
	for (enum part part = 0; part < NR_PARTS; part++) {
		size_t before = line->length;

		append_part(part, figures, line);
		if (!columns || line->length - begin <= columns)
			continue;
		text_cut(line, part == PART_ELAPSED ? begin + columns : before);
		return;
	}
}

static size_t terminal_columns(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

/* Width of a line that does not wrap, whatever is typed after it. */
static size_t line_columns(int fd)
{
	size_t columns = terminal_columns(fd);

	return columns > ECHO_COLUMNS + 1 ? columns - ECHO_COLUMNS - 1 : 1;
}

/* Whether fd is a terminal on which a line can be rewritten. */
static bool can_rewrite(int fd)
{
	const char *type = getenv("TERM");

	return isatty(fd) && type && *type && strcmp(type, "dumb") != 0;
}

/* Whether the shell or another job has the terminal now. */
static bool in_background(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group > 0 && group != getpgrp();
}

/* Whether writing to the terminal from the background stops the writer: "stty tostop". */
static bool stops_background(int fd)
{
	struct termios settings;

	return in_background(fd) && tcgetattr(fd, &settings) == 0 && (settings.c_lflag & TOSTOP);
}

/*
 * Open the file of fd again, so that O_NONBLOCK affects only our writes, not those of everybody
 * who shares the descriptor. Returns -1 if it cannot be opened (a terminal that su(1) left to
 * another user, a socket), or if writes to it never wait and must be complete.
 */
static int reopen_nonblocking(int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];
	struct stat status;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &status) != 0 ||
	    !(S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Write the line, or as much as can be written without waiting. */
static void put_line(struct progress *progress)
{
	struct pollfd ready = {.fd = progress->fd, .events = POLLOUT};
	const char *bytes = text_string(&progress->line);
	ssize_t length = 0;

	if (progress->own_fd >= 0)
		length = write(progress->own_fd, bytes, progress->line.length);
	else if (poll(&ready, 1, 0) > 0 && (ready.revents & POLLOUT))
		length = write(progress->fd, bytes, progress->line.length);
	(void)length;
}

void progress_begin(struct progress *progress, int fd, bool shares_terminal, uint64_t now_ns)
{
	*progress = (struct progress){.fd = fd, .own_fd = -1};
	if (shares_terminal && isatty(fd))
		return;
	progress->rewrites = can_rewrite(fd);
	progress->pause_ns = progress->rewrites ? TERMINAL_PAUSE_NS : OTHER_PAUSE_NS;
	progress->due_ns = now_ns + progress->pause_ns;
	progress->own_fd = reopen_nonblocking(fd);
}

void progress_end(struct progress *progress)
{
	if (!progress->pause_ns)
		return;
	progress_clear(progress);
	if (progress->own_fd >= 0)
		(void)close(progress->own_fd);
	text_done(&progress->line);
	*progress = (struct progress){0};
}

/* Write the line over the one that is shown. */
static void rewrite(struct progress *progress, const struct progress_figures *figures)
{
	size_t columns = line_columns(progress->fd);
	size_t nr_drawn;

	text_puts(&progress->line, "\r");
	progress_format(figures, columns, &progress->line);
	nr_drawn = progress->line.length - 1;
	if (progress->nr_drawn > columns)
		progress->nr_drawn = columns;
	if (nr_drawn < progress->nr_drawn)
		text_pad(&progress->line, progress->nr_drawn - nr_drawn);
	else
		progress->nr_drawn = nr_drawn;
	put_line(progress);
}

void progress_show(struct progress *progress, const struct progress_figures *figures,
		   uint64_t now_ns)
{
	progress->due_ns = now_ns + progress->pause_ns;
	text_clear(&progress->line);
	if (!progress->rewrites) {
		progress_format(figures, 0, &progress->line);
		text_puts(&progress->line, "\n");
		put_line(progress);
	} else if (!in_background(progress->fd)) {
		rewrite(progress, figures);
	}
}

void progress_clear(struct progress *progress)
{
	size_t columns = line_columns(progress->fd);
	size_t nr_drawn = progress->nr_drawn;

	progress->nr_drawn = 0;
	if (!nr_drawn || in_background(progress->fd))
		return;
	text_clear(&progress->line);
	text_puts(&progress->line, "\r");
	text_pad(&progress->line, (nr_drawn < columns ? nr_drawn : columns) + ECHO_COLUMNS);
	text_puts(&progress->line, "\r");
	put_line(progress);
}

void progress_set_paused(struct progress *progress, bool is_paused)
{
	if (progress->is_paused == is_paused)
		return;
	progress->is_paused = is_paused;
	progress_print_line(progress, is_paused
					      ? "SIGUSR2: sampling is paused until the next SIGUSR2"
					      : "SIGUSR2: sampling is resumed");
}

void progress_print_line(struct progress *progress, const char *text)
{
	if (!progress->pause_ns || stops_background(progress->fd))
		return;
	progress_clear(progress);
	text_clear(&progress->line);
	text_printf(&progress->line, "pysample: %s\n", text);
	put_line(progress);
}
