/* SPDX-License-Identifier: MIT */
/* What was sampled and what that cost, for reports. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"

/* Settings and counters of sampling with C frames. All zero without it. */
struct run_native {
	bool is_on;
	/*
	 * Python frames were read after each copy, not in the same interrupt. That they belong
	 * together is likely but not proven.
	 */
	bool is_inferred;
	bool user_cpu_only;	    /* the kernel reported no samples of threads in kernel mode */
	uint64_t nr_stacks;	    /* samples with C frames */
	uint64_t nr_c_gaps;	    /* of those, with [unknown] in place of C frames */
	uint64_t nr_python_gaps;    /* of those, with [unknown] in place of Python frames */
	uint64_t nr_copies;	    /* copies of registers and stack that the kernel made */
	uint64_t nr_lost_copies;    /* copies the kernel had no room for */
	uint64_t nr_without_copy;   /* samples of interrupts whose copies were lost */
	uint64_t nr_foreign_copies; /* copies of threads that Python does not know */
	uint64_t nr_refused;	    /* threads that could not be followed */
};

/* The pysample that took the samples. */
struct run_pysample {
	const char *version;
	const char *arguments; /* separated by spaces */
	const char *host;      /* name of the machine */
};

/* The program that was sampled. */
struct run_target {
	const char *command_line; /* arguments separated by spaces */
	pid_t pid;		  /* in our PID namespace; 0 if unknown */
	const char *core;	  /* core file it was read from; NULL if it was a running process */
	const char
		*death; /* what ended the process, for a core: "SIGSEGV …"; NULL for a snapshot */
};

/* Its interpreter. */
struct run_python {
	const char *version; /* "3.12.1" */
	bool free_threaded;  /* built without the GIL */
	bool newer_than_tested;
	const char *runtime_found_by; /* how the runtime state was found: a word or phrase */
};

/* Resources that pysample itself used, from getrusage(2). */
struct run_resources {
	uint64_t cpu_user_ns;
	uint64_t cpu_sys_ns;
	uint64_t max_rss_kib;
};

/* Strings are borrowed, unescaped, as the target has them; NULL if unknown. */
struct run_info {
	struct run_pysample pysample;
	struct run_target target;
	struct run_python python;
	uint64_t start_unix_ns;	      /* CLOCK_REALTIME at stats.start_ns; 0 if unknown */
	enum profile_mode mode;	      /* mode of the run */
	enum profile_mode shown_mode; /* mode of the profile that this describes */
	bool has_states;	      /* samples of threads that wait have SAMPLE_IDLE */
	struct profile_account account;
	uint64_t shown_ns; /* weight of the samples that the mode shows */
	/* How stacks were read: "bpf", "tick", "preempt", "racing"; NULL for a core. */
	const char *engine;
	double requested_hz; /* ticks per second requested; 0: as fast as possible */
	struct run_native native;
	struct run_resources resources;
};
