/* SPDX-License-Identifier: MIT */
/*
 * The data model between the sampler and its consumers: data only. A tick is one instant for the
 * whole process; a sample is what one thread did at it. Frames are ordered outermost first.
 * Consecutive samples of a thread share their outer frames, so a consumer that keeps a tree only
 * needs to look at the frames after nr_unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/clock.h"
#include "sampler/cpython/base/frame.h"
#include "sampler/histogram.h"

/*
 * A thread of the target, valid during the sink's call. A consumer that keeps data per thread
 * should index it by slot, so that the data does not grow with the number of threads ever seen.
 */
struct sample_thread {
	uint32_t id;		/* 0, 1, 2, … in the order first seen; never reused */
	uint32_t slot;		/* unique while the thread has samples; then reused */
	uint32_t process;	/* index of its process, in the order the sink was told of them */
	pid_t tid;		/* OS thread id in our PID namespace; 0: unknown */
	uint64_t ident;		/* the C library's: its pthread_t; 0: unknown */
	int64_t interpreter_id; /* 0 is the main interpreter */
	/*
	 * The name that Python's threading module has for it, in UTF-8, control characters not
	 * escaped; otherwise os_name. It may change: sample_sink_ops.renamed().
	 */
	char name[THREAD_NAME_MAX_BYTES];
	char os_name[16]; /* the kernel's name (comm) when first seen; not escaped */
	bool is_named;	  /* name comes from threading */
	bool is_main;	  /* the main thread of its process */
};

/*
 * Bits 0 to 6 and 12 to 14 are stored in recordings (docs/formats.md): never renumber them. Bits
 * 7 to 10 are set only in samples of core files.
 */
enum sample_flags {
	SAMPLE_HOLDS_GIL = 1u << 0,
	SAMPLE_UNPROVEN = 1u << 1,	/* only in dumps: it ran while it was read, or see error */
	SAMPLE_WAITS_FOR_GIL = 1u << 2, /* 3.15; as of when the thread last ran, or was last read */
	SAMPLE_GC = 1u << 3,		/* collects garbage: SAMPLE_GC_NAME is among the frames */
	/*
	 * Handles an exception, or one is being raised. Exceptions that only a generator handles
	 * count if sampler_extras.exceptions is set.
	 */
	SAMPLE_EXCEPTION = 1u << 4,
	SAMPLE_CPU_MEASURED = 1u << 5,	  /* cpu_ns is valid, even if 0 */
	SAMPLE_ON_CPU = 1u << 6,	  /* has run since its previous sample: cpu_ns is not 0 */
	SAMPLE_CRASHED = 1u << 7,	  /* the process died of a signal to this thread */
	SAMPLE_C_STACK_MISSING = 1u << 8, /* its C stack is missing from the core, or zeroed */
	/*
	 * Links between frames were missing: the outer frames were found by their places in the
	 * thread's data stack.
	 */
	SAMPLE_BRIDGED = 1u << 9,
	SAMPLE_GAPS = 1u << 10, /* some frames show "<… not in the core>" for missing parts */
	SAMPLE_FINALIZES = 1u << 11, /* only in dumps: finalizes the interpreter (3.7+) */
	/*
	 * Runs in code of CPython's JIT (3.14+), or in C functions called by such code. The line
	 * of the innermost Python frame is that of the last instruction that was written back,
	 * and may be some statements late. Only set in samples with C frames.
	 */
	SAMPLE_IN_JIT = 1u << 12,
	/* Its stack was read while the thread could run: sampler/racing/racing.h. */
	SAMPLE_APPROXIMATE = 1u << 13,
	/*
	 * Waits: it neither holds the GIL nor is known to wait for it, and is neither on a CPU nor
	 * ready to run on one. Only set with sampler_extras.states.
	 */
	SAMPLE_IDLE = 1u << 14,
};

/* The function of the garbage collector's frame, which has no path and line 0. */
#define SAMPLE_GC_NAME "<GC>"

/* An exception that a thread handles, or that is being raised. Control characters not escaped. */
struct sample_exception {
	const char *type_name;
	const char *message; /* the result of str(), as far as it can be read */
};

/* The kinds of locks whose holder can be known. */
enum sample_lock_kind {
	SAMPLE_LOCK_THREAD,    /* threading.Lock: its object does not know who holds it */
	SAMPLE_LOCK_RECURSIVE, /* threading.RLock */
	SAMPLE_LOCK_PROCESS,   /* multiprocessing.Lock or RLock: a semaphore in shared memory */
	NR_SAMPLE_LOCK_KINDS,
};

/* A lock that a thread's frames refer to. */
struct sample_lock {
	uint64_t mutex_addr;	 /* where its mutex is if the object contains it (3.13 and newer) */
	uint64_t semaphore_addr; /* where its semaphore is if the object points to that */
	uint64_t owner_ident;	 /* of the thread that holds it (sample_thread.ident); 0: unknown */
	enum sample_lock_kind kind;
	/*
	 * A frame of this thread is inside a `with` statement on it, and no frame further in has
	 * given it up in the wait() of its Condition.
	 */
	bool is_inside;
};

/* What one thread did at one tick. Valid only during sample_sink_ops.sample(). */
struct sample {
	uint64_t time_ns; /* the tick: CLOCK_MONOTONIC, the same for all threads of it */
	uint64_t wall_ns; /* its weight: the time not covered by the thread's samples before it */
	uint64_t cpu_ns;  /* CPU time since this thread's previous sample; 0 if not measured */
	const struct sample_thread *thread;
	const struct frame *frames;	    /* outermost first */
	const struct frame_detail *details; /* one for each of frames; NULL: not requested */
	uint32_t nr_frames;		    /* 0: the thread runs no Python code */
	/* number of outermost frames equal to this thread's previous sample's */
	uint32_t nr_unchanged;
	uint32_t flags;				  /* enum sample_flags */
	const struct sample_exception *exception; /* in a dump with details; NULL: none */
	const struct sample_lock *locks;	  /* in a dump with locks, of a proven stack */
	uint32_t nr_locks;
	/*
	 * In a dump, why the stack could not be followed to its bottom; then frames has the
	 * innermost ones, if any, and flags has SAMPLE_UNPROVEN. 0: no error; -EAGAIN or
	 * -EBADMSG: the frames are inconsistent; -EFAULT: memory is missing; -E2BIG: too many
	 * frames, or a cycle.
	 */
	int error;
};

/* What an asyncio task does. Valid only during sample_sink_ops.task(). */
struct task_sample {
	uint64_t addr;			    /* of the task object; unique among the tasks */
	const char *name;		    /* UTF-8, control characters not escaped */
	const struct sample_thread *thread; /* of its event loop; NULL: the thread has ended */
	bool running;			    /* its thread executes it; otherwise it is suspended */
	/*
	 * The task's coroutine, what that awaits, and so on; for a running task, what its thread
	 * executes. Outermost first.
	 */
	const struct frame *frames;
	const struct frame_detail *details; /* one for each of frames */
	uint32_t nr_frames;
	uint32_t flags;		    /* SAMPLE_UNPROVEN: it ran while it was read */
	int error;		    /* as in struct sample */
	const uint64_t *awaited_by; /* addr of the tasks that await it */
	uint32_t nr_awaited_by;
};

/* Exact counters of a run. */
struct sampler_stats {
	uint64_t ticks;	       /* taken, or not needed since samples covered all threads */
	uint64_t late_ticks;   /* skipped because their time had passed */
	uint64_t failed_ticks; /* begun, but the thread list was changing, or gone */
	uint64_t samples;      /* accepted stacks */
	uint64_t approximate;  /* of these, samples of the racing engine */
	uint64_t lost[NR_SAMPLE_LOSSES];
	uint64_t cached; /* walks that reused the outer frames: frame_cache.h */
	uint64_t writes; /* words written to the target for that */
	uint64_t reads;	 /* system calls that read memory */
	/* reads of CPU clocks, one system call each, but for those that only prove something */
	uint64_t clock_reads;
	uint64_t clockless;    /* threads whose CPU time could not be measured */
	uint64_t rough_clocks; /* threads whose CPU clock has scheduler-tick resolution only */
	/*
	 * The sampling loop's other system calls: sleeps, checks of the process, names of new
	 * threads, states of threads.
	 */
	uint64_t other_syscalls;
	uint64_t start_ns;	   /* CLOCK_MONOTONIC at the first tick */
	uint64_t first_sample_ns;  /* when the first sample had been emitted; 0: not yet */
	uint64_t end_ns;	   /* at the end of the run */
	uint64_t paused_ns;	   /* between start_ns and end_ns: no ticks were due */
	uint64_t active_ns;	   /* the time in which ticks were due; a sum over processes */
	struct histogram lateness; /* ns after the deadline, for each tick that was not skipped */
	uint64_t p50_lateness_ns;  /* its median, at the end of the run */
	uint64_t p99_lateness_ns;
};

struct sample_sink;

/* What consumes samples. A negative errno from any of these functions ends the run. */
struct sample_sink_ops {
	/*
	 * sampler_dump() is about to read the stack of a thread; its sample comes next, unless
	 * the thread has ended. May be NULL.
	 */
	void (*before_look)(struct sample_sink *sink, const struct sample_thread *thread);

	/*
	 * One sample; called for every thread of a tick, then for the next tick. In
	 * sampler_dump() it may return -EAGAIN if the thread has moved on: then the thread is
	 * looked at again.
	 */
	int (*sample)(struct sample_sink *sink, const struct sample *sample);

	/* A thread, which may have had samples, has a new name. May be NULL. */
	void (*renamed)(struct sample_sink *sink, const struct sample_thread *thread);

	/*
	 * A tick is over, at now_ns, with or without samples, or a tenth of a second has passed
	 * since the last call: a chance for periodic work. May be NULL.
	 */
	int (*tick)(struct sample_sink *sink, uint64_t now_ns);

	/* A task, from sampler_dump_tasks(). NULL if the sink takes none. */
	int (*task)(struct sample_sink *sink, const struct task_sample *task);
};

/* The first member of every sink. */
struct sample_sink {
	const struct sample_sink_ops *ops;
};
