/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/source/source_file.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/sample.h"
#include "tests/support/machine_offers.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static char folder[] = "/tmp/test_source_file.XXXXXX";

static void make_folder(void)
{
	cr_assert(mkdtemp(folder) != NULL);
	cr_assert(eq(int, chmod(folder, 0755), 0));
	cr_assert(eq(int, chdir(folder), 0));
}

static void remove_folder(void)
{
	cleanup_free char *command = NULL;

	cr_assert(asprintf(&command, "rm -rf %s", folder) > 0);
	cr_assert(eq(int, system(command), 0));
}

TestSuite(source_file, .init = make_folder, .fini = remove_folder);

static void make_file(const char *name, const char *bytes, size_t length, mode_t mode)
{
	FILE *out = fopen(name, "w");

	cr_assert(out != NULL);
	cr_assert(eq(sz, fwrite(bytes, 1, length, out), length));
	cr_assert(eq(int, fclose(out), 0));
	cr_assert(eq(int, chmod(name, mode), 0));
}

/* Read FOLDER/name; returns the result. */
static int read_named(const char *name, uint64_t until_ns, struct source_file *file)
{
	cleanup_free char *path = NULL;

	cr_assert(asprintf(&path, "%s/%s", folder, name) > 0);
	return source_file_read(path, until_ns, file);
}

static int check_named(const char *name)
{
	struct source_file file = {0};
	int err = read_named(name, 0, &file);

	source_file_done(&file);
	return err;
}

Test(source_file, splits_lines_as_python_does)
{
	static const struct {
		const char *text;
		uint32_t nr_lines;
		const char *lines[3];
	} cases[] = {
		{"", 0, {0}},
		{"one", 1, {"one"}},
		{"one\n", 1, {"one"}},
		{"\n", 1, {""}},
		{"one\ntwo", 2, {"one", "two"}},
		{"one\r\n\r\nthree\r", 3, {"one", "", "three"}},
		{"\xef\xbb\xbf"
		 "one\n\xc3\xa9\n",
		 2,
		 {"one", "\xc3\xa9"}},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct source_file file = {0};

		make_file("a.py", cases[i].text, strlen(cases[i].text), 0644);
		cr_assert(eq(int, read_named("a.py", 0, &file), 0));
		cr_assert(eq(u32, file.nr_lines, cases[i].nr_lines), "case %zu", i);
		for (uint32_t k = 0; k < file.nr_lines; k++)
			cr_expect(eq(str, (char *)source_file_line(&file, k + 1),
				     (char *)cases[i].lines[k]));
		source_file_done(&file);
	}
}

Test(source_file, reads_source_files_only)
{
	static const char *const sources[] = {"a.py", "a.pyw", "a.pyx", "link.py", "x/../a.py"};
	static const char *const refused[] = {"shadow",	   "py",	   "pipe.py",
					      "folder.py", "latin.py",	   "nul.py",
					      "hole.py",   "to_shadow.py", "absent.py"};

	for (size_t i = 0; i < 3; i++)
		make_file(sources[i], "x\n", 2, 0644);
	make_file("shadow", "root:x\n", 7, 0644);
	make_file("py", "x\n", 2, 0644);
	make_file("latin.py", "\xe9\n", 2, 0644);
	make_file("nul.py", "a\0b", 3, 0644);
	make_file("hole.py", "", 0, 0644);
	cr_assert(eq(int, truncate("hole.py", SOURCE_FILE_MAX_BYTES + 1), 0));
	cr_assert(eq(int, mkfifo("pipe.py", 0644), 0));
	cr_assert(eq(int, mkdir("folder.py", 0755), 0));
	cr_assert(eq(int, mkdir("x", 0755), 0));
	cr_assert(eq(int, symlink("a.py", "link.py"), 0));
	cr_assert(eq(int, symlink("shadow", "to_shadow.py"), 0));
	for (size_t i = 0; i < NR(sources); i++)
		cr_expect(eq(int, check_named(sources[i]), 0), "%s", sources[i]);
	for (size_t i = 0; i < NR(refused); i++)
		cr_expect(eq(int, check_named(refused[i]), -ENOENT), "%s", refused[i]);
}

Test(source_file, reads_absolute_paths_only)
{
	static const char *const paths[] = {"a.py", "./a.py", "<string>.py", ""};
	struct source_file file;

	make_file("a.py", "x\n", 2, 0644);
	for (size_t i = 0; i < NR(paths); i++)
		cr_expect(eq(int, source_file_read(paths[i], 0, &file), -ENOENT));
}

Test(source_file, refuses_a_file_changed_since)
{
	const uint64_t second = 1000000000;
	const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct source_file file = {0};
	struct stat status;
	uint64_t changed_ns;

	make_file("a.py", "x\n", 2, 0644);
	cr_assert(eq(int, stat("a.py", &status), 0));
	changed_ns = (uint64_t)status.st_ctim.tv_sec * second + (uint64_t)status.st_ctim.tv_nsec;
	cr_expect(eq(int, read_named("a.py", changed_ns - 1, &file), -EAGAIN));
	cr_expect(eq(int, read_named("a.py", changed_ns, &file), 0));
	source_file_done(&file);

	/* A copy that kept the original's modification time. */
	cr_assert(eq(int, utimensat(AT_FDCWD, "a.py", long_ago, 0), 0));
	cr_expect(eq(int, read_named("a.py", 1000 * second, &file), -EAGAIN));
}

/* For root, only files that everybody may read are read. */
Test(source_file, root_reads_only_world_readable_files)
{
	int expected = geteuid() == 0 ? -ENOENT : 0;

	make_file("private.py", "x\n", 2, 0600);
	cr_expect(eq(int, check_named("private.py"), expected));
	cr_assert(eq(int, symlink("private.py", "link.py"), 0));
	cr_expect(eq(int, check_named("link.py"), expected));

	cr_assert(eq(int, mkdir("home", 0700), 0));
	cr_assert(eq(int, mkdir("home/open", 0755), 0));
	make_file("home/a.py", "x\n", 2, 0644);
	make_file("home/open/a.py", "x\n", 2, 0644);
	cr_expect(eq(int, check_named("home/a.py"), expected));
	cr_expect(eq(int, check_named("home/open/a.py"), expected));
	cr_assert(eq(int, symlink("home/open", "way"), 0));
	cr_expect(eq(int, check_named("way/a.py"), expected));
	cr_assert(eq(int, chmod("home", 0711), 0));
	cr_expect(eq(int, check_named("way/a.py"), 0));
}

/* Links stay inside a sysroot, and a copy's change time does not matter there. */
Test(source_file, is_found_below_a_sysroot)
{
	struct source_file file = {0};
	struct sysroot sysroot;
	struct stat status;
	uint64_t written_ns;

	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	make_file("own.py", "one\n", 4, 0644);
	make_file("secret.py", "one\n", 4, 0600);
	cr_assert(zero(int, symlink("/own.py", "link.py")));
	cr_assert(zero(int, symlink("/etc/../usr/lib/none.py", "out.py")));
	cr_assert(zero(int, stat("own.py", &status)));
	written_ns = (uint64_t)status.st_mtim.tv_sec * NS_PER_S + (uint64_t)status.st_mtim.tv_nsec;
	cr_expect(zero(int, source_file_read_below(&sysroot, "/own.py", written_ns, &file)));
	cr_expect(eq(u32, file.nr_lines, 1));
	source_file_done(&file);
	cr_expect(eq(int, source_file_read_below(&sysroot, "/own.py", written_ns - 1, &file),
		     -EAGAIN));
	/* Without openat2() no link is followed. */
	if (machine_offers_call(SYS_openat2))
		cr_expect(zero(int, source_file_read_below(&sysroot, "/link.py", 0, &file)));
	source_file_done(&file);
	cr_expect(eq(int, source_file_read_below(&sysroot, "/out.py", 0, &file), -ENOENT));
	cr_expect(eq(int, source_file_read_below(&sysroot, "/etc/passwd", 0, &file), -ENOENT));
	if (geteuid() == 0)
		cr_expect(
			eq(int, source_file_read_below(&sysroot, "/secret.py", 0, &file), -ENOENT));
	sysroot_close(&sysroot);
}
