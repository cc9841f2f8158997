/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_interrupts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/bpf/interrupts_layout.h"
#include "sampler/bpf/interrupts_pool.h"
#include "sampler/bpf/interrupts_process.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/sampler_state.h"
#include "sampler/time_slices.h"

/* A runnable thread without a record for this many periods waits for a CPU. */
enum { STARVED_PERIODS = 4 };

/* A process is no longer new after this many periods. */
enum { NEW_PERIODS = 16 };

/*
 * Limit on the periods, and so samples, that a look may stand for. It is exceeded only if no look
 * was possible for long, because pysample was stopped; then the samples weigh more.
 */
enum { MAX_PERIODS = 1024 };

/*
 * After this many ticks in which all threads ran all the time, records are left to gather for a
 * while.
 */
enum { STEADY_TICKS = 8 };
#define GATHER_NS 100000000u

/*
 * Threads that run for less than this at a time, so many times a second, should not have events of
 * their own: setting and cancelling a timer took 2.7 µs each time (docs/evidence/free-threaded.md).
 */
#define SHORT_SLICE_NS 40000u
#define MANY_RUNS_HZ   10000u

/* How long time slices are measured: at the beginning, and later again and again. */
#define FIRST_SLICES_NS 50000000u
#define SLICES_NS	1000000000u

struct sampler_interrupts {
	struct code_reporter reporter; /* of the sampler's code cache */
	struct sampler *sampler;       /* borrowed */
	struct interrupts_process *process;
	struct interrupt_layout layout; /* of its records */
	uint64_t period_ns;
	uint64_t nr_refreshes;	   /* the snapshot's when the program got its threads */
	size_t nr_gils;		   /* number of interpreters with a GIL of their own at that time */
	uint64_t tick;		   /* of the records being drained */
	uint64_t last_tick;	   /* of the previous records */
	uint64_t drain_ns;	   /* when this drain began; records may be younger */
	uint64_t reads_end_ns;	   /* end of the last reads that went with records */
	struct sample_sink *sink;  /* NULL: no run is in progress */
	int err;		   /* of a record, until it is returned */
	uint32_t nr_steady;	   /* ticks in a row in which no thread waited */
	bool is_new;		   /* the process may end soon */
	struct time_slices slices; /* of the threads that are measured now */
	uint64_t slices_begin_ns, slices_end_ns; /* of the measurement; 0: none has begun */
	size_t slices_first;  /* index of the thread after the last one that was measured */
	bool needs_no_slices; /* nothing depends on them any more */
};

/* Updating the program. */

/* What the program needs to know about a thread's state. */
static struct interrupt_state describe(const struct sampler *sampler,
				       const struct snapshot_thread *thread)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const struct gil_place *gil = &snapshot_gil(snapshot, thread)->place;
	const struct snapshot_interpreter *interpreter =
		&snapshot->interpreters[thread->ref.interpreter];
	const uint32_t tlbc = sampler->build->tlbc.generation;

	return (struct interrupt_state){
		.addr = thread->ref.addr,
		.gil_addr = gil->addr,
		.gil_bytes = gil->addr ? gil_place_bytes(gil) : 0,
		.collector_addr = snapshot_collector_addr(snapshot, interpreter),
		.tlbc_addr = tlbc ? interpreter->ref.addr + tlbc : 0,
		.interpreter_id = (uint64_t)interpreter->ref.id,
		.slot = thread->slot,
	};
}

static int compare_tids(const void *a, const void *b)
{
	const struct interrupts_thread *left = a, *right = b;

	return (left->own_tid > right->own_tid) - (left->own_tid < right->own_tid);
}

/*
 * List all threads of the snapshot with known ids into threads, which has room for them, ascending
 * by own_tid, with the states of each together. Returns their number.
 */
static uint32_t list_threads(const struct sampler *sampler, struct interrupts_thread *threads)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	uint32_t nr = 0, nr_joined = 0, nr_states = 0;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];
		const pid_t own_tid = sampler->threads[thread->slot].identity.own_tid;

		if (own_tid)
			threads[nr++] = (struct interrupts_thread){
				(uint32_t)own_tid, {.states = {describe(sampler, thread)}}};
	}
	qsort(threads, nr, sizeof(*threads), compare_tids);
	for (uint32_t i = 0; i < nr; i++) {
		if (!nr_joined || threads[nr_joined - 1].own_tid != threads[i].own_tid) {
			threads[nr_joined++] = threads[i];
			nr_states = 1;
		} else if (nr_states < INTERRUPT_MAX_STATES) {
			threads[nr_joined - 1].thread.states[nr_states++] =
				threads[i].thread.states[0];
		}
	}
	return nr_joined;
}

/* A process that has run for some periods is no longer new. Returns 0 or -ENOMEM. */
static int settle(struct sampler_interrupts *interrupts)
{
	const uint64_t start_ns = interrupts->sampler->stats.start_ns;
	int err;

	if (!interrupts->is_new || !start_ns ||
	    clock_now_ns() - start_ns < NEW_PERIODS * interrupts->period_ns)
		return 0;
	interrupts->is_new = false;
	/* If that is not possible it just gets more interrupts. */
	err = interrupts_process_settle(interrupts->process);
	return err == -ENOMEM ? err : 0;
}

/*
 * Measure the time slices of some threads that have moved at the last look, others each time, and
 * interrupt CPUs instead of threads if they are short.
 */
static void measure_slices(struct sampler_interrupts *interrupts)
{
	const struct sampler *sampler = interrupts->sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	const uint64_t now_ns = clock_now_ns();
	size_t nr_passed = 0;
	uint64_t least_runs;

	if (interrupts->needs_no_slices || now_ns < interrupts->slices_end_ns ||
	    interrupts_use_cpus(sampler_interrupts_program(interrupts)))
		return;
	/* In ms, so that nothing overflows. */
	least_runs = (now_ns - interrupts->slices_begin_ns) / 1000000 * (MANY_RUNS_HZ / 1000);
	if (time_slices_end(&interrupts->slices, sampler->process, least_runs) < SHORT_SLICE_NS) {
		/* If that is not possible threads keep their events. */
		(void)interrupts_process_use_cpus(interrupts->process);
		interrupts->needs_no_slices = true;
		return;
	}
	for (; nr_passed < snapshot->nr_threads &&
	       interrupts->slices.nr_threads < TIME_SLICES_MAX_THREADS;
	     nr_passed++) {
		const struct snapshot_thread *thread =
			snapshot->threads[(interrupts->slices_first + nr_passed) %
					  snapshot->nr_threads];

		if (thread->tid && !thread->is_unchanged)
			time_slices_begin(&interrupts->slices, sampler->process, thread->tid);
	}
	interrupts->slices_first += nr_passed;
	interrupts->slices_begin_ns = now_ns;
	interrupts->slices_end_ns =
		now_ns + (interrupts->slices_end_ns ? SLICES_NS : FIRST_SLICES_NS);
}

int sampler_interrupts_follow(struct sampler_interrupts *interrupts)
{
	const struct snapshot *snapshot = &interrupts->sampler->snapshot;
	struct interrupts_thread *threads;
	size_t nr_gils = 0;
	int err = settle(interrupts);

	if (err)
		return err;
	measure_slices(interrupts);
	/* Looks find out which interpreters have a GIL of their own. */
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		nr_gils += snapshot->interpreters[i].has_own_gil;
	if (interrupts->nr_refreshes == snapshot->nr_refreshes && interrupts->nr_gils == nr_gils)
		return 0;
	threads = calloc(snapshot->nr_threads + 1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	sampler_interrupts_forget(interrupts);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		interrupts->sampler->threads[snapshot->threads[i]->slot].followed =
			snapshot->threads[i];
	interrupts_process_set_threads(interrupts->process, threads,
				       list_threads(interrupts->sampler, threads));
	interrupts->nr_refreshes = snapshot->nr_refreshes;
	interrupts->nr_gils = nr_gils;
	return 0;
}

void sampler_interrupts_forget(struct sampler_interrupts *interrupts)
{
	struct sampler *sampler = interrupts->sampler;

	for (uint32_t i = 0; i < sampler->nr_threads; i++)
		sampler->threads[i].followed = NULL;
	interrupts->nr_refreshes = 0;
}

/* Taking records. */

/* The thread of a record; NULL: it has ended. */
static struct snapshot_thread *find_thread(const struct sampler_interrupts *interrupts,
					   const struct interrupt_record *record)
{
	const struct sampler *sampler = interrupts->sampler;
	struct snapshot_thread *thread =
		record->slot < sampler->nr_threads ? sampler->threads[record->slot].followed : NULL;

	return thread && thread->ref.addr == record->state_addr &&
			       thread_ref_matches(&thread->ref, &sampler->build->offsets,
						  interrupt_record_state(record))
		       ? thread
		       : NULL;
}

/* Copy from the record what is not in the frames. */
static void copy_state(const struct sampler_interrupts *interrupts, struct snapshot_thread *thread,
		       const struct interrupt_record *record)
{
	struct snapshot *snapshot = &interrupts->sampler->snapshot;

	memcpy(thread->state, interrupt_record_state(record), interrupts->layout.state.head_size);
	thread->clock = (struct code_clock){
		.interp_addr = snapshot->interpreters[thread->ref.interpreter].ref.addr,
		.tick = interrupts->tick,
		.tlbc_generation = record->tlbc_generation,
		.frames_are_older = true,
		.newer_from_tick = record->time_ns > interrupts->reads_end_ns
					   ? interrupts->tick
					   : interrupts->last_tick,
	};
	snapshot_set_words(snapshot, thread, record->gil, record->collector);
}

/*
 * Walk the steps that the program took. Returns 0, whether the stack could be walked or not, or
 * -ENOMEM.
 */
static int walk(const struct sampler_interrupts *interrupts, struct snapshot_thread *thread,
		const struct interrupt_record *record)
{
	struct sampler *sampler = interrupts->sampler;
	struct frame_list *list = &sampler->threads[thread->slot].list;
	struct stack_ends ends =
		stack_ends_from_copy(sampler->build, thread->ref.addr, thread->state);
	int err = 0;

	ends.current_frame_addr = record->current_addr;
	ends.has_nr_loops = true;
	ends.nr_loops = record->nr_loops;
	list->nr_steps = 0;
	for (uint32_t i = 0; !err && i < record->nr_frames; i++) {
		const struct interrupt_frame *frame =
			interrupt_record_frame(&interrupts->layout, record, i);
		struct frame_words words =
			frame_words(&sampler->build->offsets, interrupt_frame_bytes(frame));

		words.identity = frame->identity;
		err = frame_list_add_step(list, frame->addr, &words);
	}
	return err ? err : sampler_thread_walk_steps(sampler, thread, &ends);
}

/* Emit a stack with the C frames of its interrupt, or without if none are wanted. */
static int emit(struct sampler_interrupts *interrupts, struct snapshot_thread *thread,
		const struct interrupt_record *record, struct sample sample)
{
	struct sampler *sampler = interrupts->sampler;
	struct loop_chain chain = {.nr = record->nr_loops, .is_whole = true};
	cleanup_free struct loop_place *loops = NULL;

	if (!sampler->native)
		return sampler_thread_emit(sampler, thread, sample, interrupts->sink);
	loops = reallocarray(NULL, record->nr_loops + 1ull, sizeof(*loops));
	if (!loops)
		return -ENOMEM;
	for (uint32_t i = 0; i < record->nr_loops; i++) {
		const struct interrupt_loop *loop =
			interrupt_record_loop(&interrupts->layout, record, i);

		loops[i] = (struct loop_place){loop->addr, loop->current_addr};
	}
	chain.places = loops;
	return sampler_native_emit_interrupted(
		sampler->native, thread, loop_entries_need_chain(sampler->build) ? &chain : NULL,
		record->count_ns, sample);
}

/* The CPU time that a record stands for. */
static uint64_t weight_ns(const struct sampler_interrupts *interrupts,
			  const struct interrupt_record *record)
{
	return interrupts->period_ns / record->nr_parts;
}

/* Count an interrupt without a sample; the next one accounts for its time. */
static void lose(const struct sampler_interrupts *interrupts, const struct snapshot_thread *thread,
		 const struct interrupt_record *record, enum sample_loss loss)
{
	struct sampled_thread *sampled = &interrupts->sampler->threads[thread->slot];

	interrupts->sampler->stats.lost[loss]++;
	sampled->time.covered_ns += weight_ns(interrupts, record);
	sampled->time.lost_ns += weight_ns(interrupts, record);
}

/* Emit what a walk has found, or count the reason of its loss. */
static int emit_walked(struct sampler_interrupts *interrupts, struct snapshot_thread *thread,
		       const struct interrupt_record *record)
{
	struct sampler *sampler = interrupts->sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	/*
	 * An interrupt that was in progress on another CPU when the last tick took its records
	 * gets the time of that tick.
	 */
	struct sample sample = {
		.time_ns = record->time_ns > sampler->tick.last_ns ? record->time_ns
								   : sampler->tick.last_ns,
	};
	int err;

	if (!sampled->walked.is_whole) {
		lose(interrupts, thread, record, sampled->walked.loss);
		return 0;
	}
	/* The state may be run by another thread than the interrupted one. */
	thread->proof.stood_still = true;
	if (snapshot_record_foreign(&sampler->snapshot, thread)) {
		lose(interrupts, thread, record, LOSS_MOVED);
		return 0;
	}
	sampler_thread_weigh(sampler, sampled, weight_ns(interrupts, record), &sample);
	err = emit(interrupts, thread, record, sample);
	sampled->time.was_interrupted = true;
	return err;
}

/* Bring missing memory in for the next interrupt. */
static void handle_fault(struct sampler_interrupts *interrupts,
			 const struct snapshot_thread *thread,
			 const struct interrupt_record *record)
{
	const bool is_there =
		remote_memory_fault_in(interrupts->sampler->snapshot.memory, record->fault_addr);

	/* If even the state is unmapped, the program was replaced: no stack was lost. */
	if (is_there || record->nr_loops || record->nr_frames)
		lose(interrupts, thread, record, LOSS_FAULT);
	/* Gathered records would all meet it. */
	if (is_there)
		interrupts->nr_steady = 0;
	else
		interrupts_process_ignore_fault(interrupts->process, record->fault_addr);
}

/* From now on what is read from outside belongs to a new tick. */
static void begin_reads(struct sampler_interrupts *interrupts)
{
	interrupts->drain_ns = clock_now_ns();
	interrupts->last_tick = interrupts->tick;
	interrupts->tick = ++interrupts->sampler->snapshot.instant.nr_looks;
}

static void begin_drain(void *context)
{
	struct sampler_interrupts *interrupts = context;

	interrupts_process_set_code_type(interrupts->process,
					 interrupts->sampler->codes.code_type_addr);
	begin_reads(interrupts);
}

static int take_stack(struct sampler_interrupts *interrupts, const struct interrupt_record *record)
{
	struct snapshot_thread *thread = find_thread(interrupts, record);
	int err;

	if (!thread)
		return 0;
	/* It is newer than this drain: what was read for earlier records may be stale for it. */
	if (record->time_ns > interrupts->drain_ns) {
		begin_reads(interrupts);
		interrupts->reads_end_ns = interrupts->drain_ns;
	}
	thread->proof.is_known = false;
	interrupts->sampler->tick.nr_still = 0;
	if (record->end == INTERRUPT_FAULT) {
		handle_fault(interrupts, thread, record);
		return 0;
	}
	if (record->end != INTERRUPT_WHOLE) {
		lose(interrupts, thread, record, LOSS_TOO_DEEP);
		return 0;
	}
	if (sampler_interrupts_needs_look(interrupts, thread, record->time_ns))
		interrupts->nr_steady = 0;
	copy_state(interrupts, thread, record);
	err = walk(interrupts, thread, record);
	return err ? err : emit_walked(interrupts, thread, record);
}

static struct reported_text reported_text(const uint8_t *bytes, uint32_t nr_bytes, size_t max_bytes)
{
	return (struct reported_text){bytes, nr_bytes, nr_bytes < max_bytes};
}

static int take_code(struct sampler_interrupts *interrupts, const struct interrupt_code *code)
{
	const struct reported_code reported = {
		.addr = code->addr,
		.identity = code->identity,
		.object = code->object,
		.texts = {reported_text(code->qualname, code->qualname_bytes,
					sizeof(code->qualname)),
			  reported_text(code->filename, code->filename_bytes,
					sizeof(code->filename)),
			  reported_text(code->linetable, code->linetable_bytes,
					sizeof(code->linetable))},
		.bytecode_length = code->bytecode_length,
	};
	const struct code_clock clock = {.tick = interrupts->tick, .frames_are_older = true};
	int err = code_cache_add_reported(&interrupts->sampler->codes, &reported, &clock);

	/* There may be more, which need room. */
	interrupts->nr_steady = 0;
	if (err && err != -EBADMSG)
		interrupts_process_forget_code(interrupts->process, code->addr);
	return err == -EAGAIN || sampler_is_transient(err) ? 0 : err;
}

/* Whether nothing can be sampled after this error: memory is short, or the sink has failed. */
static bool is_final(int err)
{
	return err && err != -ESRCH && !sampler_is_transient(err);
}

static bool takes_records(const struct sampler_interrupts *interrupts)
{
	return interrupts->sink && !is_final(interrupts->err);
}

/* Keep the first error until the next drain returns it, or a final one. */
static void keep_error(struct sampler_interrupts *interrupts, int err)
{
	if (!interrupts->err || is_final(err))
		interrupts->err = err;
}

static void handle_stack(void *context, const struct interrupt_record *record)
{
	struct sampler_interrupts *interrupts = context;

	if (takes_records(interrupts))
		keep_error(interrupts, take_stack(interrupts, record));
}

static void handle_code(void *context, const struct interrupt_code *code)
{
	struct sampler_interrupts *interrupts = context;

	if (takes_records(interrupts))
		keep_error(interrupts, take_code(interrupts, code));
}

static void end_drain(void *context)
{
	sampler_interrupts_end_reads(context);
}

static void forget_code(struct code_reporter *reporter, remote_addr code_addr)
{
	const struct sampler_interrupts *interrupts = (struct sampler_interrupts *)reporter;

	interrupts_process_forget_code(interrupts->process, code_addr);
}

int sampler_interrupts_drain(struct sampler_interrupts *interrupts)
{
	int err;

	interrupts_process_drain(interrupts->process);
	err = interrupts->err;
	interrupts->err = 0;
	return err;
}

void sampler_interrupts_end_reads(struct sampler_interrupts *interrupts)
{
	interrupts->reads_end_ns = clock_now_ns();
}

/* Which threads need a look, and when. */

bool sampler_interrupts_needs_look(const struct sampler_interrupts *interrupts,
				   const struct snapshot_thread *thread, uint64_t now_ns)
{
	const struct sampled_thread *sampled = &interrupts->sampler->threads[thread->slot];
	const uint64_t least_ns = sampled->time.was_interrupted
					  ? interrupts->period_ns * MAX_UNSEEN_PERCENT / 100
					  : 0;

	return now_ns > sampled->time.covered_ns && now_ns - sampled->time.covered_ns >= least_ns;
}

bool sampler_interrupts_covers(const struct sampler_interrupts *interrupts,
			       const struct snapshot_thread *thread, uint64_t now_ns)
{
	const struct sampler *sampler = interrupts->sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const pid_t tid = sampled->info->tid;
	struct thread_activity *activity = &sampled->activity;
	struct wait_place place;

	if (!tid || now_ns >= sampled->time.covered_ns + STARVED_PERIODS * interrupts->period_ns)
		return false;
	if (activity->asked_ns != now_ns) {
		activity->asked_ns = now_ns;
		activity->is_covered =
			thread_runs_place(sampler, &sampled->runs, tid, 0, &place) == -EAGAIN;
	}
	return activity->is_covered;
}

uint32_t sampler_interrupts_nr_periods(const struct sampler_interrupts *interrupts,
				       uint64_t wall_ns, int64_t *uncounted_ns)
{
	const int64_t period_ns = (int64_t)interrupts->period_ns;
	const int64_t total_ns = (int64_t)wall_ns + *uncounted_ns;
	const int64_t nr = (total_ns + period_ns / 2) / period_ns;

	if (nr > MAX_PERIODS) {
		*uncounted_ns = 0;
		return MAX_PERIODS;
	}
	*uncounted_ns = total_ns - (nr < 1 ? 1 : nr) * period_ns;
	return nr < 1 ? 1 : (uint32_t)nr;
}

bool sampler_interrupts_any_needs_look(struct sampler_interrupts *interrupts, uint64_t now_ns)
{
	const struct snapshot *snapshot = &interrupts->sampler->snapshot;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];

		if (!sampler_interrupts_needs_look(interrupts, thread, now_ns))
			continue;
		/*
		 * A look at a thread that ran last, and only waits for a CPU, would show nothing
		 * new.
		 */
		if (interrupts->sampler->threads[thread->slot].time.was_interrupted &&
		    sampler_interrupts_covers(interrupts, thread, now_ns))
			continue;
		interrupts->nr_steady = 0;
		return true;
	}
	interrupts->nr_steady++;
	return false;
}

uint64_t sampler_interrupts_covered_until(const struct sampler_interrupts *interrupts,
					  uint64_t now_ns)
{
	const struct sampler *sampler = interrupts->sampler;
	uint64_t nr_periods, gather_ns;

	if (interrupts->nr_steady < STEADY_TICKS)
		return 0;
	/* All threads may run at once; half of the room is a reserve. */
	nr_periods = interrupts_process_nr_periods(interrupts->process) / 2;
	if (!nr_periods)
		return 0;
	if (sampler->native && nr_periods > sampler_native_room(sampler->native) / 2)
		nr_periods = sampler_native_room(sampler->native) / 2;
	gather_ns = nr_periods * interrupts->period_ns;
	return now_ns + (gather_ns < GATHER_NS ? gather_ns : GATHER_NS);
}

/* Beginning and ending. */

int sampler_interrupts_create(struct sampler *sampler,
			      const struct sampler_interrupts_options *options,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr)
{
	struct interrupts_options program_options = {
		.period_ns = options->period_ns,
		.clock = options->clock,
		.is_verbose = options->is_verbose,
	};
	struct interrupts_process_options process_options = {
		.process = sampler->process,
		.is_new = options->is_new,
		.handler = {.begin = begin_drain,
			    .handle_stack = handle_stack,
			    .handle_code = handle_code,
			    .end = end_drain},
	};
	struct sampler_interrupts *interrupts = calloc(1, sizeof(*interrupts));
	int err;

	if (!interrupts)
		return -ENOMEM;
	interrupts->sampler = sampler;
	interrupts->is_new = options->is_new;
	interrupts->layout = interrupts_layout(&sampler->build->offsets);
	program_options.layout = interrupts->layout;
	process_options.handler.context = interrupts;
	err = interrupts_pool_attach(options->pool, &program_options, &process_options,
				     &interrupts->process, reterr);
	if (err) {
		free(interrupts);
		return err;
	}
	interrupts->period_ns =
		interrupts_period_ns(interrupts_process_program(interrupts->process));
	interrupts->reporter.forget = forget_code;
	interrupts->needs_no_slices = options->clock != INTERRUPTS_OWN_EVENTS;
	sampler->codes.reporter = &interrupts->reporter;
	sampler->interrupts = interrupts;
	*ret_interrupts = interrupts;
	return 0;
}

void sampler_interrupts_destroy(struct sampler_interrupts *interrupts)
{
	if (!interrupts)
		return;
	interrupts_process_detach(interrupts->process);
	interrupts->sampler->codes.reporter = NULL;
	interrupts->sampler->interrupts = NULL;
	free(interrupts);
}

struct interrupts *sampler_interrupts_program(const struct sampler_interrupts *interrupts)
{
	return interrupts_process_program(interrupts->process);
}

int sampler_interrupts_begin(struct sampler_interrupts *interrupts, struct sample_sink *sink)
{
	interrupts->sink = sink;
	return interrupts_process_enable(interrupts->process, true);
}

int sampler_interrupts_enable(struct sampler_interrupts *interrupts, bool is_on)
{
	return interrupts_process_enable(interrupts->process, is_on);
}

void sampler_interrupts_end(struct sampler_interrupts *interrupts)
{
	(void)interrupts_process_enable(interrupts->process, false);
	interrupts->sink = NULL;
	interrupts->sampler->stats.lost[LOSS_SKIPPED] +=
		interrupts_process_take_lost(interrupts->process);
}
