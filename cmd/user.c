/* SPDX-License-Identifier: MIT */
#include "cmd/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Returns whether all of a string fits. */
static bool copy(char *to, size_t size, const char *from)
{
	const int length = snprintf(to, size, "%s", from);

	return length >= 0 && (size_t)length < size;
}

int user_find(uid_t uid, struct user *user)
{
	cleanup_fclose FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;

	if (!file)
		return -errno;
	do {
		errno = 0;
		entry = fgetpwent(file);
		if (!entry)
			return errno && errno != ENOENT ? -errno : -ENOENT;
	} while (entry->pw_uid != uid);
	user->gid = entry->pw_gid;
	if (!copy(user->name, sizeof(user->name), entry->pw_name) ||
	    !copy(user->home, sizeof(user->home), entry->pw_dir))
		return -ENAMETOOLONG;
	return 0;
}

static bool has_member(const struct group *group, const char *name)
{
	for (char **member = group->gr_mem; *member; member++)
		if (strcmp(*member, name) == 0)
			return true;
	return false;
}

static bool contains(const gid_t *groups, size_t nr_groups, gid_t gid)
{
	for (size_t i = 0; i < nr_groups; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

int user_groups(const struct user *user, gid_t *groups, size_t max)
{
	cleanup_fclose FILE *file = fopen("/etc/group", "re");
	const struct group *group;
	size_t nr_groups = 0;

	groups[nr_groups++] = user->gid;
	if (!file)
		return errno == ENOENT ? 1 : -errno;
	while (nr_groups < max && (group = fgetgrent(file)) != NULL)
		if (has_member(group, user->name) && !contains(groups, nr_groups, group->gr_gid))
			groups[nr_groups++] = group->gr_gid;
	return (int)nr_groups;
}
