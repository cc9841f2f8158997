/* SPDX-License-Identifier: MIT */
#include "procmem/file_lock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#define WHOLE_FILE .device_minor = 0x1b, .inode = 438614, .start = 0, .end = UINT64_MAX

Test(file_lock, finds_the_holder)
{
	static const struct wanted_lock flock = {WHOLE_FILE, .is_flock = true};
	static const struct wanted_lock shared = {WHOLE_FILE, .is_flock = true, .is_shared = true};
	static const struct wanted_lock posix = {WHOLE_FILE, .not_pid = 4710};
	static const struct wanted_lock bytes = {
		.device_minor = 0x1b, .inode = 438614, .start = 10, .end = 19};
	static const struct {
		const struct wanted_lock *wanted;
		const char *text;
		pid_t pid; /* 0: none is found */
	} cases[] = {
		{&flock, "1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n", 4711},
		{&flock, "1: FLOCK  ADVISORY  READ  4711 00:1b:438614 0 EOF", 4711},
		{&flock,
		 "1: FLOCK  ADVISORY  WRITE 4710 00:1b:438615 0 EOF\n"
		 "2: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n"
		 "2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:438614 0 EOF\n",
		 4711},
		{&flock,
		 "1: POSIX  ADVISORY  WRITE 4710 00:1b:438614 0 9\n"
		 "2: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n",
		 4711},
		{&shared,
		 "1: FLOCK  ADVISORY  READ  4710 00:1b:438614 0 EOF\n"
		 "2: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n",
		 4711},
		{&posix, "1: POSIX  ADVISORY  READ  4711 00:1b:438614 0 99\n", 4711},
		{&posix, "1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF\n", 0},
		{&posix,
		 "1: POSIX  ADVISORY  WRITE 4710 00:1b:438614 0 9\n"
		 "2: POSIX  ADVISORY  WRITE 4711 00:1b:438614 10 EOF\n",
		 4711},
		{&bytes,
		 "1: POSIX  ADVISORY  WRITE 1 00:1b:438614 0 9\n"
		 "2: POSIX  ADVISORY  WRITE 2 00:1b:438614 20 EOF\n"
		 "3: POSIX  ADVISORY  WRITE 3 00:1b:438614 19 19\n",
		 3},
		{&bytes, "1: POSIX  ADVISORY  WRITE 3 00:1b:438614 0 10\n", 3},
		{&flock, "2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:438614 0 EOF\n", 0},
		{&posix, "1: OFDLCK ADVISORY  WRITE -1 00:1b:438614 0 EOF\n", 0},
		{&posix, "1: LEASE  ACTIVE    WRITE 4711 00:1b:438614 0 EOF\n", 0},
		{&flock, "1: FLOCK  ADVISORY  WRITE 4711 08:1b:438614 0 EOF\n", 0},
		{&flock, "1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0\n", 0},
		{&flock, "1: FLOCK  ADVISORY  WRITE 4711 00:1b\n", 0},
		{&flock, "1: FLOCK", 0},
		{&flock, "", 0},
		{&flock, "\n\n", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pid_t pid = 0;

		cr_expect(eq(int, file_lock_find(cases[i].text, cases[i].wanted, &pid),
			     cases[i].pid ? 0 : -ENOENT),
			  "case %zu", i);
		cr_expect(eq(int, pid, cases[i].pid), "case %zu", i);
	}
}

Test(file_lock, the_kernels_list_is_read)
{
	char *text = NULL;

	cr_assert(zero(int, file_locks_read(&text)));
	cr_expect(ne(ptr, text, NULL));
	free(text);
}
