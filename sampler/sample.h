/* SPDX-License-Identifier: MIT */
/*
 * The data model between the sampler and whatever consumes samples. Data only.
 *
 * A tick is one instant for the whole process; a sample is what one thread did
 * at it. Frames are kept outermost first: a thread's consecutive samples share
 * their outer frames, so a consumer that keeps a tree needs to look only at the
 * frames behind nr_unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/clock.h"
#include "sampler/cpython/base/frame.h"
#include "sampler/histogram.h"

/*
 * A thread of the target, valid during the sink's call. Who keeps something for each
 * thread keeps it by slot, so that it need not grow with every thread that there ever was.
 */
struct sample_thread {
	uint32_t id;		/* 0, 1, 2, … in the order first seen; never reused */
	uint32_t slot;		/* no other thread's while this one has samples; then another's */
	pid_t tid;		/* OS thread id in our PID namespace; 0 if not known */
	uint64_t ident;		/* the C library's: its pthread_t; 0 if not known */
	int64_t interpreter_id; /* 0 is the main interpreter */
	/*
	 * What Python's threading calls it, UTF-8, control characters not escaped; else
	 * os_name. It may change: sample_sink_ops.renamed().
	 */
	char name[THREAD_NAME_MAX_BYTES];
	char os_name[16]; /* what the kernel calls it (comm) when first seen; not escaped */
	bool is_named;	  /* name is threading's */
	bool is_main;	  /* the main thread of its process */
};

enum sample_flags {
	SAMPLE_HOLDS_GIL = 1u << 0,
	SAMPLE_UNPROVEN = 1u << 1,	/* only in dumps: the thread ran while it was read, or its
				      stack could not be followed (error) */
	SAMPLE_WAITS_FOR_GIL = 1u << 2, /* 3.15; as of when the thread last ran, or was last read */
	SAMPLE_GC = 1u << 3,		/* collects garbage: SAMPLE_GC_NAME is among the frames */
	SAMPLE_EXCEPTION = 1u << 4,	/* handles an exception, or one is on its way up; what only
					   a generator handles counts if that was asked for */
	SAMPLE_CPU_MEASURED = 1u << 5,	/* cpu_ns says how much, be it 0 */
	SAMPLE_ON_CPU = 1u << 6,	/* has run since its previous sample: cpu_ns is not 0 */
	SAMPLE_FINALIZES = 1u << 11,	/* only in dumps: ends the interpreter (3.7+) */
	/* Its stack was read while the thread could run: sampler/racing/racing.h. */
	SAMPLE_APPROXIMATE = 1u << 13,
	/*
	 * Runs in code that CPython's JIT made (3.14+), or in C functions that it called: the line
	 * of the innermost Python frame is that of the last instruction that was written back, and
	 * may be some statements late. Told with C frames only.
	 */
	SAMPLE_IN_JIT = 1u << 12,
	/* Only in dumps of core files: */
	SAMPLE_CRASHED = 1u << 7, /* the process died of a signal that this thread got */
	SAMPLE_GAPS = 1u << 10, /* some frames have "<… not in the core>" in the place of what is */
	SAMPLE_BRIDGED = 1u << 9, /* links between frames were missing: the outer ones are what lies
				     in the thread's data stack */
	SAMPLE_C_STACK_MISSING = 1u << 8, /* the core lacks its C stack, or has zeros for it */
};

/* The frame of the garbage collector: a function without a path, of line 0. */
#define SAMPLE_GC_NAME "<GC>"

/* An exception that a thread handles, or that is on its way up. Control characters not escaped. */
struct sample_exception {
	const char *type_name;
	const char *message; /* what str() gives, so far as that can be told */
};

/* What one thread did at one tick. Valid only during sample_sink_ops.sample(). */
struct sample {
	uint64_t time_ns; /* the tick: CLOCK_MONOTONIC, the same for all threads of it */
	uint64_t wall_ns; /* its weight: the time that no sample of the thread before it has told */
	uint64_t cpu_ns;  /* CPU time since this thread's previous sample; 0 if not measured */
	const struct sample_thread *thread;
	const struct frame *frames;	    /* outermost first */
	const struct frame_detail *details; /* one for each of frames; NULL: not asked for */
	uint32_t nr_frames;		    /* 0: a thread that runs no Python code */
	uint32_t nr_unchanged; /* so many outermost frames equal this thread's previous sample's */
	uint32_t flags;	       /* enum sample_flags */
	const struct sample_exception *exception; /* in a dump with details; NULL: none */
	/*
	 * Why the stack could not be followed to its bottom, in a dump; frames are then
	 * the innermost ones, if there are any, and flags has SAMPLE_UNPROVEN. 0;
	 * -EAGAIN or -EBADMSG (they do not hang together), -EFAULT (memory that had to
	 * be there was not), -E2BIG (too many, or in a circle).
	 */
	int error;
};

/* What a task of asyncio does. Valid only during sample_sink_ops.task(). */
struct task_sample {
	uint64_t addr;			    /* of its object: no two tasks have the same one */
	const char *name;		    /* UTF-8, control characters not escaped */
	const struct sample_thread *thread; /* of its event loop; NULL: that thread has ended */
	bool running;			    /* its thread executes it, else it is suspended */
	/*
	 * The coroutine of the task, what that one awaits, and so on; of one that runs, what
	 * its thread executes. Outermost first.
	 */
	const struct frame *frames;
	const struct frame_detail *details; /* one for each of frames */
	uint32_t nr_frames;
	uint32_t flags;		    /* SAMPLE_UNPROVEN: it went on while it was read */
	int error;		    /* as that of a sample */
	const uint64_t *awaited_by; /* addr of the tasks that await it */
	uint32_t nr_awaited_by;
};

/* Counters of a run, exact. */
struct sampler_stats {
	uint64_t ticks;	       /* taken, or not needed as dumps told of all threads */
	uint64_t late_ticks;   /* skipped because their time had passed */
	uint64_t failed_ticks; /* begun, but the list of threads was in motion, or gone */
	uint64_t samples;      /* stacks accepted */
	uint64_t approximate;  /* of these, those that racing has told */
	uint64_t lost[NR_SAMPLE_LOSSES];
	uint64_t cached;	   /* walks that kept the outer frames: frame_cache.h */
	uint64_t writes;	   /* words that were written to the target for that */
	uint64_t reads;		   /* system calls that read memory */
	uint64_t clock_reads;	   /* of CPU clocks, a system call each */
	uint64_t clockless;	   /* threads whose CPU time could not be measured */
	uint64_t rough_clocks;	   /* threads whose CPU clock is told at timer ticks only */
	uint64_t other_syscalls;   /* the sampling loop's others: sleeps, checks of the process,
				     what names a new thread */
	uint64_t start_ns;	   /* CLOCK_MONOTONIC at the first tick */
	uint64_t first_sample_ns;  /* and when the first sample had been handed on; 0 before */
	uint64_t end_ns;	   /* and at the end */
	struct histogram lateness; /* ns from the deadline of each tick that was not skipped */
	uint64_t p50_lateness_ns;  /* of it, at the end of the run */
	uint64_t p99_lateness_ns;
};

struct sample_sink;

/* What consumes samples. A negative errno from any of them ends the run. */
struct sample_sink_ops {
	/*
	 * sampler_dump() is about to read the stack of a thread; its sample comes next, unless it
	 * has ended meanwhile. NULL: never mind.
	 */
	void (*look)(struct sample_sink *sink, const struct sample_thread *thread);

	/*
	 * One sample; called for every thread of a tick, then for the next tick. To sampler_dump()
	 * it may return -EAGAIN: the thread has gone on meanwhile, and is looked at once more.
	 */
	int (*sample)(struct sample_sink *sink, const struct sample *sample);

	/* A thread that samples of may have come has another name now. NULL: never mind. */
	void (*renamed)(struct sample_sink *sink, const struct sample_thread *thread);

	/*
	 * A tick is over, at now_ns, whether any sample came of it or not, or a tenth of a second
	 * is since this was called last: the time for what is to be done now and then. NULL:
	 * nothing is.
	 */
	int (*tick)(struct sample_sink *sink, uint64_t now_ns);

	/* A task, of sampler_dump_tasks(). NULL: not for this sink. */
	int (*task)(struct sample_sink *sink, const struct task_sample *task);
};

/* The first member of every sink. */
struct sample_sink {
	const struct sample_sink_ops *ops;
};
