/* SPDX-License-Identifier: MIT */
#include "procmem/file_lock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

Test(file_lock, finds_the_holder)
{
	static const struct locked_file file = {0, 0x1b, 438614};
	static const struct {
		const char *text;
		int err;
		pid_t pid;
	} cases[] = {
		{"1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n", 0, 4711},
		{"1: POSIX  ADVISORY  READ 4711 00:1b:438614 0 99\n", 0, 4711},
		{"1: FLOCK  ADVISORY  WRITE 4710 00:1b:438615 0 EOF\n"
		 "2: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n"
		 "2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:438614 0 EOF\n",
		 0, 4711},
		{"2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:438614 0 EOF\n", -ENOENT, 0},
		{"1: OFDLCK ADVISORY  WRITE -1 00:1b:438614 0 EOF\n", -ENOENT, 0},
		{"1: LEASE  ACTIVE    WRITE 4711 00:1b:438614 0 EOF\n", -ENOENT, 0},
		{"1: FLOCK  ADVISORY  WRITE 4711 08:1b:438614 0 EOF\n", -ENOENT, 0},
		{"1: FLOCK  ADVISORY  WRITE 4711 00:1b\n", -ENOENT, 0},
		{"1: FLOCK", -ENOENT, 0},
		{"", -ENOENT, 0},
		{"\n\n", -ENOENT, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pid_t pid = 0;

		cr_expect(eq(int, file_lock_find(cases[i].text, &file, &pid), cases[i].err), "%s",
			  cases[i].text);
		cr_expect(eq(int, pid, cases[i].pid), "%s", cases[i].text);
	}
}
