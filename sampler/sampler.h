/* SPDX-License-Identifier: MIT */
/*
 * The sampling loop: one snapshot a tick, one walk a thread, one sample to the
 * sink for each stack that was proven. A stack is collected whole before anything
 * is handed on; one that cannot be proven is counted by reason and left out, for
 * that thread only.
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
#include "sampler/witness.h"
#include "symbols/elf/image_source.h"

/* How the stacks of threads that run are read. */
enum sampler_engine {
	ENGINE_PREEMPT, /* while their CPUs are held: preempt.h */
	ENGINE_BPF,	/* in their own interrupts: sampler_interrupts.h */
	ENGINE_TICK,	/* in those of the kernel's tick: likewise */
	ENGINE_RACING,	/* while they run, approximately: racing/racing.h */
};

struct sampler_options {
	enum sampler_engine engine;
	bool may_change; /* END_TOO_DEEP may end the run: another engine goes on */
	double rate_hz;
	uint64_t duration_ns;		   /* 0: until the target ends or *stop is set */
	const volatile sig_atomic_t *stop; /* borrowed; may be NULL */
};

/* What is looked at beside the stacks. */
struct sampler_looks {
	bool cpu;    /* CPU time: a system call for each sample, and a descriptor for each thread */
	bool gc;     /* a frame for the garbage collector */
	bool states; /* each tick's own: whether it has the GIL, or handles an exception */
	bool exceptions; /* also those that only generators handle: reads, if there are any */
	bool details;	 /* in dumps only: sample.details */
	/*
	 * With details, the variables of each frame, their values in so many characters; 0: none.
	 */
	uint32_t value_max_chars;
	/*
	 * In dumps only: the memory stands still and may lack pieces, as that of a core file
	 * does. What is missing costs the least that it can: a name, a frame, a thread.
	 */
	bool still;
};

/* Why sampler_run() came back. */
enum sampler_end {
	END_DURATION,  /* the time asked for is over */
	END_STOPPED,   /* *stop was set */
	END_TARGET,    /* the process has ended */
	END_REPLACED,  /* its interpreter is gone: exec, also of the same program, or Py_Finalize */
	END_ELSEWHERE, /* before the first tick: it may run on none of the CPUs that we may use */
	END_REAL_TIME, /* before the first tick: each thread has a real-time priority above ours */
	END_TOO_DEEP,  /* a stack had more frames than this engine can tell */
};

/* Whether it came back because the sampler cannot take the target's CPU. */
static inline bool sampler_end_is_out_of_reach(enum sampler_end end)
{
	return end == END_ELSEWHERE || end == END_REAL_TIME;
}

struct code_cache;
struct sampler;

/*
 * A sampler of the interpreter whose _PyRuntime lies at runtime_addr; nothing is read
 * yet. process names threads and may be NULL (a tape, a core file): nothing is said of them then
 * but what the interpreter knows; memory, build and process are
 * borrowed until sampler_destroy(), which frees all that samples named, and accepts
 * NULL. 0; -ENOMEM, or -ENOTSUP: the fields of an interpreter state lie too far apart.
 */
int sampler_create(const struct process *process, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr,
		   struct sampler **ret_sampler);
void sampler_destroy(struct sampler *sampler);

/*
 * Prove that what is read of a live target is of one instant: its mappings are maps, and images
 * opens the files of them. Without this call the memory is taken to stand still, as a core file
 * does.
 */
void sampler_hold_target(struct sampler *sampler, const struct maps *maps,
			 struct image_source *images);

/* Say what to look at beside the stacks, before the first tick. Without it: nothing. */
void sampler_set_looks(struct sampler *sampler, const struct sampler_looks *looks);

/*
 * Sample into sink until the end. Whether the target is still the same process and
 * program is made sure of with each new thread list and every 250 ms, between ticks too:
 * samples of so long may be another program's. A tick in which *stop is set, or that goes on for
 * a second after the duration, is cut off: what was handed on of it stays. 0 and
 * *ret_end; -EPERM, -ENOMEM, or what the sink returned.
 */
int sampler_run(struct sampler *sampler, const struct sampler_options *options,
		struct sample_sink *sink, enum sampler_end *ret_end);

/*
 * Take one tick, now, and hand its samples to sink. 0; -ESRCH (the process has
 * ended or runs another program), -EPERM, -ENOMEM, -ENOENT (no interpreter there
 * any more), or what the sink returned.
 */
int sampler_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns);

/*
 * Hand one sample of every thread to sink, oldest thread first, each of an instant of its own. A
 * thread that cannot be proven to have stood still is looked at up to 50 times, 0.2 ms apart; what
 * is handed on then is marked SAMPLE_UNPROVEN, with an error if it could not be followed to its
 * end. Threads that have ended meanwhile are left out. A thread list that changes while it is read
 * is read again for a fifth of a second. Errors of sampler_tick().
 */
int sampler_dump(struct sampler *sampler, struct sample_sink *sink);

/*
 * A function that is not Python's, made if it is new, for those who put more frames into samples:
 * it has an id among those that samples name, and lives as long as they. NULL: out of memory.
 */
const struct function *sampler_function(struct sampler *sampler, enum function_kind kind,
					const char *qualname, const char *path);

/* The code objects that were met in stacks; borrowed, and valid until the next one is asked for. */
const struct code_cache *sampler_codes(const struct sampler *sampler);

/* Why the last dump with looks.still may lack threads: an error of their lists; 0: it has all. */
int sampler_list_error(const struct sampler *sampler);

/*
 * Behind sampler_dump(): hand every task of asyncio to sink, thread by thread and each thread's
 * from the oldest on, then those of threads that have ended. maps are those of the target. A task
 * that goes on while it is read is read again a few times, and marked SAMPLE_UNPROVEN at last;
 * one that ends meanwhile is left out. *ret_complete: none is missing, as far as can be told; not
 * so if lists of tasks changed all the time, could not be read, or were longer than TASKS_MAX.
 *
 * 0; -ENOTSUP (tasks are known of 3.14 and 3.15 alone), -ESRCH, -EPERM, -ENOMEM, or what the sink
 * returned.
 */
int sampler_dump_tasks(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
		       bool *ret_complete);

/*
 * The counters so far, also in the midst of sampler_run(), but for end_ns, which is of its end, and
 * the quantiles of the lateness, which sampler_stats_add() tells; borrowed. reads is left 0, and
 * other_syscalls without the memory's checks: only the memory knows.
 */
const struct sampler_stats *sampler_stats(const struct sampler *sampler);

/* In what ways looks at thread tid of a live target can be proven. */
struct witness_proofs sampler_try_proofs(const struct sampler *sampler, pid_t tid);

/*
 * Whether thread states turned out to be run by other threads than those that they name, of whose
 * stacks nothing is proven while they run (sampler/snapshot.h).
 */
bool sampler_runs_elsewhere(const struct sampler *sampler);

/* How many looks found a thread on a CPU that the sampler may not use, and proved nothing of it. */
uint64_t sampler_nr_away(const struct sampler *sampler);

/* Why outer frames are walked at every look; CACHE_USABLE if they need not be. */
enum frame_cache_reason sampler_cache_reason(const struct sampler *sampler);

/*
 * Add the counters of one run to those of runs before it; sum is all zero before the
 * first. The time of the sum goes from the first one's start to the last one's end.
 */
void sampler_stats_add(struct sampler_stats *sum, const struct sampler_stats *stats);
