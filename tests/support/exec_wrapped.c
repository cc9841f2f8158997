/* SPDX-License-Identifier: MIT */
/*
 * Where the machine cannot run the tests itself and meson has a program that can (exe_wrapper):
 * criterion runs each test in a process of its own that executes the test program again. This
 * execve() takes the place of the C library's, and lets that program do it. Linked into the unit
 * tests of such builds.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64 };

__attribute__((visibility("default"))) int execve(const char *path, char *const argv[],
						  char *const envp[])
{
	/* Meson has quoted the words of the variable as a shell expects. */
	const char *wrapped[MAX_ARGUMENTS] = {
		"sh", "-c", "eval \"exec $MESON_EXE_WRAPPER \\\"\\$0\\\" \\\"\\$@\\\"\"", path};
	int nr = 4;
	long result = syscall(SYS_execve, path, argv, envp);

	if (result == 0 || errno != ENOEXEC || !getenv("MESON_EXE_WRAPPER"))
		return (int)result;
	for (int i = 1; argv[0] && argv[i]; i++) {
		if (nr == MAX_ARGUMENTS - 1) {
			errno = E2BIG;
			return -1;
		}
		wrapped[nr++] = argv[i];
	}
	return (int)syscall(SYS_execve, "/bin/sh", wrapped, envp);
}
