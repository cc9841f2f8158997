/* SPDX-License-Identifier: MIT */
/*
 * What the machine offers that runs a test. An emulator of another machine runs the program but
 * not all of its system calls, and the kernel's files describe the emulator.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the kernel has a system call, which fails without arguments. */
static inline bool machine_offers_call(long number)
{
	return syscall(number, 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS;
}

static inline bool machine_offers_seccomp(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
}

/*
 * Whether the kernel's files about this process describe this program: the name of its executable
 * in /proc/PID/comm is that in our own arguments.
 */
static inline bool machine_describes_us(void)
{
	char name[32] = "";
	FILE *file = fopen("/proc/self/comm", "re");
	const bool is_read = file && fgets(name, sizeof(name), file);

	if (file)
		(void)fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return is_read && strncmp(name, "test_", strlen("test_")) == 0;
}
