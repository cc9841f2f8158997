/* SPDX-License-Identifier: MIT */
#include "sampler/native/native_stacks.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/addr_slot.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/sampler_state.h"

/* Room for "?? (", the last part of a path, and an offset. */
enum { UNNAMED_MAX_BYTES = 320 };

/*
 * Limit on the distance from an entry's address to its loop's return address; in 3.12 it is 144
 * bytes.
 */
enum { MAX_DISTANCE_BYTES = 1024, WORD_BYTES = 8 };

/* A frame whose end is known, with its function. */
struct native_anchor {
	remote_addr addr; /* in the frame, whose part of the stack is [addr, cfa) */
	remote_addr cfa;  /* end of the frame */
	/* Of an instruction of its function, for unwind_leave(); 0: unknown. */
	remote_addr lookup_addr;
};

bool native_stacks_is_gap(const struct function *function)
{
	return function->kind == FUNCTION_NATIVE && !function->path[0] &&
	       strcmp(function->qualname, MERGED_STACK_GAP) == 0;
}

int native_stacks_init(struct native_stacks *stacks, const struct native_stacks_options *options)
{
	int err = -ENOMEM;

	*stacks = (struct native_stacks){
		.options = *options,
		.files = module_files_create(),
		.frames = reallocarray(NULL, options->max_frames, sizeof(*stacks->frames)),
		.native_frames =
			reallocarray(NULL, options->max_frames, sizeof(*stacks->native_frames)),
		.merger = {.sampler = options->sampler,
			   .keeps_trampolines = options->keeps_trampolines},
	};
	if (stacks->files && stacks->frames && stacks->native_frames)
		err = stack_window_init(&stacks->window, options->memory);
	if (!err)
		err = native_stacks_set_maps(stacks, options->maps);
	if (err)
		native_stacks_done(stacks);
	return err;
}

static void drop_modules(struct native_stacks *stacks)
{
	unwind_modules_destroy(stacks->modules);
	native_names_destroy(stacks->names);
	module_map_done(&stacks->map);
	stacks->modules = NULL;
	stacks->names = NULL;
}

int native_stacks_set_maps(struct native_stacks *stacks, const struct maps *maps)
{
	int err;

	drop_modules(stacks);
	memset(stacks->functions, 0, sizeof(stacks->functions));
	err = module_map_init(&stacks->map, maps);
	if (!err)
		err = unwind_modules_create(stacks->options.memory, &stacks->map,
					    stacks->options.images, stacks->files,
					    &stacks->modules);
	if (!err)
		err = native_names_create(&stacks->map, stacks->options.images, stacks->files,
					  &stacks->names);
	if (err)
		return err;
	unwind_modules_set_jit(stacks->modules, stacks->options.jit);
	frame_pointers_init(&stacks->pointers, stacks->options.memory, stacks->modules);
	return 0;
}

void native_stacks_done(struct native_stacks *stacks)
{
	drop_modules(stacks);
	module_files_destroy(stacks->files);
	executor_list_done(&stacks->executors);
	stack_window_done(&stacks->window);
	free(stacks->frames);
	free(stacks->native_frames);
	*stacks = (struct native_stacks){.files = NULL};
}

/* Append the frames that are unwound from registers on, up to max_frames in all. */
static void unwind_on(struct native_stacks *stacks, const struct registers *registers,
		      struct stack_window *window, size_t max_frames)
{
	struct unwound unwound = {
		.frames = stacks->frames, .nr_frames = stacks->nr_frames, .max_frames = max_frames};

	stacks->is_whole = unwind_stack(stacks->modules, window, registers, &unwound) == 0;
	stacks->nr_frames = unwound.nr_frames;
	stacks->registers = unwound.registers;
}

void native_stacks_unwind(struct native_stacks *stacks, const struct registers *innermost,
			  struct stack_window *window, size_t max_frames)
{
	assert(max_frames <= stacks->options.max_frames);
	stacks->nr_frames = 0;
	stacks->waits = false;
	unwind_on(stacks, innermost, window, max_frames);
}

/* Run-time code. */

/* The mapping of addr; NULL: unknown. */
static const struct mapping *find_mapping(struct native_stacks *stacks, remote_addr addr)
{
	const uint32_t index = module_map_find(&stacks->map, addr);

	return index == MODULE_MAP_NONE ? NULL : stacks->map.ranges[index].mapping;
}

/* The description of the code at addr, which is in no module; NULL: none. */
static const struct jit_code *find_code(struct native_stacks *stacks, remote_addr addr)
{
	return stacks->options.jit ? jit_frames_find(stacks->options.jit, addr) : NULL;
}

/* Whether the code at addr belongs to an executor. code is its description, or NULL. */
static bool is_executor(struct native_stacks *stacks, remote_addr addr, const struct jit_code *code)
{
	const struct sampler *sampler = stacks->options.sampler;

	if (code)
		return executor_is_name(code->name);
	return sampler->build->traits.has_unnamed_executors &&
	       executor_list_has(&stacks->executors, &sampler->codes, addr, clock_now_ns());
}

/* The same for code that may be in a module. */
static bool is_in_executor(struct native_stacks *stacks, remote_addr addr)
{
	const struct mapping *mapping = find_mapping(stacks, addr);

	return (!mapping || !mapping->inode) && is_executor(stacks, addr, find_code(stacks, addr));
}

/* Gaps. */

/* The C frame at an address; nr_frames: none, or one that was reached as an anchor. */
static size_t frame_of(const struct native_stacks *stacks, remote_addr addr)
{
	for (size_t i = 0; i < stacks->nr_frames; i++) {
		const struct unwind_frame *frame = &stacks->frames[i];

		if (addr >= frame->sp && addr < frame->cfa)
			return frame->is_anchor ? stacks->nr_frames : i;
	}
	return stacks->nr_frames;
}

/*
 * Leave a function whose pushed registers are unknown: if it saved its caller's frame pointer, it
 * did so first. Where a call pushes nothing, they may be anywhere.
 */
static int leave_unknown(const struct native_anchor *anchor, struct stack_window *window,
			 struct registers *registers)
{
	uint64_t pc, frame_pointer;

	if (!REGISTERS_CALL_BYTES || stack_window_u64(window, anchor->cfa - sizeof(pc), &pc) ||
	    stack_window_u64(window, anchor->cfa - 2 * sizeof(pc), &frame_pointer))
		return -ENOENT;
	registers_set(registers, REGISTER_PC, pc);
	registers_set(registers, REGISTER_SP, anchor->cfa);
	registers_set(registers, REGISTER_FRAME_POINTER, frame_pointer);
	return 0;
}

/* Return to the gap, where there were nr_frames. */
static void truncate_to(struct native_stacks *stacks, size_t nr_frames)
{
	stacks->nr_frames = nr_frames;
	stacks->frames[nr_frames - 1].cfa = 0;
	stacks->is_whole = false;
}

/*
 * Continue a stack that is not whole after its gap, at an anchor. The anchor's frame comes next,
 * with only the stack pointer known, then the frames unwound from there. A frame of its own
 * (is_gap) marks the gap, unless the code that could not be unwound is CPython's JIT's: the
 * interpreter's loop calls that code, and it calls nothing but what was unwound. If the anchor's
 * function is unknown, its caller's frame pointer is assumed where functions push it first.
 * Returns 0; -ENOENT: the anchor's caller is no known function, or the stack leads on to
 * something that is not code, and nothing has changed.
 */
static int continue_at(struct native_stacks *stacks, const struct native_anchor *anchor,
		       struct stack_window *window)
{
	struct registers registers = {.known = 0};
	const size_t nr_frames = stacks->nr_frames;
	struct unwind_frame *last = &stacks->frames[nr_frames - 1];
	const remote_addr sp = last->sp;
	const struct cfi_section *section;
	const struct mapping *mapping;
	remote_addr addr;
	int err;

	registers_set(&registers, REGISTER_SP, anchor->addr);
	if (anchor->lookup_addr)
		err = unwind_leave(stacks->modules, window, anchor->lookup_addr, anchor->cfa,
				   &registers);
	else
		err = leave_unknown(anchor, window, &registers);
	if (err || nr_frames + 3 > stacks->options.max_frames ||
	    !registers_know(&registers, REGISTER_PC) ||
	    !unwind_modules_find(stacks->modules, registers_lookup_addr(&registers), &section))
		return -ENOENT;
	if (is_in_executor(stacks, last->lookup_addr)) {
		last->cfa = anchor->addr;
	} else {
		last->cfa = sp;
		stacks->frames[stacks->nr_frames++] =
			(struct unwind_frame){.sp = sp, .cfa = anchor->addr, .is_gap = true};
	}
	stacks->frames[stacks->nr_frames++] =
		(struct unwind_frame){.is_anchor = true,
				      .lookup_addr = anchor->lookup_addr,
				      .sp = anchor->addr,
				      .cfa = anchor->cfa};
	unwind_on(stacks, &registers, window, stacks->options.max_frames);
	/* It must lead to where the thread began, or at least to code that could not be unwound. */
	addr = stacks->frames[stacks->nr_frames - 1].lookup_addr;
	mapping = find_mapping(stacks, addr);
	if (stacks->is_whole || (mapping && mapping->executable) || is_in_executor(stacks, addr))
		return 0;
	truncate_to(stacks, nr_frames);
	return -ENOENT;
}

/*
 * Find the distance from an entry to the end of its loop: the word below the end is the return
 * address from which the stack is whole and has the most frames. Other words of the loop may look
 * like a return address, and a 0 above one like the end of a thread. Returns false if there is
 * none.
 */
static bool find_distance(struct native_stacks *stacks, remote_addr entry_addr,
			  struct stack_window *window)
{
	const size_t nr_frames = stacks->nr_frames;
	size_t most_frames = 0;

	for (uint32_t bytes = 2 * WORD_BYTES; bytes <= MAX_DISTANCE_BYTES; bytes += WORD_BYTES) {
		const struct native_anchor anchor = {.addr = entry_addr, .cfa = entry_addr + bytes};

		if (continue_at(stacks, &anchor, window))
			continue;
		if (stacks->is_whole && stacks->nr_frames > most_frames) {
			most_frames = stacks->nr_frames;
			stacks->loop.distance_bytes = bytes;
		}
		truncate_to(stacks, nr_frames);
	}
	return most_frames > 0;
}

void native_stacks_cross_gaps(struct native_stacks *stacks, const struct loop_entry *entries,
			      uint32_t nr_entries, struct stack_window *window)
{
	struct native_loop *loop = &stacks->loop;

	for (uint32_t i = nr_entries; !loop->lookup_addr && i-- > 0;) {
		const remote_addr addr = entries[i].c_addr;
		const size_t index = addr ? frame_of(stacks, addr) : stacks->nr_frames;

		if (index == stacks->nr_frames)
			continue;
		loop->distance_bytes = (uint32_t)(stacks->frames[index].cfa - addr);
		if (index)
			loop->lookup_addr = stacks->frames[index].lookup_addr;
	}
	for (uint32_t i = nr_entries; !stacks->is_whole && i-- > 0;) {
		struct native_anchor anchor = {
			.addr = entries[i].c_addr,
			.lookup_addr = loop->lookup_addr,
		};

		if (!anchor.addr || anchor.addr < stacks->frames[stacks->nr_frames - 1].sp ||
		    (!loop->distance_bytes && !find_distance(stacks, anchor.addr, window)))
			continue;
		anchor.cfa = anchor.addr + loop->distance_bytes;
		(void)continue_at(stacks, &anchor, window);
	}
}

/* Waiting threads. */

static void unwind_with(struct native_stacks *stacks, const struct registers *registers)
{
	native_stacks_unwind(stacks, registers, &stacks->window, stacks->options.max_frames);
	stacks->waits = true;
}

/* Whether all loops are in the stack, at one distance from the ends of their C frames. */
static bool has_loops(const struct native_stacks *stacks, const struct loop_entry *entries,
		      uint32_t nr_entries)
{
	uint64_t distance_bytes = stacks->loop.distance_bytes;

	for (uint32_t i = 0; i < nr_entries; i++) {
		const remote_addr addr = entries[i].c_addr;
		const size_t index = frame_of(stacks, addr);
		const uint64_t before_bytes = distance_bytes;

		if (!addr)
			continue;
		if (index == stacks->nr_frames)
			return false;
		distance_bytes = stacks->frames[index].cfa - addr;
		if (before_bytes && distance_bytes != before_bytes)
			return false;
	}
	return true;
}

void native_stacks_unwind_waiting(struct native_stacks *stacks, const struct wait_place *place,
				  const struct loop_entry *entries, uint32_t nr_entries)
{
	struct registers registers = {.is_interrupted = true};
	struct registers outer;
	uint64_t pointer;

	registers_set(&registers, REGISTER_SP, place->sp_addr);
	registers_set(&registers, REGISTER_PC, place->pc_addr);
	stack_window_forget(&stacks->window);
	unwind_with(stacks, &registers);
	if (stacks->is_whole ||
	    frame_pointers_find(&stacks->pointers, &stacks->registers, &pointer))
		return;
	/* The last frame is unwound once more. */
	outer = stacks->registers;
	registers_set(&outer, REGISTER_FRAME_POINTER, pointer);
	stacks->nr_frames--;
	unwind_on(stacks, &outer, &stacks->window, stacks->options.max_frames);
	if (!stacks->is_whole || !has_loops(stacks, entries, nr_entries))
		unwind_with(stacks, &registers);
}

/* Names. */

/*
 * Name a frame whose address has no symbol, except for a trampoline without a known name. Returns
 * 0 or -ENOMEM.
 */
static int name_without_symbol(struct native_stacks *stacks, const struct native_name *found,
			       remote_addr addr, struct native_frame *native)
{
	const struct mapping *mapping = find_mapping(stacks, addr);
	const bool is_anonymous = mapping && !mapping->inode;
	const struct jit_code *code = NULL;
	enum function_kind kind = FUNCTION_JIT;
	char unnamed[UNNAMED_MAX_BYTES];
	const char *name = NATIVE_STACKS_JIT;

	if (is_anonymous || !found->path[0]) {
		code = find_code(stacks, addr);
		if (!code || trampoline_is_name(code->name))
			native->trampoline_addr = unwind_modules_trampoline(stacks->modules, addr);
		native->is_executor = !native->trampoline_addr && is_executor(stacks, addr, code);
	}
	if (code) {
		name = code->name;
	} else if (native->trampoline_addr) {
		return 0;
	} else if (!native->is_executor && !(is_anonymous && mapping->executable)) {
		/* Name it by its place: "?? (libc.so.6+0x1234)". */
		const char *slash = strrchr(found->path, '/');
		const char *module = slash ? slash + 1 : found->path;

		(void)snprintf(unnamed, sizeof(unnamed), "?? (%.255s%s%#llx)", module,
			       module[0] ? "+" : "", (unsigned long long)found->offset);
		name = unnamed;
		kind = FUNCTION_NATIVE;
	}
	native->function = sampler_function(stacks->options.sampler, kind, name,
					    kind == FUNCTION_JIT ? "" : found->path);
	return native->function ? 0 : -ENOMEM;
}

/* Name a frame by an address of its function, with the same exception. Returns 0 or -ENOMEM. */
static int name_address(struct native_stacks *stacks, remote_addr addr, struct native_frame *native)
{
	const size_t slot = addr_slot(addr, NATIVE_STACKS_NAMES);
	struct native_name found;
	int err = 0;

	if (stacks->functions[slot].function && stacks->functions[slot].addr == addr) {
		native->function = stacks->functions[slot].function;
		return 0;
	}
	native_names_find(stacks->names, addr, &found);
	if (found.name[0])
		native->function = sampler_function(stacks->options.sampler, FUNCTION_NATIVE,
						    found.name, found.path);
	else
		err = name_without_symbol(stacks, &found, addr, native);
	if (err || native->trampoline_addr)
		return err;
	/* Run-time code may be replaced by other code. */
	if (native->function && found.path[0]) {
		stacks->functions[slot].addr = addr;
		stacks->functions[slot].function = native->function;
	}
	return native->function ? 0 : -ENOMEM;
}

/* Make the native frames of all frames, named with the same exception. Returns 0 or -ENOMEM. */
static int name_frames(struct native_stacks *stacks)
{
	int err = 0;

	for (size_t i = 0; !err && i < stacks->nr_frames; i++) {
		const struct unwind_frame *frame = &stacks->frames[i];
		struct native_frame *native = &stacks->native_frames[i];
		struct native_name found = {.path = ""};
		const char *name = frame->is_gap	    ? MERGED_STACK_GAP
				   : frame->is_anchor	    ? MERGED_STACK_LOOP
				   : frame->is_signal_frame ? NATIVE_STACKS_SIGNAL
							    : NULL;

		*native = (struct native_frame){
			.sp_addr = frame->sp,
			.cfa_addr = frame->cfa,
			.pc_addr = frame->pc,
		};
		if (!name) {
			err = name_address(stacks, frame->lookup_addr, native);
			continue;
		}
		if (frame->is_signal_frame)
			native_names_find(stacks->names, frame->lookup_addr, &found);
		native->function = sampler_function(stacks->options.sampler, FUNCTION_NATIVE, name,
						    found.path);
		err = native->function ? 0 : -ENOMEM;
	}
	return err;
}

int native_stacks_emit(struct native_stacks *stacks, const struct sample *sample,
		       struct sample_sink *next)
{
	const struct kernel_frames *kernel = stacks->options.kernel;
	const struct native_stack native = {
		.frames = stacks->native_frames,
		.nr_frames = (uint32_t)stacks->nr_frames,
		.is_whole = stacks->is_whole,
		.kernel = kernel ? kernel->functions : NULL,
		.nr_kernel = kernel ? kernel->nr_functions : 0,
	};
	struct sample merged_sample = *sample;
	struct merged_stack merged;
	int err = name_frames(stacks);

	if (!err)
		err = merged_stack_make(&stacks->merger, sample, &native, &merged);
	if (err)
		return err;
	if (merged.runs_executor && (!stacks->waits || stacks->native_frames[0].is_executor))
		merged_sample.flags |= SAMPLE_IN_JIT;
	merged_sample.frames = merged.frames;
	merged_sample.details = merged.details;
	merged_sample.nr_frames = merged.nr_frames;
	merged_sample.nr_unchanged = 0;
	err = next->ops->sample(next, &merged_sample);
	merged_stack_done(&merged);
	return err;
}
