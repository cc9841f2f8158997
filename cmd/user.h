/* SPDX-License-Identifier: MIT */
/*
 * Users and groups as the files of this system list them. Those that only a directory service
 * knows are not found: asking it takes the C library's plug-ins, which a static program has not.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct user {
	gid_t gid;
	char name[LOGIN_NAME_MAX];
	char home[PATH_MAX];
};

/* Find a user in /etc/passwd. Returns 0; -ENOENT if it is not there; a negative errno. */
int user_find(uid_t uid, struct user *user);

/*
 * The user's groups: its own and those of /etc/group that name it, each once. There are at most
 * max, which must not be 0; more are left out. Returns how many there are, or a negative errno;
 * without the file it is one.
 */
int user_groups(const struct user *user, gid_t *groups, size_t max);
