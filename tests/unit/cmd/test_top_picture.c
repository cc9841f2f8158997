/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/top/picture.h"
#include "cmd/top/saved_name.h"
#include "cmd/top/terminal_description.h"
#include "output/text/text_width.h"

#define SECOND_NS ((uint64_t)NS_PER_S)

static const struct function functions[] = {
	{0, 10, "main", "/srv/app.py", FUNCTION_PYTHON},
	{1, 20, "Shop.\033[31mevil", "/srv/app.py", FUNCTION_PYTHON},
	{2, 30, "a_name_that_is_longer_than_the_column_that_it_has_on_a_narrow_screen",
	 "/srv/a/folder/with/a/long/name/lib.py", FUNCTION_PYTHON},
};
/* What a damaged process may have. */
static const struct function hostile[] = {
	{3, INT32_MIN, "東京都渋谷区東京都渋谷区東京都渋谷区", "/srv/app.py", FUNCTION_PYTHON},
	{4, INT32_MAX, "far", "/srv/app.py", FUNCTION_PYTHON},
};
static const struct sample_thread main_thread = {.id = 0, .tid = 100, .name = "MainThread"};

/* A process with a main thread, and what is drawn of it. */
struct fixture {
	struct live *live;
	struct run run;
	struct view view;
	struct screen screen;
	struct source_lines sources;
};

static void push_line(struct live *live, uint64_t second, const struct function *inner,
		      int32_t line)
{
	const struct frame frames[] = {{.function = &functions[0], .line = 11},
				       {.function = inner, .line = line}};
	const struct sample sample = {
		.time_ns = second * SECOND_NS,
		.wall_ns = SECOND_NS,
		.thread = &main_thread,
		.frames = frames,
		.nr_frames = 2,
		.flags = SAMPLE_HOLDS_GIL,
	};

	cr_assert(eq(int, live_sink(live)->ops->sample(live_sink(live), &sample), 0));
}

static void push(struct live *live, uint64_t second, const struct function *inner)
{
	push_line(live, second, inner, inner->first_line + 1);
}

static void fixture_init(struct fixture *fixture)
{
	const struct live_options options = {.mode = PROFILE_BUSY, .interval_ns = SECOND_NS / 100};

	*fixture = (struct fixture){
		.live = live_create(&options),
		.run = {.info = {.target.pid = 7,
				 .python.version = "3.15.2",
				 .engine = "bpf",
				 .requested_hz = 100},
			.stats = {.ticks = 300, .active_ns = 3 * SECOND_NS, .samples = 3}},
	};
	for (uint64_t second = 1; second <= 3; second++)
		push(fixture->live, 10 + second, &functions[second == 1 ? 1 : 2]);
}

static void fixture_done(struct fixture *fixture)
{
	screen_done(&fixture->screen);
	source_lines_done(&fixture->sources);
	live_destroy(fixture->live);
}

/* Draw a screen, and check that it is whole: no line is too wide or has control characters. */
static void draw(struct fixture *fixture, unsigned columns, unsigned rows)
{
	struct live_figures figures;
	struct live_detail detail = {.nr_tree = 0};
	struct picture picture = {
		.run = &fixture->run,
		.live = fixture->live,
		.figures = &figures,
		.sources = &fixture->sources,
		.name = "python3 app.py",
		.message = "",
		.cpu_share = 0.5,
		.nr_cpus = 2,
		.elapsed_ns = 3723 * SECOND_NS,
	};

	screen_done(&fixture->screen);
	cr_assert(eq(int, screen_init(&fixture->screen, rows, columns), 0));
	cr_assert(
		eq(int,
		   live_figures_init(&figures, live_profile(fixture->live), fixture->view.by_line),
		   0));
	view_arrange(&fixture->view, &figures);
	if (fixture->view.has_detail) {
		cr_assert(eq(int,
			     live_detail_init(&detail, &figures,
					      &figures.rows[fixture->view.rows.selected],
					      view_side(&fixture->view)),
			     0));
		picture.detail = &detail;
	}
	picture_draw(&picture, &fixture->view, &fixture->screen);
	for (unsigned i = 0; i < rows; i++) {
		const struct screen_line *line = &fixture->screen.lines[i];

		cr_expect(text_width(text_string(&line->text)) <= columns, "%s",
			  text_string(&line->text));
		cr_expect(eq(sz, text_width(text_string(&line->text)), line->columns));
		cr_expect(strchr(text_string(&line->text), '\033') == NULL);
		cr_expect(eq(int, line->text.error, 0));
		if (line->nr_spans)
			cr_expect(eq(sz, line->spans[line->nr_spans - 1].end, line->text.length));
	}
	live_detail_done(&detail);
	live_figures_done(&figures);
}

static void expect_line(const struct fixture *fixture, unsigned row, const char *expected)
{
	cr_expect(eq(str, (char *)text_string(&fixture->screen.lines[row].text), (char *)expected));
}

static void expect_part(const struct fixture *fixture, unsigned row, const char *part)
{
	const char *const line = text_string(&fixture->screen.lines[row].text);

	cr_expect(strstr(line, part) != NULL, "%s: %s", line, part);
}

Test(top_picture, has_80_columns)
{
	struct fixture fixture;

	fixture_init(&fixture);
	draw(&fixture, 80, 24);
	expect_line(&fixture, 0,
		    " python3 app.py · pid 7 · Python 3.15.2                                "
		    " 1:02:03 ");
	expect_line(
		&fixture, 1,
		"CPU[||||           50.0%] GIL[||||||||||||||||100%] GC[                 0.0%]");
	expect_line(&fixture, 2, "Threads 1: 1 busy, 0 idle");
	expect_line(&fixture, 3,
		    "Rate 100 of 100 Hz, bpf, 0.00% lost   Shown busy threads; 0 idle hidden (i)");
	expect_line(&fixture, 5, "    last 3 s       since the start");
	expect_line(
		&fixture, 7,
		" 66.7   66.7  66.7   66.7     2.00  a_name_that_is_longer_tha…  …/name/lib.py:30");
	expect_line(
		&fixture, 9,
		"  0.0  100.0   0.0  100.0     0.00  main                        /srv/app.py:10");
	fixture_done(&fixture);
}

Test(top_picture, has_200_columns)
{
	struct fixture fixture;

	fixture_init(&fixture);
	(void)view_press(&fixture.view, VIEW_KEY_DOWN);
	draw(&fixture, 200, 40);
	(void)view_press(&fixture.view, VIEW_KEY_ENTER);
	draw(&fixture, 200, 40);
	expect_part(&fixture, 7,
		    "a_name_that_is_longer_than_the_column_that_it_has_on_a_narrow_screen  "
		    "/srv/a/folder/with/a/long/name/lib.py:30");
	cr_expect(strncmp(text_string(&fixture.screen.lines[17].text),
			  " Shop.\\x1b[31mevil · last seconds", 33) == 0,
		  "%s", text_string(&fixture.screen.lines[17].text));
	expect_part(&fixture, 18, "called by");
	expect_part(&fixture, 18, "own%  total%   line");
	expect_part(&fixture, 19, "33.3        main");
	expect_part(&fixture, 19, "33.3    33.3     21");
	fixture_done(&fixture);
}

/* Whatever the size, the view and the numbers, nothing is outside the screen. */
Test(top_picture, fits_any_size)
{
	static const int keys[] = {VIEW_KEY_ENTER, VIEW_KEY_TAB, 't', 't', '?', ' ', 'l', '/', 'x'};
	struct fixture fixture;

	fixture_init(&fixture);
	for (int i = 0; i < 20; i++)
		push_line(fixture.live, 14, &hostile[i % 2],
			  i < 4 ? INT32_MIN + i : INT32_MAX - i * i * 10);
	for (size_t key = 0; key < sizeof(keys) / sizeof(*keys); key++) {
		for (unsigned columns = 1; columns <= 250; columns += columns < 130 ? 1 : 30)
			draw(&fixture, columns, 1 + columns % 30);
		(void)view_press(&fixture.view, keys[key]);
		draw(&fixture, 80, 24);
	}
	fixture_done(&fixture);
}

/* A gap between lines of source is shown by its ends, wherever the target says that lines are. */
Test(top_picture, shows_source)
{
	static const struct {
		int32_t first_line, line;
		const char *rows[7];
	} cases[] = {
		{10, 60, {"10  # 10", "11  # 11", "…", "58  # 58", "59  # 59", "60  # 60"}},
		{58, 60, {"58  # 58", "59  # 59", "60  # 60"}},
		{60, 58, {"58  # 58"}},
		{0, 60, {"60  # 60"}},
		{INT32_MIN + 2, 60, {"60  # 60"}},
		{10, INT32_MIN, {"?"}},
		{10, INT32_MAX, {"2147483647"}},
	};
	char path[] = "/tmp/test_top_picture_XXXXXX.py";
	const int fd = mkstemps(path, 3);

	cr_assert(fd >= 0);
	cr_assert(eq(int, fchmod(fd, 0644), 0));
	for (int line = 1; line <= 100; line++)
		(void)dprintf(fd, "# %d\n", line);
	(void)close(fd);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct function function = {3, cases[i].first_line, "f", path,
						  FUNCTION_PYTHON};
		struct fixture fixture;

		fixture_init(&fixture);
		for (int count = 0; count < 9; count++)
			push_line(fixture.live, 14, &function, cases[i].line);
		(void)view_press(&fixture.view, VIEW_KEY_TAB);
		draw(&fixture, 80, 50);
		for (unsigned row = 0; cases[i].rows[row]; row++)
			expect_part(&fixture, 23 + row, cases[i].rows[row]);
		fixture_done(&fixture);
	}
	(void)unlink(path);
}

Test(top_picture, lists_settle)
{
	static const struct {
		uint32_t selected, first;
		int32_t move;
		uint32_t nr, nr_shown, expected_selected, expected_first;
	} cases[] = {
		{0, 0, 0, 0, 5, 0, 0},	   {0, 0, 1, 3, 5, 1, 0},	{0, 0, -1, 3, 5, 0, 0},
		{0, 0, 99, 30, 5, 29, 25}, {29, 25, -4, 30, 5, 25, 25}, {29, 25, -5, 30, 5, 24, 24},
		{29, 25, 0, 10, 5, 9, 5},  {9, 5, 0, 3, 5, 2, 0},	{3, 0, 0, 10, 0, 3, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct view_list list = {.selected = cases[i].selected,
					 .first = cases[i].first,
					 .move = cases[i].move};

		view_list_settle(&list, cases[i].nr, cases[i].nr_shown);
		cr_expect(eq(u32, list.selected, cases[i].expected_selected), "%zu", i);
		cr_expect(eq(u32, list.first, cases[i].expected_first), "%zu", i);
	}
}

Test(top_picture, filter_is_edited)
{
	struct view view = {.sort = VIEW_BY_RECENT_OWN};

	(void)view_press(&view, '/');
	(void)view_press(&view, 'q');
	(void)view_press(&view, 0xc3);
	(void)view_press(&view, 0xa9);
	cr_expect(eq(str, view.filter, (char *)"qé"));
	(void)view_press(&view, VIEW_KEY_DELETE);
	cr_expect(eq(str, view.filter, (char *)"q"));
	for (int i = 0; i < 2 * VIEW_FILTER_MAX_BYTES; i++)
		(void)view_press(&view, 'x');
	cr_expect(eq(sz, strlen(view.filter), VIEW_FILTER_MAX_BYTES - 1));
	cr_expect(eq(int, view_press(&view, VIEW_KEY_ENTER), VIEW_DRAW));
	cr_expect(eq(int, view_press(&view, 'q'), VIEW_QUIT));
	(void)view_press(&view, '\\');
	cr_expect(eq(str, view.filter, (char *)""));
}

Test(top_picture, saved_names_are_plain)
{
	static const struct {
		const char *process, *expected;
	} cases[] = {
		{"python3 app.py", "app.py"},
		{"gunicorn shop:wsgi", "shop_wsgi"},
		{"python3 /srv/a b/../x y.py", "y.py"},
		{"python3 ../..", "python"},
		{"", "python"},
		{"python3 -c", "c"},
		{"python3 a;rm -rf\n$(x)%n", "rf___x__n"},
		{"python3 a_name_of_more_characters_than_fit.py",
		 "a_name_of_more_characters_than_"},
	};
	char pattern[SAVED_NAME_MAX_BYTES], expected[SAVED_NAME_MAX_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		saved_name_format(cases[i].process, &pattern);
		(void)snprintf(expected, sizeof(expected), "%s-%%p-%%t.pysample",
			       cases[i].expected);
		cr_expect(eq(str, pattern, expected));
	}
}

Test(top_picture, knows_common_terminals)
{
	static const struct {
		const char *term, *name;
	} cases[] = {
		{"xterm", "xterm-256color"},
		{"xterm-kitty", "xterm-256color"},
		{"alacritty", "xterm-256color"},
		{"tmux-256color", "screen-256color"},
		{"screen", "screen-256color"},
		{"linux", "linux"},
		{"vt220", "vt100"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct terminal_description *found = terminal_description_find(cases[i].term);

		cr_assert(found != NULL);
		cr_expect(eq(str, (char *)found->name, (char *)cases[i].name));
	}
	cr_expect(terminal_description_find("dumb") == NULL);
}
