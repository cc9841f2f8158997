/* SPDX-License-Identifier: MIT */
#include "cmd/dump/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/dump/lock_holders.h"
#include "cmd/dump/wait_text.h"
#include "cmd/dump/waits.h"
#include "output/dump/thread_waiting.h"
#include "output/text/text.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

/*
 * It is inside a `with` statement on the lock, but may have released it there, or have been forked
 * there.
 */
#define HELD_BY_ITSELF "that it is likely to hold itself"

static const struct looked_thread *thread_at(const struct tree *tree,
					     const struct tree_thread *place)
{
	return &tree->taken[place->process]->waits.threads[place->thread];
}

static bool is_same_thread(const struct tree_thread *a, const struct tree_thread *b)
{
	return a->process == b->process && a->thread == b->thread;
}

/* Append a thread: by its process's name if it is the main one. */
static void append_thread(struct text *text, const struct tree *tree, bool with_processes,
			  const struct tree_thread *place)
{
	const struct looked_thread *thread = thread_at(tree, place);
	const struct tree_process *process = &tree->processes[place->process];
	const bool is_main = thread->tid == process->info.target.pid;

	if (with_processes && is_main) {
		text_printf(text, "process %d %s", thread->tid, process->info.target.command_line);
		return;
	}
	text_printf(text, "thread %d \"%s\"", thread->tid, thread->name);
	if (with_processes)
		text_printf(text, " of process %d %s", process->info.target.pid,
			    process->info.target.command_line);
}

/* Append the lock that a thread waits for. */
static void append_lock(struct text *text, const struct tree *tree, bool with_processes,
			const struct lock_wait *wait)
{
	if (!wait->has_holder) {
		text_printf(text, "waits in futex, for %s", wait->what);
		return;
	}
	text_printf(text, "waits for %s ", wait->what);
	if (is_same_thread(&wait->holder, &wait->waiter)) {
		text_puts(text, HELD_BY_ITSELF);
	} else {
		text_puts(text, "held by ");
		append_thread(text, tree, with_processes, &wait->holder);
	}
}

/* Describe one thread of the scene's tree. Returns 0 or -ENOMEM. */
static int describe(struct wait_scene *scene, bool with_processes, const struct lock_waits *locks,
		    const struct tree_thread *place)
{
	const struct tree *tree = scene->tree;
	const struct lock_wait *lock = lock_waits_get(locks, place);
	struct thread_waiting waiting = {.nr_runs = thread_at(tree, place)->nr_runs};
	struct text text = {0};
	const char *call = "futex";
	int err;

	if (lock)
		append_lock(&text, tree, with_processes, lock);
	else
		wait_text_append(&text, scene, place->process, thread_at(tree, place), &call,
				 &waiting.time_bytes);
	waiting.text = text.bytes;
	waiting.call = (char *)call;
	if (lock && lock->has_holder) {
		waiting.holder_pid = tree->processes[lock->holder.process].info.target.pid;
		waiting.holder_tid = thread_at(tree, &lock->holder)->tid;
	}
	err = text.error;
	if (!err && (text.length || waiting.nr_runs))
		err = dump_set_waiting(tree->taken[place->process]->dump,
				       thread_at(tree, place)->index, &waiting);
	text_done(&text);
	return err;
}

/* Add the circle that begins with a wait. Returns 0 or -ENOMEM. */
static int add_circle(const struct tree *tree, bool with_processes, const struct lock_waits *locks,
		      const struct lock_wait *first, struct findings *findings)
{
	char **sentences = array_reserve(findings->sentences, findings->nr_sentences + 1,
					 &findings->max_sentences, sizeof(*sentences));
	const struct lock_wait *wait = first;
	struct text text = {0};

	if (!sentences)
		return -ENOMEM;
	findings->sentences = sentences;
	text_puts(&text, is_same_thread(&first->holder, &first->waiter) ? "Likely deadlock: "
									: "Deadlock: ");
	append_thread(&text, tree, with_processes, &first->waiter);
	do {
		text_puts(&text, wait == first ? " waits for " : ", which waits for ");
		if (is_same_thread(&wait->holder, &wait->waiter))
			text_printf(&text, "%s " HELD_BY_ITSELF, wait->what);
		else if (is_same_thread(&wait->holder, &first->waiter))
			text_puts(&text, "the first");
		else
			append_thread(&text, tree, with_processes, &wait->holder);
		wait = lock_waits_get(locks, &wait->holder);
	} while (wait && wait != first);
	text_puts(&text, ".");
	if (text.error) {
		text_done(&text);
		return -ENOMEM;
	}
	sentences[findings->nr_sentences++] = text.bytes;
	return 0;
}

/* Add all circles. Returns 0 or -ENOMEM. */
static int add_circles(const struct tree *tree, bool with_processes, const struct lock_waits *locks,
		       struct findings *findings)
{
	cleanup_free const struct lock_wait **circles = NULL;
	uint32_t nr_circles = 0;
	int err = lock_waits_find_circles(locks, &circles, &nr_circles);

	for (uint32_t i = 0; !err && i < nr_circles; i++)
		err = add_circle(tree, with_processes, locks, circles[i], findings);
	return err;
}

int waiting_describe(struct tree *tree, bool with_processes, struct findings *findings)
{
	struct lock_waits locks = {0};
	struct wait_scene scene;
	int err = lock_waits_find(&locks, tree);

	wait_scene_init(&scene, tree);

	for (size_t i = 0; !err && i < tree->nr_processes; i++) {
		const uint32_t nr = tree->processes[i].dump ? tree->taken[i]->waits.nr_threads : 0;

		for (uint32_t k = 0; !err && k < nr; k++)
			err = describe(&scene, with_processes, &locks, &(struct tree_thread){i, k});
	}
	wait_scene_done(&scene);
	if (!err)
		err = add_circles(tree, with_processes, &locks, findings);
	lock_waits_done(&locks);
	return err;
}

void findings_done(struct findings *findings)
{
	for (uint32_t i = 0; i < findings->nr_sentences; i++)
		free(findings->sentences[i]);
	free(findings->sentences);
	*findings = (struct findings){.sentences = NULL};
}
