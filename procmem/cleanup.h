/* SPDX-License-Identifier: MIT */
/* Scope guards: release a resource when its variable goes out of scope. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The guards call these with the address of the variable. NULL and -1 hold nothing. */
static inline void cleanup_free_fn(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_fn(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_closedir_fn(DIR *const *folder)
{
	if (*folder)
		(void)closedir(*folder);
}

static inline void cleanup_fclose_fn(FILE *const *file)
{
	if (*file)
		(void)fclose(*file);
}

#define cleanup_free	 __attribute__((cleanup(cleanup_free_fn)))
#define cleanup_close	 __attribute__((cleanup(cleanup_close_fn)))
#define cleanup_closedir __attribute__((cleanup(cleanup_closedir_fn)))
#define cleanup_fclose	 __attribute__((cleanup(cleanup_fclose_fn)))

/* Pass a guarded pointer or descriptor on to the caller and disarm the guard. */
#define take_ptr(p)                      \
	({                               \
		__auto_type taken = (p); \
		(p) = NULL;              \
		taken;                   \
	})
#define take_fd(fd)               \
	({                        \
		int taken = (fd); \
		(fd) = -1;        \
		taken;            \
	})
