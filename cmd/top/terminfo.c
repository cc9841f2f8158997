/* SPDX-License-Identifier: MIT */
#include "cmd/top/terminfo.h"

/* Before term.h. */
#include <curses.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "cmd/top/terminal_description.h"

/*
 * Read the description of the terminal: from the database, else our own. Returns 0; -ENOENT with a
 * message.
 */
static int load(struct message *reterr)
{
	const char *const term = getenv("TERM");
	const struct terminal_description *description;
	char place[8192];
	int result;

	if (!term || !*term) {
		message_set(reterr, "TERM is not set, so the terminal's kind is unknown: set it, "
				    "or use --batch");
		return -ENOENT;
	}
	if (setupterm(NULL, STDOUT_FILENO, &result) == OK)
		return 0;
	description = terminal_description_find(term);
	if (description) {
		(void)snprintf(place, sizeof(place), "b64:%s", description->base64);
		(void)setenv("TERM", description->name, 1);
		(void)setenv("TERMINFO", place, 1);
		if (setupterm(NULL, STDOUT_FILENO, &result) == OK)
			return 0;
	}
	message_set(reterr,
		    "the terminal '%s' is not in the terminfo database: set TERM to a compatible "
		    "one, such as xterm-256color, or use --batch",
		    term);
	return -ENOENT;
}

/* Returns a sequence; NULL: there is none, or the name is none of a sequence, which is -1. */
static const char *find(const char *name)
{
	const char *const sequence = tigetstr(name);

	return (intptr_t)sequence == -1 ? NULL : sequence;
}

int terminfo_load(struct message *reterr)
{
	const int err = load(reterr);

	if (err || find("cup"))
		return err;
	message_set(
		reterr,
		"the terminal '%s' cannot move its cursor: use --batch, which prints plain text",
		getenv("TERM"));
	terminfo_unload();
	return -ENOTSUP;
}

void terminfo_unload(void)
{
	(void)del_curterm(cur_term);
}

void terminfo_append(const char *name, char *text, size_t max, size_t *nr)
{
	const char *sequence = find(name);

	while (sequence && *sequence && *nr < max) {
		/* A delay is written as "$<5>". */
		const char *const end =
			strncmp(sequence, "$<", 2) == 0 ? strchr(sequence, '>') : NULL;

		if (end)
			sequence = end + 1;
		else
			text[(*nr)++] = *sequence++;
	}
}
