/* SPDX-License-Identifier: MIT */
/* What was sampled and what sampling it cost, for the reports. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"

/* What sampling with C frames was, and came to. All zero: without. */
struct run_native {
	bool is_on;
	bool by_evidence; /* Python's frames were told behind each copy, not in the same interrupt */
	bool user_cpu_only;	  /* the kernel did not tell of threads while they were in it */
	uint64_t nr_stacks;	  /* samples with C frames */
	uint64_t nr_broken;	  /* of those, so many whose C frames have a hole */
	uint64_t nr_python_holed; /* and so many where one stands for some of Python's */
	uint64_t nr_dumps;	  /* of registers and a stack, that the kernel made */
	uint64_t nr_lost_dumps;	  /* it had no room for */
	uint64_t nr_undumped;	  /* samples of interrupts whose copies were lost */
	uint64_t nr_foreign;	  /* dumps of threads that Python does not know */
	uint64_t nr_refused;	  /* threads that could not be followed */
};

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
	const char *
		engine; /* how stacks were read: "bpf", "tick", "preempt", "racing"; NULL: of a core */
	double asked_hz; /* ticks per second asked for; 0: as fast as possible */
	struct run_native native;

	/* Of pysample itself, as getrusage(2) counts them. */
	uint64_t cpu_user_ns;
	uint64_t cpu_sys_ns;
	uint64_t max_rss_kib;
};
