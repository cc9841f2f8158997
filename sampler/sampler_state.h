/* SPDX-License-Identifier: MIT */
/*
 * The inside of a sampler, private to the files that implement it. sampler_tick.c takes ticks,
 * sampler_dump.c dumps threads, sampler_tasks.c dumps asyncio tasks, sampler_thread.c has what
 * these share for one thread, and sampler_identity.c identifies threads. sampler_interrupts.c and
 * sampler_native.c are optional parts of a run: they include this file, which only declares
 * their names.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/sched/cpu_clock.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/cached_sample.h"
#include "sampler/cpython/base/addr_map.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/frame_cache.h"
#include "sampler/preempt.h"
#include "sampler/racing/racing.h"
#include "sampler/sample_ids.h"
#include "sampler/sampler.h"
#include "sampler/snapshot.h"
#include "sampler/ticker.h"

/* CPU-time accounting of one thread. */
struct cpu_account {
	struct cpu_clock clock;
	uint64_t last_ns; /* clock value at the last emitted sample; valid if has_last */
	bool has_last;
	uint64_t paused_ns; /* clock value when the pause began; valid if has_paused */
	bool has_paused;
};

#define NOT_COLLECTING UINT32_MAX

/*
 * Limit on a thread's list of handled exceptions, which has one item per nested generator. A
 * longer list is damaged.
 */
#define EXC_ITEMS_MAX 64

/* Addresses learnt about None, which never moves. All zero: nothing is known. */
struct known_none {
	remote_addr addr;
	remote_addr other_addr; /* the last object that was found not to be None */
};

/* What the current or the last look found out about a thread. */
struct walked_thread {
	bool is_whole; /* the whole stack is in the list; otherwise loss is the reason */
	enum sample_loss loss;
	uint32_t flags; /* enum sample_flags: GIL and exceptions */
	/* number of visible frames below the garbage collector, or NOT_COLLECTING */
	uint32_t collector;
};

/* The last emitted sample of a thread, as far as the next one needs it. */
struct emitted_sample {
	struct frame *frames; /* owned; the visible frames, outermost first */
	uint32_t nr_same;     /* leading frames that are still those of the last emitted sample */
	uint32_t flags;	      /* walked.flags */
	uint32_t collector;   /* walked.collector */
};

/* Which part of a thread's time its samples account for. All but last_ns: with interrupts only. */
struct accounted_time {
	uint64_t last_ns;     /* time of the last emitted sample; 0: none yet */
	uint64_t covered_ns;  /* samples account for all time up to here */
	uint64_t lost_ns;     /* part of that which was lost since the last sample */
	uint64_t deferred_ns; /* part of that which the next interrupt's sample accounts for */
	int64_t uncounted_ns; /* time of looks beyond one period per sample; may be < 0 */
	bool was_interrupted; /* the last sample came from an interrupt */
};

/* What the kernel last said about whether a thread waits. */
struct thread_activity {
	bool has_run;	   /* its next sample is of a moment at which it ran */
	bool waits;	   /* it was idle at its last sample */
	uint64_t at_ns;	   /* when that was known; valid if waits */
	uint64_t asked_ns; /* time of the tick in which the kernel was asked the next one */
	bool is_covered;   /* sampler_interrupts_covers() */
};

/* How often a thread has run, and whether it waits; all zero: unknown. */
struct thread_runs {
	bool is_open;
	int fd;			      /* of the count; owned; valid if is_open */
	uint64_t nr;		      /* the count at the last reading */
	bool was_waiting;	      /* the thread was seen waiting after that */
	bool has_place, has_no_place; /* its file is open; it cannot stay open */
	int place_fd;		      /* of wait_place_open(); owned; valid if has_place */
};

/* The room for a thread's visible frames, and which of them are converted. */
struct frame_room {
	uint32_t max_frames;
	uint32_t most_frames;  /* maximum length of the list in the current ROOM_WALKS walks */
	uint32_t nr_walks;     /* number of walks so far, up to ROOM_WALKS */
	uint32_t nr_converted; /* number of frames of the list already converted into frames */
	uint32_t nr_listed;    /* length of the list when it was last converted */
};

/* Who a thread is, beside its description. */
struct thread_identity {
	pid_t own_tid;	    /* thread id in its own PID namespace; 0: unknown */
	uint64_t first_ns;  /* time of the tick before it was first seen */
	uint32_t nr_named;  /* number of times its name was looked up; NAMED_AT_END: no more */
	bool needs_os_name; /* the kernel's name has not been read yet */
};

/* What is kept of one thread from tick to tick. Repeating its last sample needs the first three. */
struct sampled_thread {
	struct sample_thread *info; /* owned; of the slot's last thread; NULL: none yet */
	struct emitted_sample last;
	struct accounted_time time;
	struct walked_thread walked;
	struct cpu_account cpu;
	struct thread_activity activity;
	struct thread_runs runs;
	/* borrowed; the thread that its interrupts belong to; NULL: none */
	struct snapshot_thread *followed;
	struct cached_sample cached; /* the last sample with C frames while it waits */
	bool cached_is_own;	     /* its frames were on the thread's own stack */
	uint64_t cached_current;     /* its state's word at thread_current_offset() then */
	struct frame_list list;
	struct frame_room room;
	struct thread_identity identity;
};

/* What identifies threads; each list is as old as a refresh of the snapshot, or 0: never made. */
struct identities {
	struct sample_ids *ids; /* own_ids, unless they are shared */
	struct sample_ids own_ids;
	uint32_t process;		   /* as in struct sample_thread */
	bool is_in_other_namespace;	   /* the target is in another PID namespace */
	struct process_thread *os_threads; /* the kernel's list of threads; owned */
	size_t nr_os_threads;
	uint64_t os_threads_refresh;	/* snapshot.nr_refreshes when os_threads was read */
	struct addr_map idents;		/* ident to the oldest snapshot thread that has it */
	uint64_t idents_refresh;	/* snapshot.nr_refreshes when idents was built */
	struct pthread_layout pthreads; /* before 3.11: where the C library keeps thread ids */
	uint64_t pthreads_refresh;	/* snapshot.nr_refreshes when it was learnt */
	uint32_t nr_os_names_left;	/* number of kernel names that this tick may still read */
	bool has_new_threads;		/* there are threads whose names were not looked up */
	uint32_t nr_retries;   /* number of times that unknown threads were identified again */
	uint64_t retry_ns;     /* when that is due */
	uint64_t names_due_ns; /* when the names of new threads are read again; 0: never */
};

struct tick_times {
	uint64_t now_ns;	/* the current tick */
	uint64_t last_ns;	/* the last tick; 0: none yet */
	uint64_t late_ns;	/* delay of the current tick */
	uint64_t cut_ns;	/* when a tick is cut off; UINT64_MAX: never */
	uint64_t last_look_ns;	/* the last look in a run with interrupts */
	uint64_t last_check_ns; /* the last time the memory was found to be the same program's */
	uint32_t nr_still;	/* ticks in a row in which no thread had moved */
	uint64_t used_ns;	/* measured CPU time of the samples of this tick */
};

/* Whether no thread has run since the last look: sampler_standstill.c. */
struct standstill {
	bool is_proven;
	bool is_impossible;  /* some thread's run count cannot be read */
	uint64_t process_ns; /* CPU time of the process at the last reading */
};

/* Which C stack is whose, found out between looks. */
struct stack_search {
	struct thread_stack first; /* the first thread's, as mapped when the target was opened */
	bool has_pending;	   /* some thread's stack has a pending_addr */
	uint64_t due_ns;	   /* when pending addresses may be looked up */
};

/* The pauses of the run (sampler_limits.pause). */
struct sampler_pause {
	bool is_on;
	uint64_t begin_ns;
	uint64_t sum_ns; /* of those that are over */
};

struct sampler {
	const struct process *process; /* borrowed; may be NULL */
	const struct py_build *build;  /* borrowed */
	struct snapshot snapshot;
	struct code_cache codes;
	struct frame_cache cache;
	struct sampled_thread *threads; /* indexed by slot */
	uint32_t nr_threads;
	struct identities identities;
	struct tick_times tick;
	struct sampler_pause pause;
	struct standstill standstill;
	struct stack_search stacks;
	bool is_racing;	       /* the racing engine: no CPU is held */
	struct racing *racing; /* owned; NULL: not used yet */
	struct sampler_extras extras;
	struct sampler_native *native; /* borrowed; NULL: no C frames */
	struct task_roots *roots;      /* owned; NULL: samples are not rooted at tasks */
	/* borrowed; NULL: running threads are sampled by looks */
	struct sampler_interrupts *interrupts;
	struct variable_reader *variables; /* of a dump with variables; otherwise NULL */
	const struct function *collector;  /* in the table of codes; NULL: not created yet */
	struct known_none none;
	struct sampler_stats stats;
};

/*
 * Limit on the cost of reading names in one tick: 16 threads are looked up, which takes 0.5 ms,
 * and the kernel's names of 16 new threads are read, with four system calls each. The rest waits
 * for the next ticks.
 */
enum { MAX_NAMES_PER_TICK = 16 };

/*
 * Limit on the memory reads of one reading of names: a fixed number, plus a number for each
 * thread that may be looked up. A name takes about 25 reads. Searching all modules that are
 * considered takes half of the fixed number, and a new interpreter about a hundred reads. The
 * time is limited as well, for a dump and for the end of a run. Threads beyond the limit keep
 * their names.
 */
enum { NAMES_BASE_READS = 16384, READS_PER_NAME = 256 };

/*
 * A thread without an interrupt or a copy for this percentage of a period has not run all the
 * time: it may wait. The interrupts and copies of a running thread come a little later than each
 * period. With 200, threads that compete for the GIL were shown to hold it for 160 % of the time;
 * with 125, for 120 %.
 */
enum { MAX_UNSEEN_PERCENT = 125 };

/*
 * Only ticks find new and ended threads, their names, and new interpreters. So there is a look at
 * least this often, even if interrupts or copies cover all threads.
 */
#define LOOK_PAUSE_MAX_NS 100000000u

/* Pause before a thread list that changes is read again. */
#define REFRESH_PAUSE_US 1000

/* Whether an error of a tick may be gone at the next one: the lists were changing. */
static inline bool sampler_is_transient(int err)
{
	return err == -ENOENT || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/*
 * Number of walks after which room for frames is given back: a thread keeps the room that its
 * deepest stack of the last ROOM_WALKS to 2 * ROOM_WALKS walks needs.
 */
enum { ROOM_WALKS = 4096 };

/*
 * Find out which thread a state is of, and follow it. For a state whose thread was not known when
 * it was new: right after a fork it still names the thread of the parent.
 */
void sampler_thread_identify(struct sampler *sampler, struct snapshot_thread *thread);

/* Give a new thread its slot and description. Returns 0 or -ENOMEM. */
int sampler_thread_begin(struct sampler *sampler, struct snapshot_thread *thread);

/*
 * Identify a thread. Sets sampled->identity.own_tid, the id in its own namespace, and in
 * sampled->info, which must be zero otherwise, the interpreter, the id in our namespace, the
 * kernel's name, and the same name as name. An unknown id is 0, an unknown name "". If
 * nr_os_names_left is 0, sets needs_os_name instead of reading the kernel's name, except for a
 * main thread.
 */
void sampler_identify(struct sampler *sampler, const struct snapshot_thread *thread,
		      struct sampled_thread *sampled);

/*
 * Read the names that Python's threading module gives all threads, for a dump or, with is_last,
 * at the end of a run; threads that were not looked up yet come first. A thread without such a
 * name keeps the kernel's. Reports changed names to sink, which may be NULL. Ignores *stop.
 * Returns 0, also if there are no names or not all fit the limits of a reading; -ENOMEM, -ESRCH,
 * -EPERM.
 */
int sampler_names_read(struct sampler *sampler, struct sample_sink *sink, bool is_last);

/*
 * Read names at the end of a tick, of at most MAX_NAMES_PER_TICK threads. New threads are looked
 * up at once, and once more at the first tick 100 ms later: a thread state is listed before
 * threading knows its thread, and a thread may be named after its start. Reports changed names to
 * sink, which may be NULL. Stops at *stop and at the run's cut-off. Errors of
 * sampler_names_read().
 */
int sampler_names_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns);

/*
 * Between looks: find out whose C stacks the pending addresses are on, in at most a fiftieth
 * of the time. is_urgent: now.
 */
void sampler_resolve_stacks(struct sampler *sampler, bool is_urgent);

/*
 * Within a look: walk the stack of a thread, whose state was read, into its list, and set
 * sampled->walked. Returns 0, whether the stack could be walked or not; -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_thread_walk(struct sampler *sampler, struct snapshot_thread *thread);

/*
 * After a look that could not prove that a thread stood still: read its stack while it may run,
 * and emit that. Errors of sampler_tick().
 */
int sampler_thread_sample_racing(struct sampler *sampler, struct snapshot_thread *thread,
				 uint64_t now_ns, struct sample_sink *sink);

/*
 * Set in sampled->walked what a thread does besides its stack, which is whole in its list:
 * whether it holds the GIL or waits for it, handles an exception, and collects garbage. All of
 * that comes from the copied state, except for exceptions that only generators handle.
 */
void sampler_thread_set_flags(struct sampler *sampler, const struct snapshot_thread *thread);

/*
 * The address of the innermost exception that a thread handles, or else of the one that is being
 * raised; 0: none, or unknown. Follows the list of exceptions to its end.
 *
 * Source: _PyErr_GetTopmostException() in Python/errors.c.
 */
remote_addr sampler_thread_exception(struct sampler *sampler, const struct snapshot_thread *thread);

/*
 * Look at one thread outside of a tick, and leave its stack in its list. is_proven_elsewhere: the
 * caller proves that the thread stood still. Returns 0; -EBADMSG (it could not be walked or
 * proven), -ENOENT (the thread has ended), -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_thread_look(struct sampler *sampler, struct snapshot_thread *thread,
			bool is_proven_elsewhere);

/* Whether the stack in the list differs from the one that was emitted last. */
static inline bool sampler_stack_moved(const struct sampled_thread *sampled)
{
	return sampled->list.nr_unchanged < sampled->list.nr_frames ||
	       sampled->list.nr_frames != sampled->room.nr_listed;
}

/*
 * Begin a run, which sampler_finish() ends: prepare the engine, and find out where the target is.
 * preempt holds CPUs for engine preempt, and is borrowed until then; NULL: looks hold no CPU.
 * is_alone: there is time for looks before the first tick.
 * Returns 0; -ENOTSUP: the target's CPU cannot be taken, *ret_end says why, and there is no run;
 * -ENOMEM or an error of interrupts_enable().
 */
int sampler_begin(struct sampler *sampler, enum sampler_engine engine, struct preempt *preempt,
		  struct sample_sink *sink, bool is_alone, enum sampler_end *ret_end);

/* Take the tick if it is due, or what cannot wait for it. Errors of sampler_tick(). */
int sampler_wake(struct sampler *sampler, struct sample_sink *sink, struct ticker *ticker,
		 uint64_t now_ns, bool is_due);

/*
 * End the run of a sampler at end_ns, or earlier: emit the last records and read names. Returns 0,
 * -ENOMEM, or what the sink returned.
 */
int sampler_finish(struct sampler *sampler, struct sample_sink *sink, struct ticker *ticker,
		   uint64_t end_ns, enum sampler_end end);

/*
 * Emit the stack in the thread's list to sink. The caller sets time_ns, flags and error of
 * sample. Returns 0, -ENOMEM, or what the sink returned.
 */
int sampler_thread_emit(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink);

/* The details that a dump reports of one frame. */
struct frame_detail frame_detail_of(const struct code_cache *codes,
				    const struct walked_frame *walked);

struct variable_reader;

/*
 * The details of each frame of a sample, whose frames are those of list as sampler_thread_emit()
 * shows them. entries are those of list; variables may be NULL for none. *ret_details is
 * allocated, and the caller frees it. Returns 0; -ENOMEM, and with variables -ESRCH, -EPERM.
 */
int sample_details(const struct code_cache *codes, const struct frame_list *list,
		   const struct loop_entry *entries, struct variable_reader *variables,
		   const struct sample *sample, struct frame_detail **ret_details);

/*
 * Emit the thread's last sample again: it has not moved since. has_not_run: so its clock says,
 * and need not be read. Returns 0 or what the sink returned.
 */
int sampler_thread_repeat(struct sampler *sampler, const struct snapshot_thread *thread,
			  uint64_t time_ns, bool has_not_run, struct sample_sink *sink);

/*
 * Emit a sample of the thread and count it as its last one. Sets thread, cpu_ns and its flags,
 * and wall_ns if it is 0. Returns what the sink returned.
 */
int sampler_thread_send(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink);

/*
 * After an interrupt: walk the steps in the thread's list, whose ends are given, and set
 * sampled->walked. Errors of sampler_thread_walk().
 */
int sampler_thread_walk_steps(struct sampler *sampler, struct snapshot_thread *thread,
			      const struct stack_ends *ends);

/*
 * Let the next interrupt of a thread account for its time since the last sample: the thread could
 * run but was not switched in, and no look can read its stack.
 */
void sampler_thread_defer_time(struct sampled_thread *sampled, uint64_t now_ns);

/*
 * Set the weight of an interrupt's sample: the period of CPU time after which the interrupt
 * comes, plus what was lost since the sample before.
 */
void sampler_thread_weigh(const struct sampler *sampler, struct sampled_thread *sampled,
			  uint64_t period_ns, struct sample *sample);

/* Functions of sampler_interrupts.c for the loop of a run. */

/*
 * At the beginning of a run: let threads be interrupted, and their samples go to sink, which is
 * borrowed until sampler_interrupts_end(). Returns 0 or the errno of a system call.
 */
int sampler_interrupts_begin(struct sampler_interrupts *interrupts, struct sample_sink *sink);

/* Stop or continue to interrupt threads. Returns 0 or the errno of a system call. */
int sampler_interrupts_enable(struct sampler_interrupts *interrupts, bool is_on);

/* After the run: stop that, drop what was not drained, and count the losses. */
void sampler_interrupts_end(struct sampler_interrupts *interrupts);

/*
 * Update the program's list of threads, and of interpreters with a GIL of their own. Returns 0 or
 * -ENOMEM.
 */
int sampler_interrupts_follow(struct sampler_interrupts *interrupts);

/* The thread list has changed: ignore records until the threads are followed again. */
void sampler_interrupts_forget(struct sampler_interrupts *interrupts);

/*
 * Emit the samples of all pending interrupts, also those of other samplers that share the program.
 * Each sampler has them go to the sink of its own run, and returns its own errors only, also those
 * met while another one drained. Errors of sampler_tick().
 */
int sampler_interrupts_drain(struct sampler_interrupts *interrupts);

/* At the end of a tick: later interrupts see everything that was read so far. */
void sampler_interrupts_end_reads(struct sampler_interrupts *interrupts);

/*
 * Whether a thread needs a look. One that waits needs one at every tick, so that it gets as many
 * samples as one that runs; one that ran needs one after MAX_UNSEEN_PERCENT of a period
 * without a record, since it may wait then.
 */
bool sampler_interrupts_needs_look(const struct sampler_interrupts *interrupts,
				   const struct snapshot_thread *thread, uint64_t now_ns);

/*
 * Whether a thread is runnable: even if it stands still in a look, because it gave way to the
 * sampler, its interrupts account for its time. False for one that was unseen for too long to be
 * running. The kernel is asked once a tick, whose time is now_ns.
 */
bool sampler_interrupts_covers(const struct sampler_interrupts *interrupts,
			       const struct snapshot_thread *thread, uint64_t now_ns);

/*
 * The number of samples that wall_ns of a thread stands for: at least one, and one per period in
 * the long run. The remainder, positive or negative, is carried over in *uncounted_ns.
 */
uint32_t sampler_interrupts_nr_periods(const struct sampler_interrupts *interrupts,
				       uint64_t wall_ns, int64_t *uncounted_ns);

/* At the end of a tick's records: whether any thread needs a look. */
bool sampler_interrupts_any_needs_look(struct sampler_interrupts *interrupts, uint64_t now_ns);

/*
 * Until when no tick is needed, since all threads run and there is room for their records. 0: a
 * tick is needed.
 */
uint64_t sampler_interrupts_covered_until(const struct sampler_interrupts *interrupts,
					  uint64_t now_ns);

/* Functions of sampler_standstill.c. */

/* Close the files of a thread that has ended; accepts runs that are all zero. */
void thread_runs_close(struct thread_runs *runs);

/* Read where a thread waits, from its open file if possible. Errors of wait_place_read(). */
int thread_runs_place(const struct sampler *sampler, struct thread_runs *runs, pid_t tid,
		      uint64_t nr_runs, struct wait_place *ret_place);

/*
 * After a tick in which no thread had moved: note how often each has run. If none has since the
 * tick before, standstill.is_proven is set.
 */
void sampler_note_standstill(struct sampler *sampler);

/* Whether that is still so now, which updates standstill.is_proven. */
bool sampler_stands_still(struct sampler *sampler);

/* Functions of sampler_pause.c for the loop of a run. */

/*
 * Begin or end a pause if is_wanted has changed. During a pause no thread is
 * interrupted, and ticker has no tick that is due. Afterwards no weight contains it. What was
 * sampled before is emitted. Errors of sampler_tick().
 */
int sampler_pause_update(struct sampler *sampler, bool is_wanted, struct ticker *ticker);

/* At the end of the run, which may be paused: the pause ends with it. */
void sampler_pause_finish(struct sampler *sampler);

/* Functions of sampler_native.c for the loop of a run. */

/* Begin to emit samples to next. */
void sampler_native_begin(struct sampler_native *native, struct sample_sink *next);

/* Sleep until time_ns or until a stack was copied. Returns false at once if none are copied. */
bool sampler_native_sleep_until(struct sampler_native *native, uint64_t time_ns);

/* Stop or continue to copy stacks. Returns 0 or the errno of a system call. */
int sampler_native_enable(struct sampler_native *native, bool is_on);

/* Follow a new thread. */
void sampler_native_add(struct sampler_native *native, const struct sample_thread *thread);

/*
 * Sample a thread at a tick. It gets a sample if its stack was not copied lately and it waits, or
 * if it runs and no stacks are copied. Errors of sampler_tick().
 */
int sampler_native_tick(struct sampler_native *native, struct snapshot_thread *thread,
			uint64_t now_ns);

/*
 * Within a look at a thread that was copied: read the evidence for whether it is still where it
 * was copied. Returns 0; -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_native_look(struct sampler_native *native, const struct snapshot_thread *thread);

/*
 * Emit the sample of an interrupt in which the kernel copied the C stack as well. Python's frames
 * are in the thread's list, chain is that of its loops if the version needs it, and count_ns is
 * the event's count. Errors of sampler_tick().
 */
int sampler_native_emit_interrupted(struct sampler_native *native,
				    const struct snapshot_thread *thread,
				    const struct loop_chain *chain, uint64_t count_ns,
				    struct sample sample);

/* Number of interrupts of a thread that fit until they are taken. */
uint32_t sampler_native_room(const struct sampler_native *native);

/* Before new threads are followed: free what threads that have ended use. */
void sampler_native_sweep(struct sampler_native *native);

/* Emit the samples of all pending copies of stacks. Errors of sampler_tick(). */
int sampler_native_drain(struct sampler_native *native, uint64_t now_ns);

/*
 * Until when no tick is needed, since all threads were copied lately and none has started since
 * the last tick. 0: a tick is needed.
 */
uint64_t sampler_native_covered_until(const struct sampler_native *native);
