/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads at one instant, as text in traceback order or as JSON. A sink that
 * keeps one sample of each thread and writes them on request.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "output/dump/dumped_thread.h"
#include "output/dump/paragraphs.h"
#include "output/dump/post_mortem.h"
#include "output/dump/thread_groups.h"
#include "output/dump/thread_waiting.h"
#include "output/run/run_info.h"
#include "output/source/source_lines.h"
#include "sampler/sample.h"

struct dump; /* a struct sample_sink */

/* A thread of the process that Python does not know. */
struct native_thread {
	pid_t tid;	/* in our PID namespace */
	char name[16];	/* the comm, unescaped */
	char state;	/* a letter of proc_pid_stat(5) */
	char wchan[64]; /* kernel function it waits in; "" if unknown */
};

/* Create an empty dump. Returns NULL if out of memory. dump_destroy() accepts NULL. */
struct dump *dump_create(void);
void dump_destroy(struct dump *dump);

/*
 * Returns the sink for a sampler, borrowed from dump. Its sample() copies everything but
 * the functions, which are borrowed from the sampler until the dump is written. It returns 0, or
 * -ENOMEM if the sample was not added.
 */
struct sample_sink *dump_sink(struct dump *dump);

/* Include native threads. Without this call the dump does not mention them. */
void dump_include_native(struct dump *dump);

/*
 * Include in the JSON the variables of the samples' details. Without this call it does not
 * mention any.
 */
void dump_include_variables(struct dump *dump);

/*
 * Add a copy of a native thread, unless it has a sample. Samples with tid 0 may be of any thread;
 * the dump then gives the number of those and lists no native threads. Returns 0 or -ENOMEM.
 */
int dump_add_native(struct dump *dump, const struct native_thread *thread);

/*
 * Begin and end the dump of a core file with post_mortem, which is borrowed until the dump is
 * written.
 */
void dump_set_post_mortem(struct dump *dump, const struct post_mortem *post_mortem);

/* Include the source line of each frame. sources is borrowed until the dump is written. */
void dump_include_sources(struct dump *dump, struct source_lines *sources);

/* Print equal stacks once, in its text. Without this call each thread is printed by itself. */
void dump_group_stacks(struct dump *dump);

/* Print only its tasks, as a tree (task_tree.h), and no threads. The JSON stays the same. */
void dump_show_task_tree(struct dump *dump);

/* Count in its text the frames that start processes and threads, instead of printing them. */
void dump_fold_starts(struct dump *dump);

/*
 * Set conclusions, such as a deadlock: sentences, unescaped, borrowed until the dump is written.
 * The other two append them to a text, after an empty line, and write them as a member. A text has
 * the first 16 and the number of the others.
 */
void dump_set_findings(struct dump *dump, const char *const *findings, size_t nr_findings);
void dump_append_findings(struct text *text, const char *const *findings, size_t nr_findings);
void dump_write_findings(struct json *json, const char *const *findings, size_t nr_findings);

/*
 * Say what the thread of a sample waits in, which is copied: the first sample that the sink took
 * has index 0. Not for a core file. Returns 0 or -ENOMEM.
 */
int dump_set_waiting(struct dump *dump, uint32_t index, const struct thread_waiting *waiting);

/*
 * What the dump says about asyncio tasks, which come through the sink like samples: nothing,
 * because the version is not read for them (the default); that the list is complete; or that
 * tasks are missing.
 */
enum tasks_read { TASKS_NOT_READ, TASKS_COMPLETE, TASKS_PARTIAL };
void dump_set_tasks(struct dump *dump, enum tasks_read tasks);

/*
 * Write the dump for people, most recent call last, with control characters escaped: the threads
 * in order of arrival, crashed ones first, native ones last. Not flushed. Returns 0; -ENOMEM; the
 * stream's error as negative errno.
 */
int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out);

/*
 * The parts of a dump, for the dump of several processes: add its threads to groups, and its tasks
 * to paragraphs; append its native threads, and that its interpreter is finalizing; write the
 * members of its JSON object. Texts name the process unless name is NULL. The first two return 0
 * or -ENOMEM.
 */
int dump_add_to_groups(const struct dump *dump, pid_t pid, const char *name,
		       struct thread_groups *groups);
int dump_describe_tasks(const struct dump *dump, pid_t pid, const char *name,
			struct paragraphs *paragraphs);
void dump_append_native(struct text *text, const struct dump *dump, pid_t pid, const char *name);
void dump_append_finalizing(struct text *text, const struct dump *dump, pid_t pid,
			    const char *name);
void dump_write_members(struct json *json, const struct dump *dump, const struct run_info *info);

/*
 * Append how the process of a core file died, and where: the signal, and the stack of the crashed
 * thread, else of the main one, else of the first. Equal deaths have equal texts.
 */
void dump_append_fatal(const struct dump *dump, struct text *text);

/*
 * The version of the JSON of dumps: increases with incompatible changes; members may be added
 * without that.
 */
enum { DUMP_JSON_VERSION = 1 };

/*
 * Write one JSON object and flush it. Returns 0, or the stream's error as negative errno. Its
 * members, which docs/dump.schema.json describes:
 *
 * - version: DUMP_JSON_VERSION;
 * - pid, python, command;
 * - finalizing: tid of the thread that finalizes the interpreter; null if none does, and for 3.6;
 * - threads: an array of
 *   - tid, name (Python's, else the kernel's), interpreter, main (frame_json_thread()), os_name
 *     (the kernel's), holds_gil, waits_for_gil, gc, jit (SAMPLE_IN_JIT), crashed,
 *     c_stack_missing, proven,
 *   - exception: null, or type and message,
 *   - waiting: null, or what it waits in (thread_waiting_write()),
 *   - error: null, or why the stack could not be followed to the bottom, or that pieces of its
 *     frames are not in the core,
 *   - frames: an array, outermost first, of name, kind, path, first_line, line
 *     (frame_json_function()), column, end_line, end_column (struct frame_detail; null if
 *     unknown), address (of a native frame, a hexadecimal string, else null); if wanted, source
 *     (the line; null if there is none that may be shown); if wanted, locals: an array of name,
 *     kind ("argument", "local", "free"), value, or null if they could not be read;
 * - tasks: null if tasks are not read, else an array of id (the address, a hexadecimal string),
 *   name ("" if it could not be read), running, tid (null: unknown, its thread has ended or, before
 *   3.14, its loop does not run), proven, error, frames as above, awaited_by: an array of ids;
 * - tasks_complete: null if tasks are not read, else whether none is missing;
 * - native_threads: null if they are not wanted or any may be a thread with tid 0, else an array
 *   of tid, name, state (a letter), wchan (null if unknown);
 * - findings: an array of strings, not for a core file;
 * - for a core file, the members of post_mortem_write_json().
 */
int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out);
