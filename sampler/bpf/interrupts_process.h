/* SPDX-License-Identifier: MIT */
/*
 * A process that is sampled by a BPF program: its threads, the events that interrupt them, and what
 * becomes of its records. All processes of a program share its ring: whoever drains it delivers the
 * records of all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/bpf/interrupt_record.h"
#include "sampler/bpf/interrupts.h"

struct interrupts_process;

/*
 * Receives the records of a process, each valid during the call. begin() is called in each drain
 * before the first record, and end() after all records of all processes. The functions may be
 * called in another process's drain: an error has to be kept until it can be returned.
 */
struct interrupts_handler {
	void (*begin)(void *context);
	void (*handle_stack)(void *context, const struct interrupt_record *record);
	void (*handle_code)(void *context, const struct interrupt_code *code);
	void (*end)(void *context);
	void *context;
};

/* What to attach. */
struct interrupts_process_options {
	const struct process *process; /* borrowed until the process is detached */
	/*
	 * It may end soon: until interrupts_process_settle() its samples are at random places of
	 * their periods, which takes more interrupts, and the first ones come closer together.
	 */
	bool is_new;
	struct interrupts_handler handler;
};

/*
 * Prepare to interrupt the threads of a process, which must have the program's layout and PID
 * namespace; interrupts_process_enable() starts it. The program is borrowed until
 * interrupts_process_detach(), which accepts NULL; pending records are dropped then. Returns 0;
 * -EPERM with a sentence; -E2BIG with one (INTERRUPT_MAX_PROCESSES are attached); -ESRCH, -ENOMEM,
 * or the errno of a system call.
 */
int interrupts_process_attach(struct interrupts *interrupts,
			      const struct interrupts_process_options *options,
			      struct interrupts_process **ret_process, struct message *reterr);
void interrupts_process_detach(struct interrupts_process *process);

/*
 * A process that was attached as new is not any more. Returns 0; -ESRCH, -EPERM, -ENOMEM or the
 * errno of a system call.
 */
int interrupts_process_settle(struct interrupts_process *process);

/*
 * From now on let the program sample in interrupts of all CPUs, which cost threads nothing when
 * they switch, instead of in those of its threads' own events. This holds for all its processes and
 * for good. Returns 0; -ENOTSUP for another clock than INTERRUPTS_OWN_EVENTS; -EPERM, -EMFILE,
 * -ENOMEM, or the errno of a system call: then nothing has changed.
 *
 * The kernel sets the timer of a thread's event whenever the thread gets a CPU. That takes some 0.5
 * µs, and several in a virtual machine, which has to ask its host. Meanwhile the thread's CPU time
 * passes and the timer stands. If a switch comes every 10 µs, as among threads of free-threaded
 * CPython that wait for each other, interrupts are rare, come at the switches, and slow the program
 * down. Events of CPUs are the second choice, because they interrupt other processes and idle CPUs
 * as well, and at even times: threads that wake in step with them are sampled too often or never.
 *
 * Source: kernel/events/core.c (perf_swevent_start_hrtimer(), __perf_event_task_sched_in()).
 */
int interrupts_process_use_cpus(const struct interrupts_process *process);

/* Its program. */
struct interrupts *interrupts_process_program(const struct interrupts_process *process);

/* Start or stop interrupting. Returns 0 or the errno of a system call. */
int interrupts_process_enable(struct interrupts_process *process, bool is_on);

/* A thread, whose id is one in its own PID namespace. thread.process_key is not used. */
struct interrupts_thread {
	uint32_t own_tid;
	struct interrupt_thread thread;
};

/*
 * Set what the program knows about the threads of the process, ascending by own_tid; only changes
 * are passed to the kernel. threads is allocated and consumed. A thread for which there is no room
 * in the program is unknown to it.
 */
void interrupts_process_set_threads(struct interrupts_process *process,
				    struct interrupts_thread *threads, uint32_t nr_threads);

/* Let the code object at code_addr be reported again. */
void interrupts_process_forget_code(const struct interrupts_process *process, uint64_t code_addr);

/* Do not wake the caller for faults at addr, which cannot be read. Only the last address counts. */
void interrupts_process_ignore_fault(const struct interrupts_process *process, uint64_t addr);

/* Set the type of code objects: from now on no other object is reported as one. */
void interrupts_process_set_code_type(const struct interrupts_process *process,
				      uint64_t code_type_addr);

/*
 * Deliver all pending records of all processes of the program, oldest first. The handler of this
 * process begins and ends even without records.
 */
void interrupts_process_drain(struct interrupts_process *process);

/*
 * Number of periods after which the ring is full if all known threads of all processes run and
 * have stacks as large as the largest of their process. 0: this process had no records yet, or
 * has no threads.
 */
uint64_t interrupts_process_nr_periods(const struct interrupts_process *process);

/*
 * Take the number of interrupts that were lost since the last call: records of the process for
 * which there was no room, and interrupts for which the program was busy. Of these nobody knows
 * the process, so they are counted for whoever asks first.
 */
uint64_t interrupts_process_take_lost(struct interrupts_process *process);
