/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/interpreter_scan.h"

#include <errno.h>
#include <string.h>

#include "sampler/cpython/find/build_check.h"
#include "sampler/cpython/threads/threads.h"

/* Words that are tried in one read. */
#define BATCH_MAX 1024

/* How often a module is scanned, because lists may be in motion. */
#define MAX_LOOKS 3

/* Slots for addresses that are no interpreter: many words point to the same types. */
#define NR_REJECTED 4096

/* A word that may be the head, and the words read through it. */
struct candidate {
	remote_addr word_addr;
	remote_addr interp_addr;   /* its value */
	remote_addr thread_addr;   /* the newest thread of that interpreter */
	remote_addr thread_interp; /* the interpreter that this thread names */
};

struct scan {
	struct remote_memory *memory;
	const struct maps *maps;
	const struct py_build *build;
	const struct mapping *last;	   /* the mapping that the last pointer led to */
	remote_addr rejected[NR_REJECTED]; /* addresses that are no interpreter, or 0 */
	struct candidate candidates[BATCH_MAX];
	size_t nr_candidates;
	unsigned int nr_tries_left;
	size_t best_points; /* of the best word, see try_word(); 0 if there is none */
	remote_addr best_addr;
	bool done;
};

/* Whether a word can point to a CPython state: it is aligned and points to writable memory. */
static bool points_to_data(struct scan *scan, remote_addr addr)
{
	const struct mapping *mapping;

	if (!addr || addr % 8)
		return false;
	if (scan->last && addr >= scan->last->start && addr < scan->last->end)
		return true;
	mapping = maps_find(scan->maps, addr);
	if (!mapping || !mapping->readable || !mapping->writable)
		return false;
	scan->last = mapping;
	return true;
}

/* Whether interpreters.head is followed by interpreters.main. */
static bool has_main(const struct py_offsets *offsets)
{
	return offsets->runtime.size >= offsets->runtime.interpreters_head + 2 * sizeof(uint64_t);
}

/* Whether the word after the head is an interpreter of the list, and the main one (id 0). */
static bool main_is_right(struct scan *scan, remote_addr word_addr, const struct thread_list *list)
{
	remote_addr main_addr;

	if (!has_main(&scan->build->offsets))
		return true;
	if (remote_memory_read_u64(scan->memory, word_addr + sizeof(uint64_t), &main_addr))
		return false;
	for (size_t i = 0; i < list->nr_interpreters; i++)
		if (list->interpreters[i].addr == main_addr)
			return list->interpreters[i].id == 0;
	return false;
}

/* Follow the lists of the word at word_addr to their ends. Returns 0 also if it is no head. */
static int try_word(struct scan *scan, remote_addr word_addr)
{
	const remote_addr runtime_addr = word_addr - scan->build->offsets.runtime.interpreters_head;
	enum build_live found = BUILD_LIVE_CONTRADICTS;
	struct thread_list list = {0};
	size_t points = 0;
	int err;

	if (scan->nr_tries_left == 0)
		return 0;
	scan->nr_tries_left--;
	err = thread_list_read(scan->memory, scan->build, runtime_addr, false, &list);
	if (err == -E2BIG) /* a cycle, which costs as much as some thousand others */
		scan->nr_tries_left /= 8;
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	if (main_is_right(scan, word_addr, &list))
		found = build_check_live(scan->memory, runtime_addr, scan->build);
	/* A real stack counts more than any list. */
	if (found != BUILD_LIVE_CONTRADICTS)
		points = list.nr_interpreters;
	if (found == BUILD_LIVE_PROVEN)
		points += MAX_INTERPRETERS;
	thread_list_done(&list);
	if (points <= scan->best_points)
		return 0;
	scan->best_points = points;
	scan->best_addr = runtime_addr;
	scan->done = points > MAX_INTERPRETERS && has_main(&scan->build->offsets);
	return 0;
}

static remote_addr *rejected_slot(struct scan *scan, remote_addr interp_addr)
{
	return &scan->rejected[interp_addr / 16 % NR_REJECTED];
}

/* Read a word at an offset from a member of every candidate; 0 if it cannot be read. */
static int read_words(struct scan *scan, size_t from_member, uint32_t offset, size_t to_member)
{
	struct remote_range ranges[BATCH_MAX];

	for (size_t i = 0; i < scan->nr_candidates; i++) {
		uint8_t *candidate = (uint8_t *)&scan->candidates[i];

		memset(candidate + to_member, 0, sizeof(uint64_t));
		ranges[i] = (struct remote_range){
			.addr = field_u64(candidate, from_member) + offset,
			.buffer = candidate + to_member,
			.size = sizeof(uint64_t),
		};
	}
	return remote_memory_read_ranges(scan->memory, ranges, scan->nr_candidates);
}

/*
 * Judge the collected candidates, then empty the list. An interpreter's list of threads leads to a
 * thread that names it, and not to the interpreter itself: usedpools of CPython's obmalloc.c
 * consists of circular lists with one element.
 */
static int try_batch(struct scan *scan)
{
	const struct py_offsets *offsets = &scan->build->offsets;
	const struct candidate *candidate = scan->candidates;
	size_t nr_kept = 0;
	int err = read_words(scan, offsetof(struct candidate, interp_addr),
			     offsets->interpreter.threads_head,
			     offsetof(struct candidate, thread_addr));

	if (err)
		return err;
	for (; candidate < scan->candidates + scan->nr_candidates; candidate++)
		if (candidate->thread_addr != candidate->interp_addr &&
		    points_to_data(scan, candidate->thread_addr))
			scan->candidates[nr_kept++] = *candidate;
		else
			*rejected_slot(scan, candidate->interp_addr) = candidate->interp_addr;
	scan->nr_candidates = nr_kept;
	err = read_words(scan, offsetof(struct candidate, thread_addr), offsets->thread.interp,
			 offsetof(struct candidate, thread_interp));
	for (size_t i = 0; !err && !scan->done && i < nr_kept; i++)
		if (scan->candidates[i].thread_interp == scan->candidates[i].interp_addr)
			err = try_word(scan, scan->candidates[i].word_addr);
	scan->nr_candidates = 0;
	return err;
}

/* Whether a word of a block can be the head: a pointer, followed by another one in a struct. */
static bool may_be_head(struct scan *scan, const struct module_data *data, size_t offset)
{
	remote_addr interp_addr = field_u64(data->block, offset);

	if (!points_to_data(scan, interp_addr) || *rejected_slot(scan, interp_addr) == interp_addr)
		return false;
	if (!has_main(&scan->build->offsets))
		return true;
	offset += sizeof(uint64_t);
	return offset < data->size && points_to_data(scan, field_u64(data->block, offset));
}

/* Try every word. Blocks overlap, so the last word of one is tried again in the next. */
static int scan_module(struct scan *scan, const struct elf_module *module)
{
	struct module_data data;
	int err = 0;

	module_data_init(&data, scan->memory, scan->maps, module);
	while (!err && !scan->done && module_data_next(&data))
		for (size_t i = 0; !err && !scan->done && i < data.size; i += sizeof(uint64_t)) {
			if (!may_be_head(scan, &data, i))
				continue;
			scan->candidates[scan->nr_candidates++] = (struct candidate){
				.word_addr = data.addr + i,
				.interp_addr = field_u64(data.block, i),
			};
			if (scan->nr_candidates == BATCH_MAX)
				err = try_batch(scan);
		}
	if (!err && !scan->done)
		err = try_batch(scan);
	module_data_done(&data);
	return err;
}

int interpreter_scan(struct remote_memory *memory, const struct maps *maps,
		     const struct elf_module *module, const struct py_build *build,
		     remote_addr *ret_runtime_addr)
{
	struct scan scan = {
		.memory = memory,
		.maps = maps,
		.build = build,
		.nr_tries_left = INTERPRETER_SCAN_MAX_TRIES,
	};
	int err = 0;

	for (int i = 0; !err && !scan.best_points && i < MAX_LOOKS; i++) {
		memset(scan.rejected, 0, sizeof(scan.rejected));
		err = scan_module(&scan, module);
	}
	if (err && !(err == -E2BIG && scan.best_points))
		return err;
	if (!scan.best_points)
		return -ENOENT;
	*ret_runtime_addr = scan.best_addr;
	return 0;
}
