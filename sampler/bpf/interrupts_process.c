/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_process.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "sampler/bpf/interrupt_event.h"
#include "sampler/bpf/interrupts_cpus.h"
#include "sampler/bpf/interrupts_state.h"

/* Limit on thread listings until none is new: a process may keep making threads. */
enum { MAX_LISTINGS = 8 };

/*
 * A new process is interrupted INTERRUPT_NEW_NR_OF_PERIOD times per period, at least this far
 * apart, and random ones of them are sampled. With one interrupt per period a process that ends
 * before its first period is over would never be seen, and the last part of a period of any.
 */
#define LEAST_PERIOD_NS 100000u

/* A thread that has an event. */
struct interrupted {
	pid_t tid;
	struct interrupt_event event;
};

struct interrupts_process {
	struct interrupts *interrupts; /* borrowed */
	const struct process *process; /* borrowed */
	struct interrupts_handler handler;
	uint64_t key;
	struct interrupt_process *place; /* in the program's memory */
	bool is_enabled;
	struct interrupted *events;
	uint32_t nr_events, max_events;
	uint32_t nr_of_period;		   /* number of interrupts of each event per period */
	struct interrupts_thread *threads; /* known to the program, ascending; owned */
	uint32_t nr_threads;
	uint32_t most_bytes; /* of the largest stack so far; 0: none */
	uint64_t nr_full_taken;
	bool has_begun;			       /* in this drain */
	struct interrupts_process *next_begun; /* in this drain; NULL: none */
};

/* Events. */

/*
 * Interrupt a thread, and those that it makes from now on. The thread is checked after the open,
 * because its id may have been reused by another process.
 */
static int open_event(const struct interrupts_process *process, pid_t tid,
		      struct interrupted *ret_interrupted)
{
	const struct interrupts *interrupts = process->interrupts;
	struct interrupted interrupted = {.tid = tid};
	int err = interrupt_event_open(interrupts, tid, -1,
				       interrupts->period_ns / process->nr_of_period,
				       &interrupted.event);

	if (err)
		return err;
	if (!process_has_thread(process->process, tid)) {
		interrupt_event_close(&interrupted.event);
		return -ESRCH;
	}
	*ret_interrupted = interrupted;
	return 0;
}

static bool has_event(const struct interrupts_process *process, pid_t tid)
{
	for (uint32_t i = 0; i < process->nr_events; i++)
		if (process->events[i].tid == tid)
			return true;
	return false;
}

/* Follow all existing threads. One that is made meanwhile may get two events. */
static int follow_all(struct interrupts_process *process)
{
	bool is_new = true;
	int err = 0;

	for (int turn = 0; !err && is_new && turn < MAX_LISTINGS; turn++) {
		cleanup_free struct process_thread *threads = NULL;
		struct interrupted *events;
		size_t nr_threads;

		err = process_threads(process->process, &threads, &nr_threads);
		is_new = false;
		for (size_t i = 0; !err && i < nr_threads; i++) {
			if (has_event(process, threads[i].tid))
				continue;
			is_new = true;
			events = array_reserve(process->events, process->nr_events + 1,
					       &process->max_events, sizeof(*events));
			if (!events)
				return -ENOMEM;
			process->events = events;
			err = open_event(process, threads[i].tid, &events[process->nr_events]);
			process->nr_events += !err;
			if (err == -ESRCH)
				err = 0;
		}
	}
	return err;
}

static void unfollow(const struct interrupted *events, uint32_t nr_events)
{
	for (uint32_t i = 0; i < nr_events; i++)
		interrupt_event_close(&events[i].event);
}

int interrupts_process_enable(struct interrupts_process *process, bool is_on)
{
	struct interrupts *interrupts = process->interrupts;
	int err = 0, event_err;

	interrupts->nr_enabled += is_on;
	interrupts->nr_enabled -= process->is_enabled;
	process->is_enabled = is_on;
	process->place->key = is_on ? process->key : 0;
	interrupts->program->bss->is_on = interrupts->nr_enabled > 0;
	for (uint32_t i = 0; i < process->nr_events; i++) {
		event_err = interrupt_event_enable(&process->events[i].event, is_on);
		err = event_err ? event_err : err;
	}
	interrupts_cpus_enable(interrupts);
	return err;
}

/* Attaching and detaching. */

/* Find the id of the process in its own namespace. */
static int find_own_id(const struct process *process, uint32_t *ret_id)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(process, &threads, &nr_threads);

	for (size_t i = 0; !err && i < nr_threads; i++) {
		if (threads[i].tid == process->pid && threads[i].ns_tid) {
			*ret_id = (uint32_t)threads[i].ns_tid;
			return 0;
		}
	}
	return err ? err : -ESRCH;
}

/* Give the process a key whose place is unused. */
static void take_place(struct interrupts_process *process)
{
	struct interrupts *interrupts = process->interrupts;
	uint64_t index;

	do
		index = ++interrupts->last_key % INTERRUPT_MAX_PROCESSES;
	while (interrupts->processes[index]);
	process->key = interrupts->last_key;
	process->place = &interrupts->program->bss->processes[index];
	interrupts->processes[index] = process;
	interrupts->nr_processes++;
}

/* Whether threads have events of their own. */
static bool has_own_events(const struct interrupts *interrupts)
{
	return interrupts->clock == INTERRUPTS_OWN_EVENTS && !interrupts->nr_cpu_events;
}

/* Whether a process gets more interrupts as long as it is new. */
static bool gets_more(const struct interrupts *interrupts, bool is_new)
{
	return is_new && has_own_events(interrupts) &&
	       interrupts->period_ns / INTERRUPT_NEW_NR_OF_PERIOD >= LEAST_PERIOD_NS;
}

int interrupts_process_attach(struct interrupts *interrupts,
			      const struct interrupts_process_options *options,
			      struct interrupts_process **ret_process, struct message *reterr)
{
	const bool has_more = gets_more(interrupts, options->is_new);
	struct interrupts_process *attached;
	uint32_t own_id;
	int err = find_own_id(options->process, &own_id);

	if (err)
		return err;
	if (interrupts->nr_processes == INTERRUPT_MAX_PROCESSES) {
		message_set(reterr, "a BPF program samples at most %u processes",
			    INTERRUPT_MAX_PROCESSES);
		return -E2BIG;
	}
	attached = calloc(1, sizeof(*attached));
	if (!attached)
		return -ENOMEM;
	attached->interrupts = interrupts;
	attached->process = options->process;
	attached->handler = options->handler;
	take_place(attached);
	attached->nr_of_period = has_more ? INTERRUPT_NEW_NR_OF_PERIOD : interrupts->nr_of_period;
	*attached->place = (struct interrupt_process){
		.id = own_id,
		.nr_of_period = attached->nr_of_period,
		.nr_early = has_more ? INTERRUPT_EARLY_SAMPLES : 0,
	};
	if (has_own_events(interrupts))
		err = follow_all(attached);
	if (err) {
		if (err == -EPERM)
			interrupts_explain(err, reterr);
		interrupts_process_detach(attached);
		return err;
	}
	*ret_process = attached;
	return 0;
}

/* Set what the ring has to take in a period for the threads of the process. */
static void set_size(struct interrupts_process *process, uint32_t nr_threads, uint32_t most_bytes)
{
	struct interrupts *interrupts = process->interrupts;

	interrupts->period_bytes -= (uint64_t)process->nr_threads * process->most_bytes;
	process->nr_threads = nr_threads;
	process->most_bytes = most_bytes;
	interrupts->period_bytes += (uint64_t)nr_threads * most_bytes;
}

void interrupts_process_detach(struct interrupts_process *process)
{
	if (!process)
		return;
	(void)interrupts_process_enable(process, false);
	interrupts_process_drop_events(process);
	interrupts_process_set_threads(process, NULL, 0);
	set_size(process, 0, 0);
	process->interrupts->processes[process->key % INTERRUPT_MAX_PROCESSES] = NULL;
	process->interrupts->nr_processes--;
	free(process);
}

/* Each of its interrupts stands for a whole period from now on. */
static void set_settled(struct interrupts_process *process)
{
	process->nr_of_period = process->interrupts->nr_of_period;
	process->place->nr_early = 0;
	process->place->nr_of_period = process->nr_of_period;
}

void interrupts_process_drop_events(struct interrupts_process *process)
{
	unfollow(process->events, process->nr_events);
	free(process->events);
	process->events = NULL;
	process->nr_events = process->max_events = 0;
	set_settled(process);
}

int interrupts_process_settle(struct interrupts_process *process)
{
	const struct interrupts_process before = *process;
	int err;

	if (process->nr_of_period == process->interrupts->nr_of_period)
		return 0;
	process->nr_of_period = process->interrupts->nr_of_period;
	process->events = NULL;
	process->nr_events = process->max_events = 0;
	err = follow_all(process);
	if (err) {
		unfollow(process->events, process->nr_events);
		free(process->events);
		*process = before;
		return err;
	}
	unfollow(before.events, before.nr_events);
	free(before.events);
	set_settled(process);
	return process->is_enabled ? interrupts_process_enable(process, true) : 0;
}

int interrupts_process_use_cpus(const struct interrupts_process *process)
{
	struct interrupts *interrupts = process->interrupts;

	return interrupts->clock == INTERRUPTS_OWN_EVENTS ? interrupts_cpus_open(interrupts)
							  : -ENOTSUP;
}

struct interrupts *interrupts_process_program(const struct interrupts_process *process)
{
	return process->interrupts;
}

/* What the program knows. */

static void set_thread(const struct interrupts_process *process, struct interrupts_thread *thread)
{
	thread->thread.process_key = process->key;
	(void)bpf_map__update_elem(process->interrupts->program->maps.threads, &thread->own_tid,
				   sizeof(thread->own_tid), &thread->thread, sizeof(thread->thread),
				   BPF_ANY);
}

/* Forget a thread, unless another process has a thread of this id by now. */
static void forget_thread(const struct interrupts_process *process, uint32_t own_tid)
{
	const struct bpf_map *map = process->interrupts->program->maps.threads;
	struct interrupt_thread known;

	if (!bpf_map__lookup_elem(map, &own_tid, sizeof(own_tid), &known, sizeof(known), 0) &&
	    known.process_key == process->key)
		(void)bpf_map__delete_elem(map, &own_tid, sizeof(own_tid), 0);
}

void interrupts_process_set_threads(struct interrupts_process *process,
				    struct interrupts_thread *threads, uint32_t nr_threads)
{
	const struct interrupts_thread *before = process->threads;
	const struct interrupts_thread *end = before + process->nr_threads;

	for (uint32_t i = 0; i < nr_threads; i++) {
		for (; before != end && before->own_tid < threads[i].own_tid; before++)
			forget_thread(process, before->own_tid);
		if (before == end || before->own_tid != threads[i].own_tid ||
		    memcmp(before->thread.states, threads[i].thread.states,
			   sizeof(before->thread.states)) != 0)
			set_thread(process, &threads[i]);
		before += before != end && before->own_tid == threads[i].own_tid;
	}
	for (; before != end; before++)
		forget_thread(process, before->own_tid);
	set_size(process, nr_threads, process->most_bytes);
	free(process->threads);
	process->threads = threads;
}

void interrupts_process_forget_code(const struct interrupts_process *process, uint64_t code_addr)
{
	const uint64_t place[] = {process->key, code_addr};

	(void)bpf_map__delete_elem(process->interrupts->program->maps.known_codes, place,
				   sizeof(place), 0);
}

void interrupts_process_ignore_fault(const struct interrupts_process *process, uint64_t addr)
{
	process->place->unreachable_addr = addr;
}

void interrupts_process_set_code_type(const struct interrupts_process *process,
				      uint64_t code_type_addr)
{
	process->place->code_type_addr = code_type_addr;
}

/* Records. */

static void begin(struct interrupts_process *process)
{
	struct interrupts *interrupts = process->interrupts;

	if (process->has_begun)
		return;
	process->has_begun = true;
	process->next_begun = interrupts->last_begun;
	interrupts->last_begun = process;
	process->handler.begin(process->handler.context);
}

int interrupts_deliver(void *interrupts, void *record, size_t size)
{
	const struct interrupts *program = interrupts;
	const struct interrupt_head *head = record;
	struct interrupts_process *process;

	/* Otherwise the program and this were compiled with different headers. */
	assert(size >= sizeof(*head) && head->nr_bytes == size);
	(void)size;
	process = program->processes[head->process_key % INTERRUPT_MAX_PROCESSES];
	if (!process || process->key != head->process_key)
		return 0;
	begin(process);
	if (head->kind == INTERRUPT_CODE) {
		process->handler.handle_code(process->handler.context, record);
		return 0;
	}
	if (process->most_bytes < head->nr_bytes)
		set_size(process, process->nr_threads, head->nr_bytes);
	process->handler.handle_stack(process->handler.context, record);
	return 0;
}

void interrupts_process_drain(struct interrupts_process *process)
{
	struct interrupts *interrupts = process->interrupts;
	struct interrupts_process *begun;

	begin(process);
	(void)ring_buffer__consume(interrupts->ring);
	while ((begun = interrupts->last_begun)) {
		interrupts->last_begun = begun->next_begun;
		begun->has_begun = false;
		begun->handler.end(begun->handler.context);
	}
}

uint64_t interrupts_process_nr_periods(const struct interrupts_process *process)
{
	return process->nr_threads && process->most_bytes
		       ? INTERRUPT_RING_BYTES / process->interrupts->period_bytes
		       : 0;
}

uint64_t interrupts_process_take_lost(struct interrupts_process *process)
{
	struct interrupts *interrupts = process->interrupts;
	const uint64_t nr_full = process->place->nr_full;
	struct interrupt_counts counts = {0};
	uint64_t nr_lost;

	interrupts_count(interrupts, &counts);
	nr_lost =
		nr_full - process->nr_full_taken + counts.nr_skipped - interrupts->nr_skipped_taken;
	process->nr_full_taken = nr_full;
	interrupts->nr_skipped_taken = counts.nr_skipped;
	return nr_lost;
}
