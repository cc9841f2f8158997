/* SPDX-License-Identifier: MIT */
/* The Python processes that this user can see. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"
#include "procmem/tree/container.h"
#include "procmem/tree/process_list.h"
#include "sampler/cpython/layout/offsets.h"

/* Whether pysample can sample a process. */
enum python_access {
	PYTHON_READABLE,
	PYTHON_FORBIDDEN, /* not without more rights */
	PYTHON_UNKNOWN,	  /* called python, but no interpreter that pysample knows runs in it */
};

struct python_process {
	pid_t pid;
	uid_t uid;
	uint32_t nr_threads; /* of the kernel, so native ones, too */
	char *name;	     /* owned; the short name or the command line; not escaped */
	enum python_access access;
	char version[VERSION_MAX_BYTES]; /* "" if it could not be read */
	bool free_threaded;
	double cpu_percent;			/* of one CPU; negative: unknown */
	char container[CONTAINER_ID_MAX_BYTES]; /* "": none is known */
	bool other_pid_namespace;		/* it is known to have another one than we have */
	/* for cpu_percent: its CPU time at a moment (CLOCK_MONOTONIC) */
	uint64_t cpu_ns, cpu_at_ns;
};

/* What to look for. All zero: every process, by its short name. */
struct python_search {
	bool looks_everywhere; /* also where nothing that is mapped is called python */
	bool full_command;     /* name processes by their command lines */
	bool measures_cpu;     /* takes PYTHON_CPU_INTERVAL_NS */
	const char *pattern;   /* only processes that match; NULL: all; python_name_matches() */
};

/* The CPU time is that of an interval, because that since the start says little of a server. */
#define PYTHON_CPU_INTERVAL_NS 100000000u

/* In ascending order of their ids. */
struct python_processes {
	struct python_process *rows; /* owned */
	uint32_t nr, max;
	uint32_t nr_hidden;	  /* processes of which nothing but the command line can be seen */
	struct process_list list; /* owned; all processes, for their parents */
};

/*
 * Find the Python processes but ourselves. A process is searched for an interpreter if its
 * executable or a mapped file has "python" in its path, or with looks_everywhere in any case. One
 * that may not be read is in the result if these show Python, or if they may not be read either and
 * its command line begins with one.
 *
 * Returns 0, -ENOMEM, or the errno of opening /proc. python_processes_done() accepts an empty
 * list.
 */
int python_processes_find(const struct python_search *search,
			  struct python_processes *ret_processes);
void python_processes_done(struct python_processes *processes);

/*
 * Whether a name or a command line matches a pattern: all of it a glob(7) pattern, or a part of it
 * a string without *, ? and [.
 */
bool python_name_matches(const char *name, const char *pattern);

/*
 * Whether the executable or a mapped file of a process has "python" in its path, which is quick to
 * find out; or, if these may not be read, its command line begins with one.
 */
bool python_appears(const struct process *process);
