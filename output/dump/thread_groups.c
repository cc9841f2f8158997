/* SPDX-License-Identifier: MIT */
#include "output/dump/thread_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

/* Limit on the threads that a header names, and on the waits below a stack; JSON has all. */
enum { MAX_LISTED = 12 };

void thread_groups_done(struct thread_groups *groups)
{
	if (!groups)
		return;
	for (uint32_t i = 0; i < groups->nr_groups; i++) {
		free(groups->groups[i].stack);
		free(groups->groups[i].threads);
	}
	free(groups->groups);
	free(groups->by_stack);
	string_table_done(&groups->stacks);
	*groups = (struct thread_groups){.groups = NULL};
}

/* Append an empty group. Returns NULL if out of memory. */
static struct thread_group *group_add(struct thread_groups *groups)
{
	struct thread_group *rows = array_reserve(groups->groups, groups->nr_groups + 1,
						  &groups->max_groups, sizeof(*rows));

	if (!rows)
		return NULL;
	groups->groups = rows;
	rows[groups->nr_groups] = (struct thread_group){.stack = NULL};
	return &rows[groups->nr_groups++];
}

/* Find the group of a stack, or add it. Returns NULL if out of memory. */
static struct thread_group *group_get(struct thread_groups *groups, const char *stack,
				      bool has_stack, bool is_alone)
{
	cleanup_free char *copy = strdup(stack);
	const uint32_t nr = groups->stacks.nr;
	struct thread_group *group;
	uint32_t *by_stack;
	uint32_t number;

	if (!copy)
		return NULL;
	if (!is_alone) {
		by_stack = array_reserve(groups->by_stack, nr + 1, &groups->max_by_stack,
					 sizeof(*by_stack));
		if (!by_stack)
			return NULL;
		groups->by_stack = by_stack;
		if (string_table_get(&groups->stacks, copy, &number))
			return NULL;
		if (number < nr)
			return &groups->groups[by_stack[number]];
		by_stack[number] = groups->nr_groups;
	}
	group = group_add(groups);
	if (!group)
		return NULL;
	group->stack = take_ptr(copy);
	group->has_stack = has_stack;
	group->is_alone = is_alone;
	return group;
}

int thread_groups_add(struct thread_groups *groups, const struct grouped_thread *thread,
		      const struct dumped_layout *layout, bool is_alone)
{
	struct thread_group *group = NULL;
	struct grouped_thread *threads;
	struct text stack = {0};

	dumped_thread_append_stack(&stack, thread->thread, layout);
	if (!stack.error)
		group = group_get(groups, text_string(&stack),
				  dumped_thread_has_stack(thread->thread), is_alone);
	text_done(&stack);
	if (!group)
		return -ENOMEM;
	threads = array_reserve(group->threads, group->nr_threads + 1, &group->max_threads,
				sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	group->threads = threads;
	threads[group->nr_threads++] = *thread;
	return 0;
}

static void append_quoted(struct text *text, const char *name)
{
	text_puts(text, "\"");
	label_append_string(text, name);
	text_puts(text, "\"");
}

/* Whether a thread is listed as its process is, which has the same id. */
static bool is_named_by_process(const struct grouped_thread *member)
{
	return member->process && member->thread->thread.tid == member->pid;
}

/* Append the header of a thread that is alone. */
static void append_single(struct text *text, const struct grouped_thread *single)
{
	const struct sample_thread *thread = &single->thread->thread;

	if (is_named_by_process(single)) {
		text_printf(text, "Process %d ", single->pid);
		label_append_string(text, single->process);
		dumped_thread_append_state(text, single->thread->flags);
		return;
	}
	text_printf(text, "Thread %d", thread->tid);
	if (thread->name[0]) {
		text_puts(text, " ");
		append_quoted(text, thread->name);
	}
	dumped_process_append(text, single->pid, single->process);
	if (thread->interpreter_id)
		text_printf(text, " in interpreter %lld", (long long)thread->interpreter_id);
	if (thread->is_main)
		text_puts(text, ", main");
	dumped_thread_append_state(text, single->thread->flags);
}

/* Append what is special about one of several threads, in parentheses. */
static void append_specials(struct text *text, const struct grouped_thread *member)
{
	const struct sample_thread *thread = &member->thread->thread;
	struct text words = {0};

	if (thread->is_main && !member->process)
		text_puts(&words, ", main");
	if (thread->interpreter_id)
		text_printf(&words, ", interpreter %lld", (long long)thread->interpreter_id);
	dumped_thread_append_state(&words, member->thread->flags);
	if (words.length > 2)
		text_printf(text, " (%s)", text_string(&words) + 2);
	text_done(&words);
}

/*
 * Append one of several threads, by its process's name if they are of several processes; previous,
 * which may be NULL, is the one before it.
 */
static void append_member(struct text *text, const struct grouped_thread *member,
			  const struct grouped_thread *previous, bool with_process)
{
	const struct sample_thread *thread = &member->thread->thread;
	const bool shares_name = previous && is_named_by_process(previous) && with_process &&
				 strcmp(previous->process, member->process) == 0;

	text_puts(text, previous ? ", " : " ");
	if (with_process && is_named_by_process(member)) {
		if (!shares_name) {
			label_append_string(text, member->process);
			text_puts(text, " ");
		}
		text_printf(text, "%d", member->pid);
	} else {
		append_quoted(text, thread->name);
		text_printf(text, " %d", thread->tid);
		if (with_process && member->process) {
			text_puts(text, " of ");
			label_append_string(text, member->process);
			text_printf(text, " %d", member->pid);
		}
	}
	append_specials(text, member);
}

/* Returns the number of processes that the threads of a group are of. */
static uint32_t count_processes(const struct thread_group *group)
{
	uint32_t nr = 1;

	/* The threads of a process are added together. */
	for (uint32_t i = 1; i < group->nr_threads; i++)
		nr += group->threads[i].pid != group->threads[i - 1].pid;
	return nr;
}

void thread_group_append_threads(struct text *text, const struct thread_group *group)
{
	const uint32_t nr = group->nr_threads;
	const uint32_t nr_processes = count_processes(group);

	if (nr == 1) {
		append_single(text, &group->threads[0]);
		return;
	}
	text_printf(text, "%" PRIu32 " threads", nr);
	if (nr_processes > 1)
		text_printf(text, " in %" PRIu32 " processes", nr_processes);
	else
		dumped_process_append(text, group->threads[0].pid, group->threads[0].process);
	text_puts(text, ":");
	for (uint32_t i = 0; i < nr && i < MAX_LISTED; i++)
		append_member(text, &group->threads[i], i ? &group->threads[i - 1] : NULL,
			      nr_processes > 1);
	if (nr > MAX_LISTED)
		text_printf(text, " and %" PRIu32 " more", nr - MAX_LISTED);
}

static const char *waiting_text(const struct thread_group *group, uint32_t i)
{
	return group->threads[i].thread->waiting.text;
}

/* Whether thread i waits for something that no thread before it does. */
static bool is_new_waiting(const struct thread_group *group, uint32_t i)
{
	const char *text = waiting_text(group, i);

	for (uint32_t k = 0; text && k < i; k++)
		if (waiting_text(group, k) && strcmp(waiting_text(group, k), text) == 0)
			return false;
	return text != NULL;
}

/* Append the ids of the threads that wait as thread i does, unless all of the group do. */
static void append_waiters(struct text *text, const struct thread_group *group, uint32_t i)
{
	struct text ids = {0};
	uint32_t nr = 0;

	for (uint32_t k = i; k < group->nr_threads; k++) {
		if (!waiting_text(group, k) ||
		    strcmp(waiting_text(group, k), waiting_text(group, i)) != 0)
			continue;
		if (nr++ < MAX_LISTED)
			text_printf(&ids, "%s%d", nr > 1 ? ", " : "",
				    group->threads[k].thread->thread.tid);
	}
	if (nr < group->nr_threads)
		text_printf(text, " (%s%s)", text_string(&ids), nr > MAX_LISTED ? ", …" : "");
	text_done(&ids);
}

/* Append a line for each thing that threads of the group wait in. */
static void append_waiting(struct text *text, const struct thread_group *group)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < group->nr_threads; i++) {
		if (!is_new_waiting(group, i))
			continue;
		if (nr++ == MAX_LISTED) {
			text_puts(text, "  …\n");
			return;
		}
		text_puts(text, "  ");
		label_append_string(text, waiting_text(group, i));
		append_waiters(text, group, i);
		text_puts(text, "\n");
	}
}

void thread_group_append(struct text *text, const struct thread_group *group)
{
	thread_group_append_threads(text, group);
	if (group->has_stack)
		text_puts(text, " (most recent call last):\n");
	else
		text_puts(text, group->nr_threads == 1 ? ": runs no Python code\n"
						       : ": they run no Python code\n");
	text_puts(text, group->stack);
	append_waiting(text, group);
}

void thread_groups_append(struct text *text, const struct thread_groups *groups)
{
	for (uint32_t i = 0; i < groups->nr_groups; i++) {
		text_puts(text, "\n");
		thread_group_append(text, &groups->groups[i]);
	}
}

void thread_groups_write(struct json *json, const struct thread_groups *groups)
{
	json_array_begin(json);
	for (uint32_t i = 0; i < groups->nr_groups; i++) {
		const struct thread_group *group = &groups->groups[i];

		json_object_begin(json);
		json_member_u64(json, "count", group->nr_threads);
		json_key(json, "threads");
		json_array_begin(json);
		for (uint32_t k = 0; k < group->nr_threads; k++) {
			json_object_begin(json);
			json_key(json, "pid");
			json_i64(json, group->threads[k].pid);
			json_member_known(json, "tid",
					  (uint64_t)group->threads[k].thread->thread.tid);
			json_object_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}
