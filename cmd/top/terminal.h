/* SPDX-License-Identifier: MIT */
/* The terminal on stdin and stdout: what is drawn on it, and the keys that come from it. */
#pragma once

#include <stdbool.h>

#include "cmd/top/screen.h"
#include "procmem/message.h"

struct terminal;

/*
 * Take the terminal over. Whatever ends the program, except SIGKILL, puts it back
 * (signals_guard_terminal()). Returns 0; or a negative errno with a message: there is no terminal,
 * or it cannot show screens. terminal_close() puts it back, and accepts NULL.
 */
int terminal_open(struct terminal **ret_terminal, struct message *reterr);
void terminal_close(struct terminal *terminal);

/* The descriptor of the keys. */
int terminal_fd(const struct terminal *terminal);

/*
 * Returns the next key that was pressed: a byte, or an enum view_key; 0: one without a meaning, or
 * the size has changed; -1: there is none. Nothing is waited for. The screen is drawn anew on
 * Ctrl-L, and when the program was stopped and continued.
 */
int terminal_key(struct terminal *terminal);

/* Whether the user has requested since the last call that the program stops (Ctrl-Z). */
bool terminal_take_suspension(const struct terminal *terminal);

/* Put the terminal back and stop the program. Returns when it is continued. */
void terminal_suspend(struct terminal *terminal);

/* Whether the terminal is gone, so that no key will come. */
bool terminal_is_gone(const struct terminal *terminal);

/* The current size. */
void terminal_size(const struct terminal *terminal, unsigned *ret_rows, unsigned *ret_columns);

/* Show a screen of the current size. Only what has changed is written. */
void terminal_draw(struct terminal *terminal, const struct screen *screen);
