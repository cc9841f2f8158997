/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of the most common terminals, for systems without a terminfo database: many
 * containers have none.
 */
#pragma once

struct terminal_description {
	const char *name;   /* for TERM */
	const char *base64; /* compiled, as in TERMINFO="b64:…"; ncurses(3), "TERMINFO" */
};

/*
 * Returns the description for a value of TERM: its own, or that of a terminal that it is compatible
 * with; NULL: it is unknown. Static.
 */
const struct terminal_description *terminal_description_find(const char *term);
