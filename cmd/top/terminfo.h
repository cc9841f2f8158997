/* SPDX-License-Identifier: MIT */
/*
 * The description of the terminal, from the terminfo database or our own. A module of its own,
 * because term.h defines macros with names such as lines.
 */
#pragma once

#include <stddef.h>

#include "procmem/message.h"

/*
 * Load the description of the terminal on stdout that TERM names. If it is one of our own, TERM and
 * TERMINFO are set for curses. Returns 0; or -ENOENT or -ENOTSUP with a message: it is unknown, or
 * cannot show screens. terminfo_unload() frees it; newterm() loads its own.
 */
int terminfo_load(struct message *reterr);
void terminfo_unload(void);

/*
 * Append a sequence of the terminal, such as "rmcup", to text of max bytes, of which *nr are used,
 * as far as it fits and without delays. Nothing if the terminal has none.
 */
void terminfo_append(const char *name, char *text, size_t max, size_t *nr);
