/* SPDX-License-Identifier: MIT */
/* What was sampled and what sampling it cost, for the reports. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/profile.h"

/* Strings are borrowed, as the target has them, not escaped; NULL if not known. */
struct run_info {
	const char *pysample;	   /* version of the sampler */
	const char *arguments;	   /* of pysample itself, separated by spaces */
	const char *host;	   /* name of the machine */
	uint64_t start_unix_ns;	   /* CLOCK_REALTIME at stats.start_ns; 0 if not known */
	const char *command_line;  /* of the target, arguments separated by spaces */
	pid_t pid;		   /* of the target, in our PID namespace; 0 if not known */
	const char *core;	   /* the file that it is known from; NULL: it was running */
	const char *death;	   /* what ended it, of a core: "SIGSEGV …"; NULL: a snapshot */
	const char *python;	   /* version of the interpreter: "3.12.1" */
	bool python_free_threaded; /* built without the GIL */
	bool python_newer_than_tested;
	const char *runtime_found_by; /* how its runtime state was found: one word or phrase */
	enum profile_mode mode;	      /* that the run was for */
	enum profile_mode shown_mode; /* of the profile that this is told of */
	struct profile_account account;
	uint64_t shown_ns; /* the weights of the samples that the mode shows */
	double asked_hz;   /* ticks per second asked for; 0: as fast as possible */

	/* Of pysample itself, as getrusage(2) counts them. */
	uint64_t cpu_user_ns;
	uint64_t cpu_sys_ns;
	uint64_t max_rss_kib;
};
