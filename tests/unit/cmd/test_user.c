/* SPDX-License-Identifier: MIT */
#include "cmd/user.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 64 };

static int compare(const void *a, const void *b)
{
	const gid_t left = *(const gid_t *)a, right = *(const gid_t *)b;

	return left < right ? -1 : left > right;
}

/* Whether a line of nsswitch.conf names nothing that lists other users than the files do. */
static bool is_of_files(char *line)
{
	static const char *const known[] = {"passwd:", "group:", "files", "compat", "systemd"};
	bool is_so = true;

	for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known |= strcmp(word, known[i]) == 0;
		is_so &= is_known;
	}
	return is_so;
}

static bool has_files_only(void)
{
	FILE *file = fopen("/etc/nsswitch.conf", "re");
	bool is_so = true;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "passwd:", 7) == 0 || strncmp(line, "group:", 6) == 0)
			is_so &= is_of_files(line);
	if (file)
		(void)fclose(file);
	return is_so;
}

/* The C library's own search is the oracle. */
Test(user, users_and_their_groups_are_those_of_the_system)
{
	gid_t found[MAX_GROUPS], expected[MAX_GROUPS];
	int nr_users = 0;

	if (!has_files_only())
		cr_skip("users are not in files alone");
	setpwent();
	for (const struct passwd *entry; (entry = getpwent()) != NULL; nr_users++) {
		int nr_expected = MAX_GROUPS;
		struct user user;
		int nr_found;

		cr_assert(eq(int, user_find(entry->pw_uid, &user), 0));
		if (strcmp(user.name, entry->pw_name) != 0)
			continue; /* another user of the same number */
		cr_expect(eq(u32, user.gid, entry->pw_gid));
		cr_expect(eq(str, user.home, entry->pw_dir));
		nr_found = user_groups(&user, found, MAX_GROUPS);
		cr_assert(ge(int, getgrouplist(user.name, user.gid, expected, &nr_expected), 0));
		cr_assert(eq(int, nr_found, nr_expected), "%s", user.name);
		qsort(found, (size_t)nr_found, sizeof(*found), compare);
		qsort(expected, (size_t)nr_found, sizeof(*expected), compare);
		for (int i = 0; i < nr_found; i++)
			cr_expect(eq(u32, found[i], expected[i]), "%s", user.name);
	}
	endpwent();
	cr_expect(lt(int, 0, nr_users));
}

Test(user, an_unknown_user_is_not_found)
{
	struct user user;

	cr_expect(eq(int, user_find(4294967294u, &user), -ENOENT));
}

Test(user, no_more_groups_than_asked_for)
{
	struct user user = {.gid = 4242, .name = "root"};
	gid_t groups[1];

	cr_expect(eq(int, user_groups(&user, groups, 1), 1));
	cr_expect(eq(u32, groups[0], 4242));
}
