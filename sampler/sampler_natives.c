/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_natives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/task.h"
#include "sampler/sampler_natives_state.h"

/*
 * A thread of which no dump came for so much of a period has not run all the time: it may wait.
 * Dumps of one that runs come a little later than each period. With two periods, of threads that
 * compete for the GIL 1.6 s were told to hold it in each second, and with this 1.2 s.
 */
enum { PERCENT_WITHOUT_DUMP = 125 };

/*
 * One that could run has no sample of a tick: its next dump has the time. But after so long it
 * has one without C frames, as its event may not work.
 */
#define UNSEEN_MAX_NS 1000000000u

/* Modules. */

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int sampler_natives_renew_modules(struct sampler_natives *natives, uint64_t now_ns)
{
	const struct perf_events_stats *events = &natives->events.stats;
	struct maps before;
	uint64_t before_ns;
	int err;

	if (!recent_maps_are_due(&natives->maps, now_ns, events))
		return 0;
	before_ns = own_cpu_ns();
	err = recent_maps_read(&natives->maps, natives->options.process, now_ns, events, &before);
	if (err)
		return err;
	waiting_stacks_done(&natives->waiting);
	err = native_stacks_set_maps(&natives->stacks, &natives->maps.maps);
	maps_done(&before);
	if (!err)
		err = waiting_stacks_init(&natives->waiting, natives->options.memory,
					  &natives->stacks);
	recent_maps_took(&natives->maps, own_cpu_ns() - before_ns);
	return err;
}

void sampler_natives_complete(struct sampler_natives *natives, const struct loop_entry *entries,
			      uint32_t nr_entries, struct stack_window *window)
{
	struct native_stacks *stacks = &natives->stacks;
	const remote_addr last_addr = stacks->frames[stacks->nr_frames - 1].lookup_addr;

	/* A stack that is not whole may have led into a module that is new. */
	if (!stacks->is_whole && !unwind_modules_has(stacks->modules, last_addr))
		natives->maps.are_old = true;
	loop_bridge_cross(&natives->bridge, stacks, entries, nr_entries, window);
}

/* Samples of ticks. */

/* What a merged sample had in common with the one before it is not known. */
static int take_tick_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;
	struct sample whole = *sample;

	whole.nr_unchanged = 0;
	return next->ops->sample(next, &whole);
}

static int take_tick(struct sample_sink *sink, uint64_t now_ns)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;

	return next->ops->tick ? next->ops->tick(next, now_ns) : 0;
}

static void take_name(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;

	if (next->ops->renamed)
		next->ops->renamed(next, thread);
}

struct sample_sink *sampler_natives_begin(struct sampler_natives *natives, struct sample_sink *next)
{
	natives->next = next;
	return &natives->sink;
}

void sampler_natives_add(struct sampler_natives *natives, const struct sample_thread *thread)
{
	if (natives->has_events && thread->tid)
		(void)perf_events_add(&natives->events, thread->tid); /* it counts those refused */
}

/* Samples with C frames. */

/* How many of a sample's frames are told: those of the collector are no frames of Python's. */
static uint32_t nr_shown(const struct sample *sample, uint32_t nr_told)
{
	uint32_t nr = 0;

	for (; nr < sample->nr_frames; nr++) {
		if (sample->frames[nr].function->kind == FUNCTION_COLLECTOR)
			continue;
		if (!nr_told--)
			break;
	}
	return nr;
}

/* Put a hole in the place of the frames from nr on, where the loop is that has the first of them. */
static int merge_holed(const struct merge_sink *merge, const struct sample *sample, uint32_t nr)
{
	cleanup_free struct frame *frames = array_copy(sample->frames, nr + 1, sizeof(*frames));
	struct sample holed = *sample;

	if (!frames)
		return -ENOMEM;
	frames[nr] = (struct frame){.function = merge->natives->hole};
	holed.frames = frames;
	holed.nr_frames = nr + 1;
	return native_stacks_hand_on(&merge->natives->stacks, &holed, merge->next);
}

static int merge(struct sample_sink *sink, const struct sample *sample)
{
	const struct merge_sink *merge = (const struct merge_sink *)sink;
	const uint32_t nr = nr_shown(sample, merge->nr_told);

	if (nr == sample->nr_frames)
		return native_stacks_hand_on(&merge->natives->stacks, sample, merge->next);
	merge->natives->stats.nr_python_holed++;
	return merge_holed(merge, sample, nr);
}

void sampler_natives_enter_kernel(struct sampler_natives *natives)
{
	native_stacks_enter_kernel(&natives->stacks, natives->kernel.functions,
				   natives->kernel.nr_functions);
}

int sampler_natives_tell(struct sampler_natives *natives, const struct snapshot_thread *thread,
			 const struct loop_entry *entries, uint32_t nr_told,
			 const struct perf_dump *dump, struct sample sample)
{
	struct sampler *sampler = natives->options.sampler;
	const struct frame_list *list = &sampler->threads[thread->slot].list;
	const struct registers registers = registers_of_perf(dump->registers);
	struct stack_window window = {
		.start = registers.values[REGISTER_SP],
		.bytes = dump->stack,
		.nr_bytes = dump->nr_stack_bytes,
	};
	struct detail_sink detailed;
	int err;

	jit_frames_set_time(natives->jit, dump->time_ns);
	native_stacks_unwind(&natives->stacks, &registers, &window, SAMPLER_NATIVES_MAX_FRAMES);
	sampler_natives_complete(natives, entries, nr_told, &window);
	err = kernel_frames_take(&natives->kernel, dump->kernel_addrs, dump->nr_kernel_addrs);
	if (err)
		return err;
	sampler_natives_enter_kernel(natives);
	natives->stats.nr_stacks++;
	natives->stats.nr_broken += !natives->stacks.is_whole;
	natives->merge.next = natives->next;
	natives->merge.nr_told = nr_told == list->nr_frames ? UINT32_MAX
				 : nr_told		    ? list->frames[nr_told - 1].nr_begun
							    : 0;
	detail_sink_init(&detailed, &sampler->codes, thread->ref.addr, list, NULL,
			 &natives->merge.sink);
	detailed.entries = entries;
	return sampler_thread_emit(sampler, thread, sample, &detailed.sink);
}

int sampler_natives_take_interrupted(struct sampler_natives *natives,
				     const struct snapshot_thread *thread,
				     const struct loop_chain *chain, uint64_t count_ns,
				     struct sample sample)
{
	struct sampler *sampler = natives->options.sampler;
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	cleanup_free struct loop_entry *entries = NULL;
	const struct perf_dump *dump =
		perf_events_find(&natives->events, sampled->info->tid, count_ns, sample.time_ns);
	int err;

	if (!dump) {
		natives->stats.nr_undumped++;
		return sampler_thread_emit(sampler, thread, sample, &natives->sink);
	}
	/* What was mapped before the dump is known by now. A target that is gone is known as it was. */
	err = sampler_natives_renew_modules(natives, clock_now_ns());
	if (err && err != -ESRCH)
		return err;
	err = loop_entries_take(&sampler->codes, chain, &sampled->list, true, &entries);
	return err ? err
		   : sampler_natives_tell(natives, thread, entries, sampled->list.nr_frames, dump,
					  sample);
}

/* Samples of threads that use no CPU time. */

uint64_t sampler_natives_without_dump_ns(const struct sampler_natives *natives)
{
	return natives->options.period_ns * PERCENT_WITHOUT_DUMP / 100;
}

/* The sample of a thread of which nothing tells where its C stack is. */
static int take_python(struct sampler_natives *natives, struct snapshot_thread *thread,
		       uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	int err = sampler_thread_look(sampler, thread, false);

	return err ? err
		   : sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns},
					 &natives->sink);
}

int sampler_natives_tick(struct sampler_natives *natives, struct snapshot_thread *thread,
			 uint64_t now_ns)
{
	const struct process *process = natives->options.process;
	struct sampled_thread *sampled = &natives->options.sampler->threads[thread->slot];
	const pid_t tid = sampled->info->tid;
	uint64_t unseen_ns, nr_runs;
	struct task_place place;
	int err = -ENOENT;

	if (!sampled->last_ns)
		sampled->last_ns = now_ns; /* the first tick: its time begins */
	unseen_ns = now_ns - sampled->last_ns;
	if (natives->has_events && !natives->events.options.has_program &&
	    unseen_ns < sampler_natives_without_dump_ns(natives))
		return 0;
	if (tid) {
		nr_runs = task_read_runs(process, tid);
		if (sampler_natives_take_again(natives, thread, nr_runs, now_ns, &err))
			return err;
		err = task_read_place(process, tid, nr_runs, &place);
	}
	/* What it ran last may be there still, but it has ended since the threads were listed. */
	if (err == -ESRCH && !process_has_thread(process, tid))
		return 0;
	if (!err)
		err = sampler_natives_take_waiting(natives, thread, &place, now_ns);
	else if (err != -EAGAIN)
		err = take_python(natives, thread, now_ns);
	if (err == -EAGAIN && !natives->has_events)
		return err;
	if (err == -EAGAIN && unseen_ns >= UNSEEN_MAX_NS)
		err = take_python(natives, thread, now_ns);
	if (err == -EBADMSG)
		natives->options.sampler->stats.lost[LOSS_MOVED]++;
	return err == -EAGAIN || sampler_is_passing(err) ? 0 : err;
}

/* Making. */

/* Without any maps: they are read then. */
static int init_stacks(struct sampler_natives *natives)
{
	const struct sampler_natives_options *options = &natives->options;

	return native_stacks_init(&natives->stacks,
				  &(struct native_stacks_options){
					  .memory = options->memory,
					  .maps = &natives->maps.maps,
					  .images = options->images,
					  .sampler = options->sampler,
					  .jit = natives->jit,
					  .max_frames = SAMPLER_NATIVES_MAX_FRAMES,
					  .keeps_registers = true,
					  .keeps_trampolines = options->keeps_trampolines,
				  });
}

/* Who may be told where programs are need not be told where the kernel is. */
static void judge_kernel(const struct sampler_natives *natives, struct message *ret_why)
{
	if (natives->kernel.names && natives->events.user_only)
		message_set(ret_why, "perf_event_open tells of programs only: for the kernel's "
				     "frames kernel.perf_event_paranoid has to be 1 or less, or it "
				     "takes CAP_PERFMON");
}

/* Follow threads that run, or say why that cannot be. 0; -ENOMEM, -ESRCH. */
static int open_events(struct sampler_natives *natives, struct message *ret_why)
{
	const struct sampler_natives_options *options = &natives->options;
	const struct sampler_interrupts *interrupts = options->sampler->interrupts;
	const struct perf_events_options events = {
		.period_ns = options->period_ns,
		.max_stack_bytes = SAMPLER_NATIVES_STACK_BYTES,
		.tells_kernel = natives->kernel.names != NULL,
		.has_program = interrupts != NULL,
		.program_fd = interrupts ? sampler_interrupts_program_fd(interrupts) : -1,
	};
	int err = perf_events_open(options->process, &events, &natives->events, ret_why);
	natives->has_events = !err;
	return ret_why->text[0] ? 0 : err;
}

int sampler_natives_create(const struct sampler_natives_options *options,
			   struct sampler_natives **ret_natives, struct message *ret_why,
			   struct message *ret_why_no_kernel)
{
	static const struct sample_sink_ops ops = {
		.sample = take_tick_sample,
		.renamed = take_name,
		.tick = take_tick,
	};
	static const struct sample_sink_ops merge_ops = {.sample = merge};
	struct sampler_natives *natives;
	int err;

	natives = calloc(1, sizeof(*natives));
	if (!natives)
		return -ENOMEM;
	natives->sink.ops = &ops;
	natives->merge = (struct merge_sink){.sink.ops = &merge_ops, .natives = natives};
	natives->options = *options;
	natives->events = PERF_EVENTS_CLOSED;
	err = options->tells_kernel ? kernel_frames_open(&natives->kernel, options->process,
							 options->sampler, ret_why_no_kernel)
				    : 0;
	if (!err)
		err = open_events(natives, ret_why);
	if (!err)
		err = jit_frames_create(options->process, options->memory, &natives->jit);
	if (!err)
		err = init_stacks(natives);
	if (!err)
		err = sampler_natives_renew_modules(natives, clock_now_ns());
	natives->hole = sampler_function(options->sampler, FUNCTION_NATIVE, NATIVE_STACKS_HOLE, "");
	natives->evidence.stack = malloc(SAMPLER_NATIVES_STACK_BYTES);
	if (!err && (!natives->hole || !natives->evidence.stack))
		err = -ENOMEM;
	if (err) {
		sampler_natives_destroy(natives);
		return err;
	}
	judge_kernel(natives, ret_why_no_kernel);
	options->sampler->natives = natives;
	*ret_natives = natives;
	return 0;
}

void sampler_natives_destroy(struct sampler_natives *natives)
{
	if (!natives)
		return;
	natives->options.sampler->natives = NULL;
	perf_events_close(&natives->events);
	waiting_stacks_done(&natives->waiting);
	waiting_samples_done(&natives->kept);
	native_stacks_done(&natives->stacks);
	jit_frames_destroy(natives->jit);
	kernel_frames_close(&natives->kernel);
	maps_done(&natives->maps.maps);
	free(natives->evidence.stack);
	free(natives->evidence.entries);
	free(natives);
}

const struct sampler_natives_stats *sampler_natives_stats(const struct sampler_natives *natives)
{
	return &natives->stats;
}

const struct perf_events_stats *sampler_natives_events(const struct sampler_natives *natives)
{
	return &natives->events.stats;
}

bool sampler_natives_are_proven(const struct sampler_natives *natives)
{
	return natives->events.options.has_program;
}

uint32_t sampler_natives_room(const struct sampler_natives *natives)
{
	return perf_events_room(&natives->events);
}

void sampler_natives_sweep(struct sampler_natives *natives)
{
	if (natives->events.options.has_program)
		perf_events_sweep(&natives->events);
}

bool sampler_natives_user_only(const struct sampler_natives *natives)
{
	return natives->events.user_only;
}
