/* SPDX-License-Identifier: MIT */
/*
 * The inside of a sampler, for the files that make it up: sampler_run.c takes ticks, sampler_dump.c
 * the looks of a dump and sampler_tasks.c asyncio's tasks; sampler_thread.c does what all do for a
 * thread, and sampler_identity.c says who it is. sampler_interrupts.c and sampler_natives.c are what
 * a run may have besides; they include this, and it knows their names only.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/sched/cpu_clock.h"
#include "sampler/cpython/base/addr_map.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/frame_cache.h"
#include "sampler/preempt.h"
#include "sampler/racing/racing.h"
#include "sampler/sampler.h"
#include "sampler/snapshot.h"
#include "sampler/ticker.h"
#include "sampler/waiting_sample.h"

/* The CPU time of a thread. */
struct cpu_account {
	struct cpu_clock clock;
	uint64_t last_ns; /* at the last sample handed on, if has_last */
	bool has_last;
};

#define NOT_COLLECTING UINT32_MAX

/* The list of handled exceptions is as long as generators run one another; more is damage. */
#define EXC_ITEMS_MAX 64

/* What is known of None, which has one address for good. All zero: nothing yet. */
struct known_none {
	remote_addr addr;
	remote_addr other_addr; /* what was last found to be something else */
};

/* What the look under way, or the last one, has found of a thread. */
struct walked_thread {
	bool is_whole; /* its stack is in the list; else loss says why not */
	enum sample_loss loss;
	uint32_t flags;	    /* of enum sample_flags: of the GIL, and of exceptions */
	uint32_t collector; /* above so many visible frames it runs; NOT_COLLECTING: it does not */
};

/* What is kept of one thread from tick to tick. */
struct sampled_thread {
	/* First what handing on its last sample once more needs, so that it is one cache line. */
	struct sample_thread *info; /* owned; of the last thread in the slot; NULL: none yet */
	struct frame *frames;	    /* the stack as people see it, outermost first */
	uint64_t last_ns;	    /* time of the last sample handed on; 0: none yet */
	uint64_t told_ns;     /* with interrupts: until when its samples tell all of its time */
	uint64_t lost_ns;     /* of that, what was lost since the last sample */
	uint64_t starved_ns;  /* of that, what the next interrupt tells */
	int64_t uncounted_ns; /* what looks have told beyond a period for each of their samples */
	bool was_interrupted; /* that one is of an interrupt */
	uint32_t nr_same;     /* so many of frames are as in that one */
	uint32_t flags;	      /* of that one, as walked.flags was */
	uint32_t collector;   /* below so many frames of that one was the collector's */
	struct walked_thread walked;
	struct cpu_account cpu;
	struct snapshot_thread *followed; /* whose interrupts are of it; borrowed; NULL: none are */
	struct waiting_sample kept;	  /* of natives */
	struct frame_list list;
	uint32_t max_frames;
	uint32_t most_frames; /* list's greatest length since ROOM_TICKS began */
	uint32_t nr_walks;    /* since then */
	uint32_t nr_shown;    /* so many of list's frames have been put into frames as they are */
	uint32_t nr_listed;   /* list's length when it was shown last */
	pid_t own_tid;	      /* as it sees itself; 0 if not known */
	uint64_t first_ns;    /* the tick before it was seen first */
	uint32_t nr_named;    /* so often its name was looked for; NAMED_AT_END: for good */
	bool needs_os_name;   /* the kernel's was not read yet */
};

struct sampler {
	const struct process *process; /* borrowed, may be NULL */
	const struct py_build *build;  /* borrowed */
	struct snapshot snapshot;
	struct code_cache codes;
	struct frame_cache cache;
	struct sampled_thread *threads; /* by slot */
	uint32_t nr_threads;
	uint32_t nr_seen;	      /* threads ever; the next one's id */
	uint32_t nr_os_names_left;    /* so many of the kernel's names may be read in this tick */
	bool is_in_other_namespace;   /* the target, of PIDs, than we are */
	struct process_thread *tasks; /* the kernel's list of threads; owned */
	size_t nr_tasks;
	uint64_t tasks_refresh;		/* snapshot.nr_refreshes when they were read; 0: never */
	struct addr_map idents;		/* the oldest snapshot thread of each ident */
	uint64_t idents_refresh;	/* snapshot.nr_refreshes when that was made; 0: never */
	struct pthread_layout pthreads; /* before 3.11: where thread ids are */
	uint64_t pthreads_refresh;	/* snapshot.nr_refreshes when that was learnt; 0: never */
	bool has_new_threads;		/* whose names were not looked for */
	uint64_t names_due_ns;		/* when those of new threads are read again; 0: never */
	uint64_t now_ns;		/* of the tick under way */
	uint64_t last_tick_ns;		/* 0: none yet */
	uint64_t last_look_ns;		/* of a run with interrupts */
	uint64_t last_check_ns;	 /* of a run: when the memory was found to be the program's */
	uint64_t cut_ns;	 /* of a run with an end: when a tick is cut off; else UINT64_MAX */
	uint64_t late_ns;	 /* how late this tick began */
	struct preempt *preempt; /* of a run or a dump; owned, NULL otherwise */
	bool is_racing;		 /* no CPU is held */
	struct racing racing;
	struct own_stack first_stack; /* the first thread's, when the target was opened */
	bool wants_stacks;	      /* some thread's own_stack wants to know something */
	uint64_t stacks_due_ns;	      /* when it may be found out */
	struct sampler_looks looks;
	struct sampler_natives *natives;       /* borrowed; NULL: no C frames */
	struct sampler_interrupts *interrupts; /* borrowed; NULL: threads that run are looked at */
	struct variable_reader *variables;     /* of a dump that wants them; NULL otherwise */
	const struct function *collector;      /* in codes' table; NULL: not met yet */
	struct known_none none;
	struct sampler_stats stats;
};

/*
 * What reading names may cost. A tick looks for so many threads, 0.5 ms of work, and for so
 * many kernel's names of new ones, four system calls each; those beyond come at the next ones.
 */
enum { NAMES_OF_TICK = 16 };

/*
 * Any reading of names reads so many pieces of memory, and so many more for each thread that
 * may be looked for, whose names take about 25 then: looking once through all modules that
 * are looked at takes half of the first, an interpreter that is new some hundred. It takes so
 * long at most, a dump's and the one at the end of a run. What lies beyond keeps its name.
 */
enum { NAMES_MAX_READS = 16384, NAME_MAX_READS = 256 };

/* How long to wait before a thread list that is in motion is read again. */
#define REFRESH_PAUSE_US 1000

/* Whether an error of a tick may be gone at the next one: the lists were in motion. */
static inline bool sampler_is_passing(int err)
{
	return err == -ENOENT || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/*
 * The room for frames is that of the deepest stack in so many walks of a thread, or in as many
 * before: what was deeper longer ago is given back.
 */
enum { ROOM_TICKS = 4096 };

/* Give a thread that was not seen before its slot and its description. 0 or -ENOMEM. */
int sampler_thread_begin(struct sampler *sampler, struct snapshot_thread *thread);

/*
 * Say who a thread is: in sampled its id in its own namespace, in sampled->info, which is zero
 * else, its interpreter, its id in our namespace and what the kernel calls it, 0 and "" where
 * that cannot be told; the latter also as its name. If nr_os_names_left is used up
 * needs_os_name is set, but not for a main thread.
 */
void sampler_identify(struct sampler *sampler, const struct snapshot_thread *thread,
		      struct sampled_thread *sampled);

/*
 * Read the names that Python's threading has for all threads: for a dump, or once more at the end
 * of a run (is_last), those that were not looked for yet first. That of a thread that has none
 * stays the kernel's. sink, which may be NULL, is told of those that changed; *stop is not asked. 0
 * (also if there are no names to be read, or not all within the limits of a reading); -ENOMEM,
 * -ESRCH, -EPERM.
 */
int sampler_names_read(struct sampler *sampler, struct sample_sink *sink, bool is_last);

/*
 * Read at the end of a tick what names are due: at once those of new threads, and, since
 * a thread state is listed before threading knows its thread, and a thread may be given
 * a name after its start, once more at the first tick 100 ms later; NAMES_OF_TICK at most.
 * sink as above. *stop and the run's cut-off end it. Errors of sampler_names_read().
 */
int sampler_names_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns);

/*
 * Between looks: find out what is wanted of the C stacks of threads, if that is due: it takes a
 * fiftieth of the time at most. is_urgent: it is due.
 */
void sampler_learn_stacks(struct sampler *sampler, bool is_urgent);

/*
 * Within a look: walk the stack of a thread whose state was read into its list, and tell in
 * sampled->walked what came of it. 0 (whether it could be walked or not); -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_thread_walk(struct sampler *sampler, struct snapshot_thread *thread);

/*
 * Behind a look that could not prove that a thread stood still: read its stack while it may run,
 * and hand that on. Errors of sampler_tick().
 */
int sampler_thread_race(struct sampler *sampler, struct snapshot_thread *thread, uint64_t now_ns,
			struct sample_sink *sink);

/*
 * Tell in sampled->walked what a thread does beside its stack, which is whole in its list: whether
 * it holds the GIL or waits for it, handles an exception, and collects garbage. All of that is of
 * the copied state, but for exceptions that only generators handle.
 */
void sampler_thread_note(struct sampler *sampler, const struct snapshot_thread *thread);

/*
 * The address of the exception that a thread handles, the innermost one; else of that which is on
 * its way up; 0: there is none, or it cannot be told. Follows the list of exceptions to its end.
 *
 * Source: _PyErr_GetTopmostException() in Python/errors.c.
 */
remote_addr sampler_thread_exception(struct sampler *sampler, const struct snapshot_thread *thread);

/*
 * A look at one thread, outside of a tick: its stack is in its list then. is_proven_elsewhere: the
 * caller proves that the thread stood still. 0; -EBADMSG (it could not be walked, or not be
 * proven), -ENOENT (the thread has ended), -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_thread_look(struct sampler *sampler, struct snapshot_thread *thread,
			bool is_proven_elsewhere);

/*
 * Whether the stack is another one than was handed on last.
 */
static inline bool sampler_stack_moved(const struct sampled_thread *sampled)
{
	return sampled->list.nr_unchanged < sampled->list.nr_frames ||
	       sampled->list.nr_frames != sampled->nr_listed;
}

/*
 * Take a seat on the target's CPUs, for as long as there are looks; nothing for a memory that
 * stands still. 0 or -ENOMEM; where the seat cannot be had looks are made without.
 */
int sampler_begin_holding(struct sampler *sampler);
void sampler_end_holding(struct sampler *sampler);

/*
 * Hand what is in the thread's list to sink; of sample, time_ns, flags and error are
 * set. 0, -ENOMEM, or what the sink returned.
 */
int sampler_thread_emit(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink);

/* What a dump tells of one frame. */
struct frame_detail frame_detail_of(const struct code_cache *codes,
				    const struct walked_frame *walked);

/*
 * The same of each frame of a sample, which are those of list as sampler_thread_emit() shows them.
 * entries are those of list; variables may be NULL: none are wanted. *ret_details: allocated, to be
 * freed. 0; -ENOMEM, and with variables -ESRCH, -EPERM.
 */
struct variable_reader;
int sample_details(const struct code_cache *codes, const struct frame_list *list,
		   const struct loop_entry *entries, struct variable_reader *variables,
		   const struct sample *sample, struct frame_detail **ret_details);

/*
 * Hand on once more what the thread's last sample showed: it has not moved since. 0 or what
 * the sink returned.
 */
int sampler_thread_repeat(struct sampler *sampler, const struct snapshot_thread *thread,
			  uint64_t time_ns, struct sample_sink *sink);

/*
 * Hand on a sample of the thread as its last one, and count it: thread, cpu_ns and the flags
 * that tell of that are set here, and wall_ns if it is not yet. What the sink returned.
 */
int sampler_thread_tell(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink);

/*
 * Behind an interrupt: walk over the steps that the thread's list has, whose ends are these, and
 * tell in sampled->walked what came of it. Errors of sampler_thread_walk().
 */
int sampler_thread_take_walk(struct sampler *sampler, struct snapshot_thread *thread,
			     const struct stack_ends *ends);

/*
 * Have the time of a thread that could run, and has had no processor since its last sample, be told by
 * that of its next interrupt: where no look can tell its stack.
 */
void sampler_thread_starved(struct sampled_thread *sampled, uint64_t now_ns);

/*
 * Set what the sample of an interrupt weighs, which comes when its thread has used so much CPU
 * time: that, and what was lost since the sample before.
 */
void sampler_thread_used(const struct sampler *sampler, struct sampled_thread *sampled,
			 uint64_t period_ns, struct sample *sample);

/* Of sampler/sampler_interrupts.h, for the loop of the run. */

/* Behind the run: count what was lost. */
void sampler_interrupts_end(struct sampler_interrupts *interrupts);

/*
 * Tell the program of what has changed since: threads, and who has a GIL of its own. 0 or -ENOMEM.
 */
int sampler_interrupts_follow(struct sampler_interrupts *interrupts);

/*
 * The list of threads is not what it was: no record is of any of them, until they are followed
 * anew.
 */
void sampler_interrupts_forget(struct sampler_interrupts *interrupts);

/* Hand on the samples of all interrupts that there were. Errors of sampler_tick(). */
int sampler_interrupts_take(struct sampler_interrupts *interrupts, struct sample_sink *sink);

/* A clock for the ticker, which ends a sleep when records are to be taken before the next tick. */
struct ticker_clock sampler_interrupts_clock(struct sampler_interrupts *interrupts);

/* At the end of a tick: what is interrupted from now on knows all that was read. */
void sampler_interrupts_settle(struct sampler_interrupts *interrupts);

/*
 * Whether a thread is to be looked at: one that waits at every tick, so that it has as many samples
 * as one that runs; one that ran as soon as so much of its time is not told that it may have
 * waited.
 */
bool sampler_interrupts_miss(const struct sampler_interrupts *interrupts,
			     const struct snapshot_thread *thread, uint64_t now_ns);

/*
 * Whether a thread that stood still in a look runs all the same, as it gave way to us: its time is
 * that of its interrupts. False of one that cannot have run for so long.
 */
bool sampler_interrupts_covers(const struct sampler_interrupts *interrupts,
			       const struct snapshot_thread *thread, uint64_t now_ns);

/*
 * How many samples tell so much time of a thread: one at least, and in the long run one a period; what
 * is left over, or was told too much, goes from call to call in *uncounted_ns.
 */
uint32_t sampler_interrupts_nr_periods(const struct sampler_interrupts *interrupts,
				       uint64_t wall_ns, int64_t *uncounted_ns);

/* Whether any has, at the end of a tick's records. */
bool sampler_interrupts_miss_any(struct sampler_interrupts *interrupts, uint64_t now_ns);

/*
 * Until when no tick is needed, as all threads run and there is room for their records. 0: it is.
 */
uint64_t sampler_interrupts_put_off(const struct sampler_interrupts *interrupts, uint64_t now_ns);

/* Of sampler/sampler_natives.h, for the loop of the run. */

/*
 * Begin to hand on to next. *ret_clock is the one by which it sleeps: until the next tick, or until
 * there are dumps. False: there are none, so any clock will do.
 */
bool sampler_natives_begin(struct sampler_natives *natives, struct sample_sink *next,
			   struct ticker_clock *ret_clock);

/* Follow a thread that is new. */
void sampler_natives_add(struct sampler_natives *natives, const struct sample_thread *thread);

/*
 * The tick of a thread, whatever the tick has copied of it: it has a sample if it was not dumped
 * lately and could not run either, or if it runs and there are no dumps. Errors of sampler_tick().
 */
int sampler_natives_tick(struct sampler_natives *natives, struct snapshot_thread *thread,
			 uint64_t now_ns);

/*
 * Within a look at a thread: read what is to tell whether it is where it was when it was copied, if
 * it was. 0; -ENOMEM, -ESRCH, -EPERM.
 */
int sampler_natives_look(struct sampler_natives *natives, const struct snapshot_thread *thread);

/*
 * The sample of an interrupt in which the kernel has copied the stack, too: Python's frames are in
 * the thread's list, chain is that of its loops if the version needs it, and count_ns the event's.
 * Errors of sampler_tick().
 */
int sampler_natives_take_interrupted(struct sampler_natives *natives,
				     const struct snapshot_thread *thread,
				     const struct loop_chain *chain, uint64_t count_ns,
				     struct sample sample);

/* So many interrupts of a thread there is room for until they are taken. */
uint32_t sampler_natives_room(const struct sampler_natives *natives);

/* Before new threads are followed: give back what those take that have ended. */
void sampler_natives_sweep(struct sampler_natives *natives);

/* Hand on the samples of all dumps that there are. Errors of sampler_tick(). */
int sampler_natives_take(struct sampler_natives *natives, uint64_t now_ns);

/*
 * Until when ticks are not needed: all threads have had dumps of late, and none has come since the
 * last tick. 0: they are needed.
 */
uint64_t sampler_natives_told_until(const struct sampler_natives *natives);
