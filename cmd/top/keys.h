/* SPDX-License-Identifier: MIT */
/* The keys of a view, which a terminal reads. */
#pragma once

/* Keys that are no characters; below them a key is a byte. */
enum view_key {
	VIEW_KEY_UP = 0x100,
	VIEW_KEY_DOWN,
	VIEW_KEY_PAGE_UP,
	VIEW_KEY_PAGE_DOWN,
	VIEW_KEY_HOME,
	VIEW_KEY_END,
	VIEW_KEY_HELP,	 /* F1 */
	VIEW_KEY_FILTER, /* F4 */
	VIEW_KEY_SORT,	 /* F6 */
	VIEW_KEY_QUIT,	 /* F10 */
};

enum { VIEW_KEY_TAB = '\t', VIEW_KEY_ENTER = '\r', VIEW_KEY_ESCAPE = 0x1b, VIEW_KEY_DELETE = 0x7f };
