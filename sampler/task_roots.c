/* SPDX-License-Identifier: MIT */
#include "sampler/task_roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/bounded_memory.h"
#include "procmem/clock.h"
#include "procmem/maps.h"
#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/cpython/threads/asyncio_objects.h"
#include "sampler/cpython/threads/asyncio_offsets.h"
#include "sampler/sampler_state.h"
#include "sampler/task_survey.h"

/*
 * Limit on the reads for one thread in a look, during which the target may stand still. A coroutine
 * takes about three, a task ten. Tasks beyond it are missing above the others.
 */
#define LOOK_MAX_READS (1u << 14)

/* Pauses between searches for asyncio in a process that may load it: each is twice the last. */
#define FIRST_PAUSE_NS 100000000ull
#define LAST_PAUSE_NS  5000000000ull

/*
 * How often the suspended tasks of a thread are read, unless that takes more than this part of the
 * time.
 */
#define SURVEY_EVERY_NS 100000000ull
enum { SURVEY_COST_DIVISOR = 50 };

/* The suspended tasks of a thread. */
struct surveyed_thread {
	struct task_survey *survey; /* owned; NULL: none yet */
	bool is_valid;	  /* it was proven, and holds while the thread is known not to have run */
	bool was_taken;	  /* in the current look */
	uint64_t next_ns; /* when the next one is due */
	uint64_t last_ns; /* its samples cover the time up to here; 0: it has had no tick */
};

/* The tasks above a thread's stack, and the last sample made from them. */
struct rooted_thread {
	uint32_t owner; /* the id, plus 1, of the thread that had the slot at the last look */
	struct surveyed_thread suspended;
	struct frame *above; /* owned; the frames to put above, outermost first */
	uint32_t nr_above, max_above;
	remote_addr task_addr; /* the last one that it executed, or 0 */
	bool has_tasks;	       /* some may have to be surveyed */
	bool has_task;	       /* it executes one */
	uint32_t nr_outer;     /* frames that users see above that task's */
	struct emitted_frames emitted;
};

struct task_roots {
	struct sample_sink sink; /* must be first */
	struct sample_sink *next;
	struct rooted_thread *rooted; /* whose samples the sink gets; NULL: out of memory */
	struct sampler *sampler;
	struct asyncio_offsets asyncio;	      /* from 3.14 on */
	struct asyncio_objects *interpreters; /* before; owned, those that have imported asyncio */
	uint32_t nr_interpreters, max_interpreters;
	struct task_reader reader;
	bool is_found, is_hopeless;
	uint64_t search_ns, pause_ns;
	struct task_path path;
	struct task_surveyor surveyor;
	bool surveys;		       /* the current look is a survey */
	struct rooted_thread *threads; /* owned; by slot of the snapshot */
	uint32_t nr_threads;
};

static int emit(struct sample_sink *sink, const struct sample *sample);

int task_roots_create(struct sampler *sampler, struct task_roots **ret_roots)
{
	static const struct sample_sink_ops ops = {.sample = emit};
	struct task_roots *roots = calloc(1, sizeof(*roots));

	if (!roots)
		return -ENOMEM;
	roots->sink.ops = &ops;
	roots->sampler = sampler;
	roots->path.sampler = sampler;
	task_surveyor_init(&roots->surveyor, sampler, &roots->path);
	roots->pause_ns = FIRST_PAUSE_NS;
	*ret_roots = roots;
	return 0;
}

void task_roots_destroy(struct task_roots *roots)
{
	if (!roots)
		return;
	for (uint32_t i = 0; i < roots->nr_threads; i++) {
		free(roots->threads[i].above);
		emitted_frames_done(&roots->threads[i].emitted);
		task_survey_destroy(roots->sampler, roots->threads[i].suspended.survey);
	}
	free(roots->threads);
	free(roots->interpreters);
	task_surveyor_done(&roots->surveyor);
	task_path_done(&roots->path);
	free(roots);
}

/* Find the variable of _asyncio (3.14 and newer). Errors of asyncio_offsets_find(). */
static int find_offsets(struct task_roots *roots)
{
	struct sampler *sampler = roots->sampler;
	struct maps maps = {0};
	bool is_whole;
	int err;

	if (roots->is_found)
		return 0;
	roots->reader.asyncio = &roots->asyncio;
	err = maps_read(sampler->process, &maps);
	if (!err)
		err = asyncio_offsets_find(sampler->snapshot.memory, &maps, sampler->build,
					   &roots->asyncio, &is_whole);
	maps_done(&maps);
	return err;
}

/* Keep the objects of an interpreter, in place of what was known of it. Returns 0 or -ENOMEM. */
static int keep_objects(struct task_roots *roots, const struct asyncio_objects *objects)
{
	struct asyncio_objects *interpreters;

	for (uint32_t i = 0; i < roots->nr_interpreters; i++)
		if (roots->interpreters[i].interp_addr == objects->interp_addr) {
			roots->interpreters[i] = *objects;
			return 0;
		}
	/* Most of so many have ended. */
	if (roots->nr_interpreters == MAX_INTERPRETERS)
		roots->nr_interpreters = 0;
	interpreters = array_reserve(roots->interpreters, roots->nr_interpreters + 1,
				     &roots->max_interpreters, sizeof(*interpreters));
	if (!interpreters)
		return -ENOMEM;
	roots->interpreters = interpreters;
	interpreters[roots->nr_interpreters++] = *objects;
	return 0;
}

/*
 * Find asyncio's objects in all interpreters, which come and go (before 3.14). One whose objects
 * change just now keeps those that it had.
 */
static int find_objects(struct task_roots *roots)
{
	const struct snapshot *snapshot = &roots->sampler->snapshot;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_interpreters; i++) {
		struct asyncio_objects objects;

		err = asyncio_objects_find(snapshot->memory, roots->reader.build,
					   snapshot->interpreters[i].ref.addr, &objects);
		if (!err)
			err = keep_objects(roots, &objects);
		else if (err != -ENOTSUP && !remote_error_is_fatal(err))
			err = 0;
	}
	return !err && !roots->nr_interpreters ? -ENOENT : err;
}

int task_roots_prepare(struct task_roots *roots, uint64_t now_ns)
{
	struct sampler *sampler = roots->sampler;
	int err;

	if (roots->is_hopeless || now_ns < roots->search_ns || !sampler->process)
		return 0;
	roots->search_ns = now_ns + roots->pause_ns;
	roots->pause_ns = roots->pause_ns * 2 < LAST_PAUSE_NS ? roots->pause_ns * 2 : LAST_PAUSE_NS;
	roots->reader.build = sampler->build;
	err = asyncio_objects_known(sampler->build) ? find_objects(roots) : find_offsets(roots);
	roots->is_found = !err;
	roots->is_hopeless = err == -ENOTSUP;
	return err == -ENOMEM || err == -ESRCH ? err : 0;
}

/* Reading the tasks of a thread. */

/* Returns the data of a thread; NULL if out of memory. */
static struct rooted_thread *thread_get(struct task_roots *roots, uint32_t slot)
{
	const uint32_t nr = roots->sampler->snapshot.nr_slots;
	struct rooted_thread *threads;

	if (slot < roots->nr_threads)
		return &roots->threads[slot];
	threads = reallocarray(roots->threads, nr, sizeof(*threads));
	if (!threads)
		return NULL;
	memset(threads + roots->nr_threads, 0, (nr - roots->nr_threads) * sizeof(*threads));
	roots->threads = threads;
	roots->nr_threads = nr;
	return &threads[slot];
}

/* Keep the path, outermost first. */
static int keep_path(const struct task_roots *roots, struct rooted_thread *rooted)
{
	const struct task_path *path = &roots->path;
	struct frame *above =
		array_reserve(rooted->above, path->nr_frames, &rooted->max_above, sizeof(*above));

	if (!above)
		return -ENOMEM;
	rooted->above = above;
	rooted->nr_above = path->nr_frames;
	for (uint32_t i = 0; i < path->nr_frames; i++)
		above[i] = path->frames[path->nr_frames - 1 - i];
	return 0;
}

/* Find a task's coroutine in the stack of its thread. Returns false if it is not there. */
static bool find_coroutine(const struct task_roots *roots, const struct snapshot_thread *thread,
			   remote_addr coro_addr, uint32_t *ret_nr_outer)
{
	const struct frame_list *list = &roots->sampler->threads[thread->slot].list;
	remote_addr frame_addr;
	uint32_t nr;

	if (coroutine_read_frame(&roots->reader, coro_addr, &frame_addr))
		return false;
	nr = frame_list_find(list, frame_addr);
	*ret_nr_outer = nr > 1 ? list->frames[nr - 2].nr_begun : 0;
	return nr && frame_visible(list, nr - 1);
}

/* Choose what is known of the thread's interpreter. Returns false if it has no tasks. */
static bool choose_reader(struct task_roots *roots, const struct snapshot_thread *thread)
{
	const struct snapshot *snapshot = &roots->sampler->snapshot;

	if (!roots->is_found || roots->reader.asyncio)
		return roots->is_found;
	roots->reader.objects = NULL;
	for (uint32_t i = 0; i < roots->nr_interpreters; i++)
		if (roots->interpreters[i].interp_addr ==
		    snapshot->interpreters[thread->ref.interpreter].ref.addr)
			roots->reader.objects = &roots->interpreters[i];
	return roots->reader.objects;
}

/*
 * Find the task that a thread executes, and set rooted->has_task. Before 3.14 all loops share a
 * dict of running tasks. At the instant of a look another thread may be moving it to a larger
 * table. So if there is no task, it may be the last one, which its coroutine in the stack proves.
 */
static int find_task(struct task_roots *roots, const struct snapshot_thread *thread,
		     struct rooted_thread *rooted, struct task_words *ret_words)
{
	remote_addr task_addr = 0;
	int err = task_read_running(&roots->reader, thread->ref.addr, &task_addr);

	if (remote_error_is_fatal(err))
		return err;
	if (!task_addr && roots->reader.objects)
		task_addr = rooted->task_addr;
	if (!task_addr)
		return 0;
	err = task_read(&roots->reader, task_addr, ret_words);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	rooted->task_addr = task_addr;
	rooted->has_task = find_coroutine(roots, thread, ret_words->coro_addr, &rooted->nr_outer);
	return 0;
}

/*
 * Put the tasks that lead to a running one above the stack of its thread. Returns 0, -ENOMEM,
 * -ESRCH or -EPERM.
 */
static int root_at(struct task_roots *roots, const struct snapshot_thread *thread,
		   struct rooted_thread *rooted, const struct task_words *words)
{
	int err;

	roots->path.nr_frames = 0;
	err = task_path_add_running(&roots->path, &roots->reader, words);
	if (!err)
		err = task_path_add_awaiters(&roots->path, &roots->reader, &thread->clock, words);
	return remote_error_is_fatal(err) ? err : keep_path(roots, rooted);
}

/* How many frames the survey of a thread may have. */
static uint32_t survey_max_frames(const struct task_roots *roots, const struct task_survey *survey)
{
	uint64_t nr_others = 0;

	for (uint32_t i = 0; i < roots->nr_threads; i++) {
		const struct task_survey *other = roots->threads[i].suspended.survey;

		nr_others += other && other != survey ? other->max_frames : 0;
	}
	return nr_others < SURVEYS_MAX_FRAMES ? SURVEYS_MAX_FRAMES - (uint32_t)nr_others : 0;
}

/* Read what the other tasks of a thread wait for. Returns 0, -ENOMEM, -ESRCH or -EPERM. */
static int read_suspended(struct task_roots *roots, const struct snapshot_thread *thread,
			  remote_addr task_addr)
{
	struct surveyed_thread *suspended = &roots->threads[thread->slot].suspended;
	const struct sample_thread *info = roots->sampler->threads[thread->slot].info;
	const struct task_place place = {
		.reader = &roots->reader,
		.thread_addr = thread->ref.addr,
		.running_addr = task_addr,
		.clock = &thread->clock,
		.is_in_look = roots->surveys,
		.max_frames = survey_max_frames(roots, suspended->survey),
	};
	int err = 0;

	if (!suspended->survey)
		err = task_survey_create(roots->sampler, info, &suspended->survey);
	if (!err)
		err = task_survey_take(&roots->surveyor, suspended->survey, &place);
	suspended->was_taken = !err;
	return remote_error_is_fatal(err) ? err : 0;
}

/*
 * Returns the data of a thread, new if the slot was that of another one, which has ended; NULL if
 * out of memory.
 */
static struct rooted_thread *thread_adopt(struct task_roots *roots, uint32_t slot)
{
	const uint32_t owner = roots->sampler->threads[slot].info->id + 1;
	struct rooted_thread *rooted = thread_get(roots, slot);

	if (!rooted || rooted->owner == owner)
		return rooted;
	rooted->owner = owner;
	task_survey_destroy(roots->sampler, rooted->suspended.survey);
	rooted->suspended = (struct surveyed_thread){0};
	rooted->task_addr = 0;
	rooted->has_tasks = false;
	rooted->has_task = false;
	rooted->emitted.nr = 0;
	return rooted;
}

/* Whether a thread has tasks that may have to be surveyed. */
static bool has_tasks(const struct task_roots *roots, const struct snapshot_thread *thread)
{
	const struct task_reader *reader = &roots->reader;
	remote_addr first_addr = 0, head_addr;

	if (roots->sampler->extras.tasks != TASKS_ALL)
		return false;
	if (reader->objects)
		return !asyncio_objects_loop(reader->memory, reader->build, thread->ref.addr,
					     &first_addr) &&
		       first_addr;
	head_addr = thread->ref.addr + reader->asyncio->thread.tasks_head;
	return !remote_memory_read_u64(reader->memory, head_addr, &first_addr) && first_addr &&
	       first_addr != head_addr;
}

int task_roots_look(struct task_roots *roots, const struct snapshot_thread *thread)
{
	struct rooted_thread *rooted = thread_adopt(roots, thread->slot);
	struct bounded_memory memory;
	struct task_words words = {0};
	int err;

	if (!rooted)
		return -ENOMEM;
	rooted->has_task = false;
	rooted->has_tasks = false;
	rooted->suspended.is_valid = false;
	rooted->suspended.was_taken = false;
	if (!choose_reader(roots, thread))
		return 0;
	bounded_memory_init(&memory, roots->sampler->snapshot.memory, LOOK_MAX_READS, NULL,
			    UINT64_MAX);
	roots->reader.memory = &memory.memory;
	err = find_task(roots, thread, rooted, &words);
	rooted->has_tasks = !err && has_tasks(roots, thread);
	if (!err && rooted->has_task)
		err = root_at(roots, thread, rooted, &words);
	if (!err && roots->surveys)
		err = read_suspended(roots, thread, rooted->has_task ? words.addr : 0);
	return err;
}

/* Emitting. */

/*
 * Returns how many of a sample's frames, C frames included, come before Python's frame number nr;
 * nr_frames if it has no such frame, because a gap replaces it.
 */
static uint32_t count_outer(const struct sample *sample, uint32_t nr)
{
	uint32_t i = 0;

	for (; i < sample->nr_frames; i++)
		if (sample->frames[i].function->kind == FUNCTION_PYTHON && !nr--)
			break;
	return i;
}

static int emit(struct sample_sink *sink, const struct sample *sample)
{
	struct task_roots *roots = (struct task_roots *)sink;
	struct rooted_thread *rooted = roots->rooted;
	struct sample changed = *sample;
	uint32_t nr_above = 0, nr_outer = 0;
	int err;

	if (!rooted)
		return -ENOMEM;
	if (rooted->has_task)
		nr_outer = count_outer(sample, rooted->nr_outer);
	if (nr_outer == sample->nr_frames)
		nr_outer = 0;
	else if (rooted->has_task)
		nr_above = rooted->nr_above;
	err = emitted_frames_replace(&rooted->emitted, rooted->above, nr_above,
				     sample->frames + nr_outer, sample->nr_frames - nr_outer,
				     &changed.nr_unchanged);
	if (err)
		return err;
	/* A cached sample, which does not come this way, may be the one before. */
	if (!sample->nr_unchanged)
		changed.nr_unchanged = 0;
	changed.frames = rooted->emitted.frames;
	changed.nr_frames = rooted->emitted.nr;
	changed.details = NULL;
	return roots->next->ops->sample(roots->next, &changed);
}

struct sample_sink *task_roots_sink(struct task_roots *roots, const struct snapshot_thread *thread,
				    struct sample_sink *next)
{
	roots->rooted = thread_get(roots, thread->slot);
	roots->next = next;
	return &roots->sink;
}

/* Suspended tasks. */

/*
 * Read the suspended tasks of a thread that waits, which takes no look: it is where it was if it
 * waits at the same place afterwards. *ret_waited is false if that is unknown.
 */
static int survey_waiting(struct task_roots *roots, const struct snapshot_thread *thread,
			  bool *ret_waited)
{
	const struct process *process = roots->sampler->process;
	struct surveyed_thread *suspended = &roots->threads[thread->slot].suspended;
	struct wait_place place;
	remote_addr task_addr;
	int err;

	*ret_waited =
		thread->tid && !wait_place_read(process, thread->tid,
						run_count_read_once(process, thread->tid), &place);
	if (!*ret_waited)
		return 0;
	if (!choose_reader(roots, thread))
		return 0;
	roots->reader.memory = roots->sampler->snapshot.memory;
	err = task_read_running(&roots->reader, thread->ref.addr, &task_addr);
	if (!err)
		err = read_suspended(roots, thread, task_addr);
	suspended->is_valid =
		!err && suspended->was_taken && !wait_place_check(process, thread->tid, &place);
	return err;
}

/* Read the suspended tasks of a thread in a look of its own. */
static int survey_running(struct task_roots *roots, struct snapshot_thread *thread)
{
	struct surveyed_thread *suspended = &roots->threads[thread->slot].suspended;
	int err;

	thread->proof.is_known = false;
	roots->surveys = true;
	err = sampler_thread_look(roots->sampler, thread, false);
	roots->surveys = false;
	suspended->is_valid = !err && suspended->was_taken;
	return err;
}

/* Try to read the suspended tasks of a thread. */
static int survey(struct task_roots *roots, struct snapshot_thread *thread, uint64_t now_ns)
{
	struct surveyed_thread *suspended = &roots->threads[thread->slot].suspended;
	const uint64_t begin_ns = clock_now_ns();
	uint64_t pause_ns;
	bool waited;
	int err;

	suspended->was_taken = false;
	suspended->is_valid = false;
	err = survey_waiting(roots, thread, &waited);
	if (!err && !waited)
		err = survey_running(roots, thread);
	pause_ns = (clock_now_ns() - begin_ns) * SURVEY_COST_DIVISOR;
	/* One that failed is repeated at the next tick, unless that would take too long. */
	if (suspended->is_valid && pause_ns < SURVEY_EVERY_NS)
		pause_ns = SURVEY_EVERY_NS;
	suspended->next_ns = now_ns + pause_ns;
	return remote_error_is_fatal(err) ? err : 0;
}

/* Emit samples of what was read of a thread's suspended tasks. Returns what the sink returned. */
static int emit_suspended(struct task_roots *roots, const struct snapshot_thread *thread,
			  struct sample_sink *sink, uint64_t now_ns)
{
	struct surveyed_thread *suspended = &roots->threads[thread->slot].suspended;
	const struct sampler_extras *extras = &roots->sampler->extras;
	const struct sample sample = {
		.time_ns = now_ns,
		.wall_ns = now_ns - suspended->last_ns,
		.thread = roots->sampler->threads[thread->slot].info,
		.flags = (extras->cpu ? SAMPLE_CPU_MEASURED : 0u) |
			 (extras->states ? SAMPLE_IDLE : 0u),
	};

	suspended->last_ns = now_ns;
	return task_survey_emit(suspended->survey, sample, sink);
}

int task_roots_tick(struct task_roots *roots, struct sample_sink *sink, uint64_t now_ns)
{
	const struct snapshot *snapshot = &roots->sampler->snapshot;
	int err = 0;

	if (!roots->is_found || roots->sampler->extras.tasks != TASKS_ALL)
		return 0;
	for (size_t i = 0; !err && i < snapshot->nr_threads && !snapshot_stopped(snapshot); i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		struct rooted_thread *rooted;

		if (thread->is_new)
			continue;
		rooted = thread_adopt(roots, thread->slot);
		if (!rooted)
			return -ENOMEM;
		if (!rooted->has_tasks || !rooted->suspended.last_ns)
			rooted->suspended.last_ns = now_ns;
		if (!rooted->has_tasks || now_ns < rooted->suspended.next_ns)
			continue;
		if (rooted->suspended.is_valid && thread->proof.is_known)
			rooted->suspended.next_ns = now_ns + SURVEY_EVERY_NS;
		else
			err = survey(roots, thread, now_ns);
		if (!err && rooted->suspended.is_valid)
			err = emit_suspended(roots, thread, sink, now_ns);
	}
	return err;
}

void task_roots_use_codes(const struct task_roots *roots)
{
	frame_list_use_codes(&roots->path.chain);
}

void task_roots_shift(struct task_roots *roots, uint64_t length_ns)
{
	for (uint32_t i = 0; i < roots->nr_threads; i++)
		if (roots->threads[i].suspended.last_ns)
			roots->threads[i].suspended.last_ns += length_ns;
}
