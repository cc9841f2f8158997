/* SPDX-License-Identifier: MIT */
/*
 * Whose C stack a call of the interpreter's loop is on, which tells which thread runs a thread
 * state. A state names the thread that made it, and programs that have CPython in them may run it
 * in another one: PyEval_SaveThread() here, PyEval_RestoreThread() there, PyThreadState_New() for a
 * thread to come. But each call of the loop has something of its own on the C stack
 * (frame_list.loop_addr). If what the innermost one has is on the stack of the thread that the
 * state names, only that thread can move the frames that were found: another one that runs the
 * state begins a loop of its own, further in, and cannot end one that it is not in.
 *
 * The stack of a thread lies below its pthread_t, where the C library has its control block, in the
 * same mapping; two stacks have a page between them that cannot be read, or are told apart by the
 * pthread_t that comes next. The main thread has "[stack]". A program may also call the loop on
 * memory that is no thread's stack (makecontext(), coroutines of C++): of that nothing is told.
 *
 * Source: glibc nptl/allocatestack.c, sysdeps/x86_64/nptl/tls.h (tcbhead_t); musl
 * src/thread/pthread_create.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

enum stack_owner { STACK_OWN, STACK_FOREIGN, STACK_UNKNOWN };

/* What is known of a thread's stack. */
struct own_stack {
	remote_addr low_addr, end_addr; /* it is here, or some of it */
	/* Another place that was asked for, which is somebody else's stack or nobody's. */
	remote_addr other_low_addr, other_end_addr;
	enum stack_owner other_owner;
	remote_addr wanted_addr; /* asked for, and not in any of them; 0: nothing is */
	bool roams;	/* the loop was met on a stack that is nobody's: there may be many */
	bool is_signed; /* the thread's control block was seen to hold its own address */
};

/* What tells whose a stack is. */
struct stack_facts {
	struct remote_memory *memory; /* borrowed, like all of it */
	const struct maps *maps;
	const uint64_t *thread_ids; /* the pthread_t of every thread that is known */
	size_t nr_thread_ids;
	uint64_t main_thread_id; /* the first thread's, which ends no stack; 0: not known */
};

/* A thread as its state names it. */
struct stack_thread {
	uint64_t thread_id; /* its pthread_t; 0: not known */
	bool is_main;	    /* it is the process's first one */
	bool is_other;	    /* it is not; neither: not known */
};

/*
 * The stack of a thread with that pthread_t (0: not known, or it is the first one's), as far as
 * that alone tells.
 */
struct own_stack own_stack_of(uint64_t thread_id);

/* The first thread's stack, so far as it has grown by those mappings. */
struct own_stack own_stack_of_first(const struct maps *maps);

/*
 * Whose stack addr is on. What lies between it and what is known is read, if that is not much, and
 * once: it is the thread's if no other control block is there, where these can be told. Where the
 * owner is not known yet, addr is wanted.
 */
enum stack_owner own_stack_owner(struct own_stack *stack, struct remote_memory *memory,
				 remote_addr addr);

/* Find out what is wanted, of that thread. */
void own_stack_learn(struct own_stack *stack, const struct stack_thread *thread,
		     const struct stack_facts *facts);
