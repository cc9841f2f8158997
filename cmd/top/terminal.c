/* SPDX-License-Identifier: MIT */
#define NCURSES_WIDECHAR 1
#include "cmd/top/terminal.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/signals.h"
#include "cmd/top/keys.h"
#include "cmd/top/terminfo.h"

/* The key that has a screen drawn anew which other programs have written to. */
enum { CTRL_L = 'L' & 0x1f };

/* How long ncurses waits for the rest of a key's sequence after an escape. */
enum { ESCAPE_DELAY_MS = 25 };

struct terminal {
	SCREEN *curses;
	struct signals_terminal before; /* how it is put back */
	chtype attributes[NR_SCREEN_STYLES];
};

/* Opening. */

/* Keep how the terminal is now. Returns 0 or a negative errno. */
static int keep_modes(struct signals_terminal *terminal)
{
	static const char *const sequences[] = {"sgr0", "op", "rmkx", "cnorm", "cr", "el", "rmcup"};

	terminal->fd = STDOUT_FILENO;
	if (tcgetattr(STDOUT_FILENO, &terminal->modes) != 0)
		return -errno;
	for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
		terminfo_append(sequences[i], terminal->text, sizeof(terminal->text),
				&terminal->nr_bytes);
	return 0;
}

/* Colours of 256 that are legible on a light and on a dark background. */
enum {
	RED_256 = 160,
	ORANGE_256 = 172,
	GREEN_256 = 34,
	GREY_256 = 244,
	WHITE_256 = 231,
	BLUE_256 = 25,
	TEAL_256 = 30
};

enum { PAIR_HOT = 1, PAIR_WARM, PAIR_GOOD, PAIR_DIM, PAIR_BAR, PAIR_SELECTED };

/* Returns the attribute of a pair of colours. */
static chtype make_pair(short pair, short foreground, short background)
{
	return init_pair(pair, foreground, background) == OK ? COLOR_PAIR(pair) : A_NORMAL;
}

static void use_colours(chtype *attributes)
{
	const bool has_many = COLORS >= 256;

	attributes[STYLE_HOT] =
		A_BOLD | make_pair(PAIR_HOT, has_many ? (short)RED_256 : (short)COLOR_RED, -1);
	attributes[STYLE_ALERT] = attributes[STYLE_HOT];
	attributes[STYLE_WARM] =
		make_pair(PAIR_WARM, has_many ? (short)ORANGE_256 : (short)COLOR_MAGENTA, -1);
	attributes[STYLE_GOOD] =
		make_pair(PAIR_GOOD, has_many ? (short)GREEN_256 : (short)COLOR_GREEN, -1);
	if (has_many)
		attributes[STYLE_DIM] = make_pair(PAIR_DIM, GREY_256, -1);
	attributes[STYLE_BAR] =
		has_many ? make_pair(PAIR_BAR, WHITE_256, BLUE_256)
			 : make_pair(PAIR_BAR, (short)COLOR_WHITE, (short)COLOR_BLUE);
	attributes[STYLE_BAR_BOLD] = attributes[STYLE_BAR] | A_BOLD | A_UNDERLINE;
	attributes[STYLE_SELECTED] =
		has_many ? make_pair(PAIR_SELECTED, WHITE_256, TEAL_256)
			 : make_pair(PAIR_SELECTED, (short)COLOR_BLACK, (short)COLOR_CYAN);
}

/* Choose the attributes of the styles. NO_COLOR: https://no-color.org */
static void choose_attributes(struct terminal *terminal)
{
	static const chtype plain[NR_SCREEN_STYLES] = {
		[STYLE_PLAIN] = A_NORMAL,
		[STYLE_DIM] = A_DIM,
		[STYLE_BOLD] = A_BOLD,
		[STYLE_BAR] = A_REVERSE,
		[STYLE_BAR_BOLD] = A_REVERSE | A_BOLD | A_UNDERLINE,
		[STYLE_SELECTED] = A_REVERSE,
		[STYLE_HOT] = A_BOLD,
		[STYLE_WARM] = A_NORMAL,
		[STYLE_GOOD] = A_NORMAL,
		[STYLE_ALERT] = A_BOLD,
	};
	const char *const no_color = getenv("NO_COLOR");

	memcpy(terminal->attributes, plain, sizeof(plain));
	if ((no_color && *no_color) || !has_colors() || start_color() != OK ||
	    use_default_colors() != OK)
		return;
	use_colours(terminal->attributes);
}

/* Make Ctrl-S a key: if it stopped the output, the sampling would wait for it, too. */
static void stop_flow_control(void)
{
	struct termios modes;

	if (tcgetattr(STDIN_FILENO, &modes) != 0)
		return;
	modes.c_iflag &= ~(tcflag_t)IXON;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0)
		(void)def_prog_mode();
}

/* Begin with curses. Returns 0; -ENOMEM with a message. */
static int begin_curses(struct terminal *terminal, struct message *reterr)
{
	/* Everything that is drawn is UTF-8, whatever the locale is. LC_NUMERIC must stay "C". */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		(void)setlocale(LC_CTYPE, "");
	terminal->curses = newterm(NULL, stdout, stdin);
	if (!terminal->curses) {
		message_set(reterr, "the terminal could not be set up: use --batch");
		return -ENOMEM;
	}
	(void)set_escdelay(ESCAPE_DELAY_MS);
	(void)cbreak();
	stop_flow_control();
	(void)noecho();
	(void)nonl();
	(void)nodelay(stdscr, true);
	(void)keypad(stdscr, true);
	(void)intrflush(stdscr, false);
	(void)curs_set(0);
	return 0;
}

int terminal_open(struct terminal **ret_terminal, struct message *reterr)
{
	struct terminal *terminal;
	int err;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		message_set(reterr, "stdin and stdout must be a terminal: use --batch");
		return -ENOTTY;
	}
	err = terminfo_load(reterr);
	if (err)
		return err;
	terminal = calloc(1, sizeof(*terminal));
	err = terminal ? keep_modes(&terminal->before) : -ENOMEM;
	terminfo_unload();
	if (err) {
		message_set(reterr, "cannot use the terminal: %s", strerror(-err));
		free(terminal);
		return err;
	}
	signals_guard_terminal(&terminal->before);
	err = begin_curses(terminal, reterr);
	if (err) {
		terminal_close(terminal);
		return err;
	}
	choose_attributes(terminal);
	*ret_terminal = terminal;
	return 0;
}

void terminal_close(struct terminal *terminal)
{
	if (!terminal)
		return;
	if (terminal->curses) {
		/* For a terminal without a second screen. */
		(void)move(LINES - 1, 0);
		(void)clrtoeol();
		(void)refresh();
		(void)endwin();
		delscreen(terminal->curses);
	}
	(void)tcsetattr(STDOUT_FILENO, TCSADRAIN, &terminal->before.modes);
	signals_guard_terminal(NULL);
	free(terminal);
}

/* Keys. */

int terminal_fd(const struct terminal *terminal)
{
	(void)terminal;
	return STDIN_FILENO;
}

bool terminal_take_suspension(const struct terminal *terminal)
{
	(void)terminal;
	return signals_take_suspension();
}

void terminal_suspend(struct terminal *terminal)
{
	(void)terminal;
	(void)endwin();
	signals_suspend();
	(void)signals_take_continuation();
	(void)refresh();
}

/* Returns the key that a key of curses is; 0: none of ours. */
static int translate(int key)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{KEY_UP, VIEW_KEY_UP},	       {KEY_DOWN, VIEW_KEY_DOWN},
		{KEY_PPAGE, VIEW_KEY_PAGE_UP}, {KEY_NPAGE, VIEW_KEY_PAGE_DOWN},
		{KEY_HOME, VIEW_KEY_HOME},     {KEY_END, VIEW_KEY_END},
		{KEY_ENTER, VIEW_KEY_ENTER},   {KEY_BACKSPACE, VIEW_KEY_DELETE},
		{KEY_F(1), VIEW_KEY_HELP},     {KEY_F(3), VIEW_KEY_FILTER},
		{KEY_F(4), VIEW_KEY_FILTER},   {KEY_F(6), VIEW_KEY_SORT},
		{KEY_F(10), VIEW_KEY_QUIT},    {KEY_DC, VIEW_KEY_DELETE},
	};

	if (key < KEY_MIN)
		return key;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return 0;
}

int terminal_key(struct terminal *terminal)
{
	int key;

	(void)terminal;
	if (signals_take_continuation()) { /* another stop: the shell has used the terminal */
		(void)endwin();
		(void)clearok(stdscr, true);
		(void)refresh();
	}
	key = getch();
	if (key == CTRL_L)
		(void)clearok(stdscr, true);
	return key == ERR ? -1 : translate(key);
}

bool terminal_is_gone(const struct terminal *terminal)
{
	struct pollfd poll_fd = {.fd = terminal_fd(terminal), .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

void terminal_size(const struct terminal *terminal, unsigned *ret_rows, unsigned *ret_columns)
{
	(void)terminal;
	*ret_rows = (unsigned)LINES;
	*ret_columns = (unsigned)COLS;
}

/* Drawing. */

static void draw_line(const struct terminal *terminal, unsigned row, const struct screen_line *line)
{
	const char *const text = text_string(&line->text);
	size_t begin = 0;

	(void)move((int)row, 0);
	for (unsigned i = 0; i < line->nr_spans; i++) {
		const struct screen_span *span = &line->spans[i];

		(void)attrset((int)terminal->attributes[span->style]);
		(void)addnstr(text + begin, (int)(span->end - begin));
		begin = span->end;
	}
}

void terminal_draw(struct terminal *terminal, const struct screen *screen)
{
	(void)erase();
	for (unsigned row = 0; row < screen->rows; row++)
		draw_line(terminal, row, &screen->lines[row]);
	(void)attrset(A_NORMAL);
	(void)refresh();
}
