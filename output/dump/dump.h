/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads at one moment, as text in traceback order or as JSON.
 * A sink that keeps one sample per thread and writes them when asked.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "output/dump/post_mortem.h"
#include "output/dump/source_lines.h"
#include "output/run/run_info.h"
#include "sampler/sample.h"

struct dump; /* a struct sample_sink */

/* A thread of the process that Python knows nothing of. */
struct native_thread {
	pid_t tid;	/* in our PID namespace */
	char name[16];	/* the comm, not escaped */
	char state;	/* a letter of proc_pid_stat(5) */
	char wchan[64]; /* where in the kernel it waits; "" if that is not told */
};

/* One without samples. NULL if out of memory. dump_destroy() accepts NULL. */
struct dump *dump_create(void);
void dump_destroy(struct dump *dump);

/*
 * The sink to hand to a sampler; borrowed from dump. Its sample() copies all but the
 * functions, which are borrowed from the sampler for as long as dump is written. 0, or
 * -ENOMEM when the sample was not added.
 */
struct sample_sink *dump_sink(struct dump *dump);

/*
 * Have native threads in the dump as well, from now on: a dump without this call says
 * nothing of them.
 */
void dump_want_native(struct dump *dump);

/*
 * Have the variables that details of samples have in the JSON. Without this call it does not
 * mention any.
 */
void dump_want_variables(struct dump *dump);

/*
 * Add one, unless a sample came of it; it is copied. Samples with threads whose tid is 0 may
 * be of any: then the dump says how many those are, and names no native ones. 0 or -ENOMEM.
 */
int dump_add_native(struct dump *dump, const struct native_thread *thread);

/*
 * Have a dump of a core file begin and end with what that tells, which is borrowed for as
 * long as the dump is written.
 */
void dump_set_post_mortem(struct dump *dump, const struct post_mortem *post_mortem);

/*
 * Have the source of each frame's line in the dump, out of sources, which are borrowed until it
 * is written.
 */
void dump_want_sources(struct dump *dump, struct source_lines *sources);

/*
 * What a dump has to say of asyncio's tasks, which come by the sink as samples do: nothing
 * (the version is not asked for them), all, or that some are missing. Nothing before this call.
 */
enum tasks_told { TASKS_NOT_TOLD, TASKS_ALL_TOLD, TASKS_SOME_TOLD };
void dump_tell_tasks(struct dump *dump, enum tasks_told told);

/*
 * Write what was taken, threads in the order they came, those that crashed first, native ones
 * last: for people, most
 * recent call last, control characters escaped. Not flushed. 0; -ENOMEM; the stream's error
 * as negative errno.
 */
int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out);

/*
 * Append what ended a process, of a dump of a core file, and where: the signal, and the stack of
 * the thread that crashed, else of the main one, else of the first. In equal deaths the text is the
 * same.
 */
void dump_append_fatal(const struct dump *dump, struct text *text);

/*
 * One JSON object: pid, python, command, finalizing: the tid of the thread that ends the
 * interpreter, null if none does or 3.6 does not tell; threads: an array of tid, name (Python's,
 * else the kernel's), os_name (the kernel's), interpreter, main, holds_gil, waits_for_gil, gc, jit
 * (SAMPLE_IN_JIT), crashed, exception (null, or type and message), c_stack_missing, proven, error
 * (null, or why the stack could not be followed to its bottom, or that pieces of its frames are not
 * in the core), frames: an array, outermost first, of name, kind (label_kind()), path, line,
 * first_line, address (of a native frame, a hexadecimal string, else null), column, end_line,
 * end_column (struct frame_detail; null if not known), if wanted source (the line, null if there is
 * none that may be shown), and if wanted locals: an array of name, kind ("argument", "local",
 * "free"), value, null if they could not be read; tasks: null if nothing is told of them, else an
 * array of id (a hexadecimal string: the address), name ("" if it could not be read), running, tid
 * (null: its thread has ended), proven, error, frames as those of threads, awaited_by: an array of
 * ids; tasks_complete: null, or whether none is missing; native_threads: null if they are not
 * wanted, or any may be one of threads with a tid of 0, else an array of tid, name, state (a
 * letter), wchan (null if not told). Of a core file also what post_mortem_write_json() writes.
 * Flushed. 0, or the stream's error as negative errno.
 */
int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out);
