/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/progress.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

static const struct progress_figures figures = {
	.elapsed_ns = 12450 * NS_PER_MS,
	.active_ns = 12450 * NS_PER_MS,
	.nr_samples = 24840,
	.nr_ticks = 12425,
	.requested_hz = 1000,
	.lost_percent = 0.0812,
	.recorded_bytes = 1258291,
};

static void expect_line(const struct progress_figures *shown, size_t columns, const char *expected)
{
	struct text line = {0};

	progress_format(shown, columns, &line);
	cr_expect(eq(str, (char *)text_string(&line), (char *)expected), "%zu columns", columns);
	text_done(&line);
}

Test(progress, omits_figures_that_do_not_fit)
{
	static const struct {
		size_t columns;
		const char *line;
	} cases[] = {
		{0, "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost, 1.2 MiB"},
		{69, "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost, 1.2 MiB"},
		{68, "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost"},
		{60, "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost"},
		{59, "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz"},
		{46, "pysample: 12.4 s, 24840 samples"},
		{30, "pysample: 12.4 s"},
		{16, "pysample: 12.4 s"},
		{15, "pysample: 12.4 "},
		{1, "p"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_line(&figures, cases[i].columns, cases[i].line);
}

Test(progress, formats_figures_of_any_size)
{
	static const struct {
		struct progress_figures figures;
		const char *line;
	} cases[] = {
		{{.requested_hz = 100}, "pysample: 0.0 s, 0 samples, 0.00 of 100 Hz, 0.00 % lost"},
		{{.elapsed_ns = 59999 * NS_PER_MS,
		  .active_ns = 59999 * NS_PER_MS,
		  .nr_samples = 1,
		  .nr_ticks = 3,
		  .requested_hz = 0.05},
		 "pysample: 59.9 s, 1 sample, 0.05 of 0.05 Hz, 0.00 % lost"},
		{{.elapsed_ns = 60000 * NS_PER_MS,
		  .active_ns = 60000 * NS_PER_MS,
		  .nr_ticks = 6000000,
		  .requested_hz = 1e5,
		  .lost_percent = 100},
		 "pysample: 1 min 00 s, 0 samples, 100000 of 100000 Hz, 100.00 % lost"},
		{{.elapsed_ns = 7499000 * NS_PER_MS,
		  .active_ns = 7499000 * NS_PER_MS,
		  .requested_hz = 1e6,
		  .recorded_bytes = 1023},
		 "pysample: 2 h 04 min, 0 samples, 0.00 of 1000000 Hz, 0.00 % lost, 1023 B"},
		{{.requested_hz = 100, .recorded_bytes = 1024},
		 "pysample: 0.0 s, 0 samples, 0.00 of 100 Hz, 0.00 % lost, 1.0 KiB"},
		{{.requested_hz = 100, .recorded_bytes = 5ull << 50},
		 "pysample: 0.0 s, 0 samples, 0.00 of 100 Hz, 0.00 % lost, 5120.0 TiB"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_line(&cases[i].figures, 0, cases[i].line);
}

/* A byte that is in no line. */
static const char end_mark = '\001';

/*
 * Expect that everything written to one end comes out of the other. The kernel passes on what is
 * written to a terminal with a delay, so a mark is written last and awaited.
 */
static void expect_shown(int in, int out, const char *expected)
{
	char shown[4096];
	size_t length = 0;

	cr_assert(eq(sz, write(in, &end_mark, 1), 1));
	do {
		ssize_t nr_read = read(out, shown + length, sizeof(shown) - length);

		cr_assert(lt(long, 0, nr_read));
		length += (size_t)nr_read;
	} while (shown[length - 1] != end_mark);
	shown[length - 1] = '\0';
	cr_expect(eq(str, shown, (char *)expected));
}

Test(progress, pipe_gets_a_line_every_ten_seconds)
{
	struct progress progress;
	int ends[2];

	cr_assert(eq(int, pipe(ends), 0));
	progress_begin(&progress, ends[1], true, 0);
	cr_expect(not(progress_is_due(&progress, 9999 * NS_PER_MS)));
	cr_assert(progress_is_due(&progress, 10000 * NS_PER_MS));
	progress_show(&progress, &figures, 10001 * NS_PER_MS);
	cr_expect(not(progress_is_due(&progress, 20000 * NS_PER_MS)));
	cr_expect(progress_is_due(&progress, 20001 * NS_PER_MS));
	progress_end(&progress);
	cr_expect(not(progress_is_due(&progress, UINT64_MAX)));
	expect_shown(ends[1], ends[0],
		     "pysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost, "
		     "1.2 MiB\n");
	cr_expect(zero(int, fcntl(ends[1], F_GETFL) & O_NONBLOCK));
}

/* Open a terminal of this width and return both ends. */
static void open_terminal(unsigned short columns, int *ret_master, int *ret_slave)
{
	const struct winsize size = {.ws_row = 24, .ws_col = columns};

	cr_assert(eq(int, openpty(ret_master, ret_slave, NULL, NULL, &size), 0));
	cr_assert(eq(int, setenv("TERM", "xterm", 1), 0));
}

Test(progress, rewrites_the_line_of_a_terminal)
{
	struct progress_figures shorter = figures;
	struct progress progress;
	int master, slave;

	open_terminal(50, &master, &slave);
	progress_begin(&progress, slave, false, 0);
	cr_assert(progress_is_due(&progress, 500 * NS_PER_MS));
	progress_show(&progress, &figures, 500 * NS_PER_MS);
	expect_shown(slave, master, "\rpysample: 12.4 s, 24840 samples, 998 of 1000 Hz");
	shorter.nr_samples = 1;
	shorter.elapsed_ns = 1000 * NS_PER_MS;
	shorter.active_ns = 1000 * NS_PER_MS;
	progress_show(&progress, &shorter, 1000 * NS_PER_MS);
	expect_shown(slave, master, "\rpysample: 1.0 s, 1 sample, 12425 of 1000 Hz    ");
	progress_clear(&progress);
	expect_shown(slave, master, "\r                                                 \r");
	progress_clear(&progress);
	expect_shown(slave, master, "");
	progress_end(&progress);
	expect_shown(slave, master, "");
}

Test(progress, follows_a_terminal_that_narrows)
{
	const struct winsize narrow = {.ws_row = 24, .ws_col = 20};
	struct progress progress;
	int master, slave;

	open_terminal(200, &master, &slave);
	progress_begin(&progress, slave, false, 0);
	progress_show(&progress, &figures, 500 * NS_PER_MS);
	expect_shown(slave, master,
		     "\rpysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost, "
		     "1.2 MiB");
	cr_assert(eq(int, ioctl(slave, TIOCSWINSZ, &narrow), 0));
	progress_show(&progress, &figures, 1000 * NS_PER_MS);
	expect_shown(slave, master, "\rpysample: 12.4 s ");
	progress_end(&progress);
	expect_shown(slave, master, "\r                   \r");
}

Test(progress, shared_terminal_gets_no_line)
{
	struct progress progress;
	int master, slave;

	open_terminal(80, &master, &slave);
	progress_begin(&progress, slave, true, 0);
	cr_expect(not(progress_is_due(&progress, UINT64_MAX)));
	progress_end(&progress);
	expect_shown(slave, master, "");
}

/* A message replaces the current line. */
Test(progress, message_replaces_the_line)
{
	struct progress progress;
	int master, slave;

	open_terminal(80, &master, &slave);
	progress_begin(&progress, slave, false, 0);
	progress_show(&progress, &figures, 500 * NS_PER_MS);
	expect_shown(slave, master,
		     "\rpysample: 12.4 s, 24840 samples, 998 of 1000 Hz, 0.08 % lost, "
		     "1.2 MiB");
	progress_print_line(&progress, "100 % lost");
	expect_shown(slave, master,
		     "\r                                                                "
		     "       \rpysample: 100 % lost\r\n");
	progress_end(&progress);
	expect_shown(slave, master, "");
	progress_print_line(&progress, "nothing");
	expect_shown(slave, master, "");
}

Test(progress, dumb_terminal_gets_separate_lines)
{
	struct progress progress;
	int master, slave;

	open_terminal(80, &master, &slave);
	cr_assert(eq(int, setenv("TERM", "dumb", 1), 0));
	progress_begin(&progress, slave, false, 0);
	cr_expect(not(progress_is_due(&progress, 9999 * NS_PER_MS)));
	progress_end(&progress);
	cr_assert(eq(int, unsetenv("TERM"), 0));
	progress_begin(&progress, slave, false, 0);
	cr_expect(not(progress_is_due(&progress, 9999 * NS_PER_MS)));
	progress_end(&progress);
}

/* If nobody reads, output that does not fit is dropped and the call returns. */
Test(progress, does_not_wait_for_a_reader, .timeout = 60)
{
	struct progress progress;
	int master, slave, ends[2];

	open_terminal(80, &master, &slave);
	progress_begin(&progress, slave, false, 0);
	for (int i = 0; i < 10000; i++)
		progress_show(&progress, &figures, 500 * NS_PER_MS);
	progress_end(&progress);
	cr_assert(eq(int, pipe(ends), 0));
	progress_begin(&progress, ends[1], false, 0);
	for (int i = 0; i < 10000; i++)
		progress_show(&progress, &figures, 500 * NS_PER_MS);
	progress_end(&progress);
}
