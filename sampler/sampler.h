/* SPDX-License-Identifier: MIT */
/*
 * The sampling loop: one snapshot per tick, one walk per thread, and one sample to the sink for
 * each proven stack. A stack is collected as a whole before any of it is emitted. A stack that
 * cannot be proven is counted by reason and dropped, for that thread only.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/process.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/frame_cache.h"
#include "sampler/sample.h"
#include "sampler/sample_ids.h"
#include "sampler/witness.h"
#include "symbols/elf/image_source.h"

/* How the stacks of running threads are read. */
enum sampler_engine {
	ENGINE_PREEMPT, /* while their CPUs are held: preempt.h */
	ENGINE_BPF,	/* in their own interrupts: sampler_interrupts.h */
	ENGINE_TICK,	/* in the interrupts of the kernel's tick: sampler_interrupts.h */
	ENGINE_RACING,	/* while they run, approximately: racing/racing.h */
};

struct sampler_options {
	enum sampler_engine engine;
	/* END_TOO_DEEP may end the run, so that another engine can continue */
	bool ends_when_too_deep;
	/* the process has just begun, and may end soon: some more ticks at first */
	bool is_new;
	double rate_hz;
};

/* How long a run lasts. */
struct sampler_limits {
	uint64_t duration_ns;		   /* 0: until the target ends or *stop is set */
	const volatile sig_atomic_t *stop; /* borrowed; may be NULL */
	/* borrowed; may be NULL; nonzero: no samples are taken, and the duration goes on */
	const volatile sig_atomic_t *pause;
};

/* How samples show asyncio's tasks: sampler/task_roots.h. */
enum sampler_tasks {
	TASKS_NONE,
	TASKS_RUNNING, /* the stacks of threads that execute one are rooted at it */
	TASKS_ALL,     /* also samples of the tasks that wait */
};

/* What to record besides the stacks. */
struct sampler_extras {
	bool cpu; /* CPU time: a system call per sample, and a descriptor per thread */
	bool gc;  /* a frame for the garbage collector */
	/*
	 * SAMPLE_IDLE: a descriptor per thread, while there are plenty. Without interrupts also a
	 * system call per sample of a thread without the GIL, and three more if the thread has run.
	 */
	bool states;
	/* also exceptions that only generators handle: more reads, if there are any */
	bool exceptions;
	enum sampler_tasks tasks;
	bool details; /* in dumps only: sample.details */
	bool locks;   /* with details: sample.locks */
	/*
	 * With details: the variables of each frame, with at most this many characters per value;
	 * 0: none.
	 */
	uint32_t value_max_chars;
	/*
	 * In dumps only: the memory is a core file, which may lack pieces. A missing piece costs
	 * as little as possible: a name, a frame, a thread.
	 */
	bool is_core;
};

/* Why sampler_run() returned. */
enum sampler_end {
	END_DURATION, /* duration_ns is over */
	END_STOPPED,  /* *stop was set */
	END_TARGET,   /* the process has ended */
	END_REPLACED, /* its interpreter is gone: exec, even of the same program, or Py_Finalize */
	/* before the first tick: the target may run on none of the CPUs that we may use */
	END_NO_SHARED_CPU,
	END_REAL_TIME, /* before the first tick: each thread has a real-time priority above ours */
	END_TOO_DEEP,  /* a stack had more frames than this engine can record */
};

/* Whether the run ended because the sampler cannot take the target's CPU. */
static inline bool sampler_end_is_out_of_reach(enum sampler_end end)
{
	return end == END_NO_SHARED_CPU || end == END_REAL_TIME;
}

struct code_cache;
struct sampler;

/*
 * Create a sampler of the interpreter whose _PyRuntime is at runtime_addr; nothing is read yet.
 * process identifies threads and may be NULL (a tape, a core file): then only what the
 * interpreter knows of them is recorded. process, memory and build are borrowed until
 * sampler_destroy(), which accepts NULL and frees everything that samples refer to. Returns 0;
 * -ENOMEM; -ENOTSUP if the fields of an interpreter state are too far apart.
 */
int sampler_create(const struct process *process, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr,
		   struct sampler **ret_sampler);
void sampler_destroy(struct sampler *sampler);

/*
 * Prove that everything read from a live target is of one instant. maps are its mappings, and
 * images opens the files of them. Without this call the memory is assumed to stand still, like a
 * core file.
 */
void sampler_set_live(struct sampler *sampler, const struct maps *maps,
		      struct image_source *images);

/*
 * Before the first tick: use ids that are unique among all samplers that share them. ids is
 * borrowed until sampler_destroy(), and owns the functions that samples refer to. By default each
 * sampler has its own.
 */
void sampler_share_ids(struct sampler *sampler, struct sample_ids *ids);

/* Set sample_thread.process of its threads; by default 0. May change when the sink has. */
void sampler_set_process(struct sampler *sampler, uint32_t process);

/*
 * Before the first tick: the time from which the first samples account for their threads, as of a
 * process that was forked then. By default it is the first tick.
 */
void sampler_set_begin_ns(struct sampler *sampler, uint64_t begin_ns);

/* Before the first tick: set what to record besides the stacks. The default is nothing. */
void sampler_set_extras(struct sampler *sampler, const struct sampler_extras *extras);

/*
 * Sample into sink until the end. The target is checked to be the same process and program with
 * each new thread list and every 250 ms, also between ticks: samples of up to 250 ms may belong
 * to another program. A tick during which *stop is set, or that continues one second after the
 * duration, is cut off; its samples so far stay. Returns 0 and *ret_end; -EPERM, -ENOMEM, or what
 * the sink returned.
 */
int sampler_run(struct sampler *sampler, const struct sampler_options *options,
		const struct sampler_limits *limits, struct sample_sink *sink,
		enum sampler_end *ret_end);

/*
 * Take one tick now and emit its samples to sink. Returns 0; -ESRCH (the process has ended or
 * runs another program), -EPERM, -ENOMEM, -ENOENT (the interpreter is gone), or what the sink
 * returned.
 */
int sampler_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns);

/*
 * Emit one sample of every thread to sink, oldest thread first, each of its own instant. A thread
 * that cannot be proven to have stood still is looked at up to 50 times, 0.2 ms apart; after that
 * its sample is marked SAMPLE_UNPROVEN, with an error if the stack could not be followed to its
 * end. Threads that end meanwhile are left out. A thread list that changes while it is read is
 * read again for up to a fifth of a second. Errors of sampler_tick().
 */
int sampler_dump(struct sampler *sampler, struct sample_sink *sink);

/*
 * Get or create a function that is not Python's, for callers that add frames to samples. It
 * shares the id space of the functions in samples, and their lifetime. NULL: out of memory.
 */
const struct function *sampler_function(struct sampler *sampler, enum function_kind kind,
					const char *qualname, const char *path);

/* The code objects met in stacks; borrowed, and valid until the next call. */
const struct code_cache *sampler_codes(const struct sampler *sampler);

/* Why the last dump with extras.is_core may lack threads; 0: it is complete. */
int sampler_list_error(const struct sampler *sampler);

/*
 * After sampler_dump(): emit every asyncio task to sink, thread by thread and oldest first, then
 * those of threads that have ended. maps are the target's mappings. A task that runs while it is
 * read is read again a few times, and then marked SAMPLE_UNPROVEN; one that ends is left out.
 * *ret_complete: no task is known to be missing. It is false if lists of tasks kept changing,
 * could not be read, or were longer than TASKS_MAX.
 *
 * Returns 0; -ENOTSUP (supported for 3.14 and 3.15 only), -ESRCH, -EPERM, -ENOMEM, or what the
 * sink returned.
 */
int sampler_dump_tasks(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
		       bool *ret_complete);

/*
 * The counters so far; borrowed. They are valid during sampler_run() as well, except for end_ns,
 * which is set at the end of a run, and the quantiles of the lateness, which sampler_stats_add()
 * computes. reads is 0, and other_syscalls is without the memory's checks: only the memory knows
 * these.
 */
const struct sampler_stats *sampler_stats(const struct sampler *sampler);

/* The ways in which looks at thread tid of a live target can be proven. */
struct witness_proofs sampler_probe_proofs(const struct sampler *sampler, pid_t tid);

/*
 * Whether thread states were found to be run by other threads than those that they name. The
 * stacks of such states cannot be proven while they run (sampler/snapshot.h).
 */
bool sampler_has_foreign_runners(const struct sampler *sampler);

/*
 * Number of looks that proved nothing because a thread was on a CPU that the sampler may not use.
 */
uint64_t sampler_nr_unreachable(const struct sampler *sampler);

/* Why outer frames are walked at every look; CACHE_USABLE: they are not. */
enum frame_cache_reason sampler_cache_reason(const struct sampler *sampler);

/*
 * Add the counters of one run to those of others, in any order; sum is all zero before the first.
 * The sum lasts from the earliest start to the latest end.
 */
void sampler_stats_add(struct sampler_stats *sum, const struct sampler_stats *stats);
