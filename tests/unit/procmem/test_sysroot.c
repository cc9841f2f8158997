/* SPDX-License-Identifier: MIT */
#include "procmem/sysroot.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "tests/support/machine_offers.h"

/* Make a folder with lib/file and links inside it and out of it. Returns its name. */
static const char *make_folder(void)
{
	static char folder[] = "/tmp/test_sysroot-XXXXXX";

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, chdir(folder)));
	cr_assert(zero(int, mkdir("lib", 0700)));
	cr_assert(zero(int, mkdir("lib/deep", 0700)));
	cleanup_close int fd = open("lib/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert(eq(sz, (size_t)write(fd, "inside", 6), 6));
	cr_assert(zero(int, symlink("lib/file", "relative")));
	cr_assert(zero(int, symlink("/lib/file", "absolute")));
	cr_assert(zero(int, symlink("/lib", "lib64")));
	cr_assert(zero(int, symlink("../../../../etc/passwd", "out")));
	cr_assert(zero(int, symlink("/etc/passwd", "absolute_out")));
	cr_assert(zero(int, symlink("/proc/self/exe", "magic")));
	cr_assert(zero(int, mkfifo("fifo", 0600)));
	return folder;
}

static void remove_folder(const char *folder)
{
	static const char *const names[] = {"relative",	    "absolute", "lib64", "out",
					    "absolute_out", "magic",	"fifo",	 "lib/file",
					    "lib/deep",	    "lib"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect(zero(int, remove(names[i])), "%s", names[i]);
	cr_expect(zero(int, chdir("/")));
	cr_expect(zero(int, rmdir(folder)));
}

struct expected {
	const char *path;
	bool is_found;
	bool is_found_without_links; /* by kernels without openat2() */
};

static const struct expected inside[] = {
	{"/lib/file", true, true},
	{"lib/file", true, true},
	{"//lib///file", true, true},
	{"/lib/./file", true, true},
	{"/relative", true, false},
	{"/absolute", true, false},
	{"/lib64/file", true, false},
	{"/lib/deep/../file", true, false},
	{"/../../../../../lib/file", true, false},
	{"/out", false, false},
	{"/absolute_out", false, false},
	{"/../../../../../etc/passwd", false, false},
	{"/etc/passwd", false, false},
	{"/magic", false, false},
	{"/fifo", false, false},
	{"/lib", false, false},
	{"/", false, false},
	{"", false, false},
	{"/lib/file/", false, true},
	{"/lib/file/x", false, false},
	{"/no", false, false},
};

static void expect_files(bool links)
{
	const char *folder = make_folder();
	struct sysroot sysroot = SYSROOT_OWN;

	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		bool is_expected = links ? inside[i].is_found : inside[i].is_found_without_links;
		cleanup_close int fd = sysroot_open_file(&sysroot, inside[i].path);
		char bytes[8] = "";

		if (!is_expected)
			cr_expect(eq(int, fd, -ENOENT), "%s", inside[i].path);
		else
			cr_expect(eq(sz, (size_t)read(fd, bytes, 7), 6), "%s", inside[i].path);
		cr_expect(eq(int, strcmp(bytes, "inside") == 0, is_expected), "%s", inside[i].path);
	}
	sysroot_close(&sysroot);
	sysroot_close(NULL);
	remove_folder(folder);
}

Test(sysroot, finds_files_below_the_folder)
{
	expect_files(machine_offers_call(SYS_openat2));
}

/* Rename an unrelated file back and forth until *context is set. */
static void *keep_renaming(void *context)
{
	const atomic_bool *stop = context;
	char name[] = "/tmp/test_sysroot-XXXXXX";
	char other[sizeof(name) + 1];
	int fd = mkstemp(name);

	(void)snprintf(other, sizeof(other), "%s2", name);
	while (!atomic_load(stop)) {
		(void)rename(name, other);
		(void)rename(other, name);
	}
	(void)close(fd);
	(void)unlink(name);
	return NULL;
}

/* The kernel refuses ".." while something is renamed, even elsewhere. */
Test(sysroot, retries_during_renames)
{
	enum { NR_THREADS = 3, NR_TRIES = 20000 };
	static const char path[] = "/lib/deep/../deep/../deep/../deep/../deep/../deep/../file";
	const char *folder = make_folder();
	struct sysroot sysroot = SYSROOT_OWN;
	atomic_bool stop = false;
	pthread_t threads[NR_THREADS];
	size_t nr_failed = 0;

	if (!machine_offers_call(SYS_openat2))
		cr_skip("no openat2");
	cr_assert(zero(int, sysroot_open(folder, &sysroot, NULL)));
	for (size_t i = 0; i < NR_THREADS; i++)
		cr_assert(zero(int, pthread_create(&threads[i], NULL, keep_renaming, &stop)));
	for (size_t i = 0; i < NR_TRIES; i++) {
		cleanup_close int fd = sysroot_open_file(&sysroot, path);

		nr_failed += fd < 0;
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < NR_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_expect(zero(sz, nr_failed));
	sysroot_close(&sysroot);
	remove_folder(folder);
}

/* Make openat2() fail, as it does on kernels without it or in a sandbox. */
static void forbid_openat2(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, filter};

	cr_assert(zero(int, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	cr_assert(zero(int, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)));
}

Test(sysroot, works_without_openat2)
{
	if (!machine_offers_seccomp())
		cr_skip("no seccomp filters");
	forbid_openat2(ENOSYS);
	expect_files(false);
}

Test(sysroot, works_if_openat2_is_forbidden)
{
	if (!machine_offers_seccomp())
		cr_skip("no seccomp filters");
	forbid_openat2(EPERM);
	expect_files(false);
}

Test(sysroot, own_root_opens_regular_files_only)
{
	static const struct {
		const char *path;
		bool is_found;
	} cases[] = {
		{"/etc/passwd", true},	      {"/etc", false},
		{"/dev/zero", false},	      {"/no/such", false},
		{"/proc/self/status", false}, {"/sys/kernel/uevent_seqnum", false},
	};
	const struct sysroot own = SYSROOT_OWN;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup_close int fd = sysroot_open_file(&own, cases[i].path);

		cr_expect(eq(int, fd >= 0, cases[i].is_found), "%s", cases[i].path);
	}
}

/* Running out of descriptors is an error of its own; the file may exist. */
Test(sysroot, reports_exhausted_descriptors)
{
	const struct sysroot own = SYSROOT_OWN;
	struct rlimit limit;
	struct rlimit none;
	int fd;

	cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &limit)));
	none = (struct rlimit){0, limit.rlim_max};
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &none)));
	fd = sysroot_open_file(&own, "/etc/passwd");
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit))); /* criterion needs descriptors */
	cr_expect(eq(int, fd, -EMFILE));
}

Test(sysroot, reports_a_missing_folder)
{
	static const char *const paths[] = {"/no/such", "/etc/passwd"};

	for (size_t i = 0; i < 2; i++) {
		struct sysroot sysroot = SYSROOT_OWN;
		struct message message = {0};

		cr_expect(lt(int, sysroot_open(paths[i], &sysroot, &message), 0));
		cr_expect(ne(ptr, strstr(message.text, paths[i]), NULL));
		cr_expect(eq(int, sysroot.fd, -1));
	}
}

/* A core may name any path, so links of /proc are refused. The user may name one on purpose. */
Test(sysroot, refuses_links_of_proc)
{
	const struct sysroot own = SYSROOT_OWN;
	const char *folder = make_folder();
	cleanup_free char *magic = NULL;
	cleanup_close int fd = -1;

	cr_assert(asprintf(&magic, "%s/magic", folder) > 0);
	cr_expect(eq(int, sysroot_open_file(&own, "/proc/self/exe"), -ENOENT));
	cr_expect(eq(int, sysroot_open_file(&own, magic), -ENOENT));
	/* An emulator has a file of its own for it. */
	if (machine_describes_us())
		cr_expect(eq(int, sysroot_open_named("/proc/self/maps"), -ENOENT));
	fd = sysroot_open_named("/proc/self/exe");
	cr_expect(ge(int, fd, 0));
	remove_folder(folder);
}
