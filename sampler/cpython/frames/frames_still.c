/* SPDX-License-Identifier: MIT */
/*
 * The walk of a thread that may lack pieces. Where its links lead to nothing, as those of core files
 * that lack the C stack, the data-stack chunks alone tell where frames lie (3.11 and newer): a frame
 * is as long as its code object says, and its callee begins where it ends.
 */
#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/cpython/base/circle.h"
#include "sampler/cpython/frames/frames.h"

/* So many frames in a row may lack their code object; what comes then are no frames. */
enum { MAX_MISSING = 8 };

/*
 * More chunks than this are taken for damage: 16 KiB each, it is 256 MiB of stack. No stack is
 * larger than STACK_MAX_BYTES: one of MAX_FRAMES has about 100 MB.
 */
#define MAX_CHUNKS	16384
#define STACK_MAX_BYTES (512u << 20)

/* A chunk: the part of it that is used, [start, end). */
struct chunk {
	remote_addr start;
	remote_addr end;
};

/* So many words of all chunks that are no frame are passed over. */
#define MAX_SKIPS (64u << 10)

struct still_walk {
	struct frame_walk walk;
	const struct stack_ends *ends;
	struct chunk *chunks; /* newest first; owned */
	uint32_t nr_chunks, max_chunks;
	bool has_all_chunks;  /* down to the oldest */
	remote_addr *outline; /* the frames that the chunks tell, outermost first; owned */
	uint32_t nr_outlined, max_outlined;
	bool is_outlined;	 /* they were looked for */
	size_t nr_skips_left;	 /* of MAX_SKIPS */
	size_t nr_below;	 /* so many of its frames lie below those that were walked */
	remote_addr lowest_addr; /* of the outermost frame walked on the data stack; 0: none */
	unsigned int nr_missing; /* frames in a row without code object */
	bool bridged;
};

/* Read the chunk at addr, whose frames end at top_addr (0: where it says itself). */
static int read_chunk(const struct code_cache *codes, remote_addr addr, remote_addr top_addr,
		      struct chunk *ret_chunk, remote_addr *ret_previous_addr)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	uint8_t header[40];
	uint64_t size, top;
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(codes->memory, addr, header, offsets->chunk.data);
	if (err)
		return err;
	size = field_u64(header, offsets->chunk.size);
	top = field_u64(header, offsets->chunk.top);
	if (size > STACK_MAX_BYTES || __builtin_mul_overflow(top, sizeof(uint64_t), &top) ||
	    top > size)
		return -EBADMSG;
	if (!top_addr)
		top_addr = addr + offsets->chunk.data + top;
	if (top_addr < addr + offsets->chunk.data || top_addr > addr + size)
		return -EBADMSG;
	*ret_previous_addr = field_u64(header, offsets->chunk.previous);
	/* push_chunk() leaves the first word of the oldest chunk unused. */
	*ret_chunk = (struct chunk){
		.start = addr + offsets->chunk.data + (*ret_previous_addr ? 0 : sizeof(uint64_t)),
		.end = top_addr,
	};
	return 0;
}

/* List the chunks from the newest down, as far as they can be read. 0; -ENOMEM, -ESRCH, -EPERM. */
static int list_chunks(struct still_walk *still)
{
	remote_addr top_addr = still->ends->datastack_top_addr;
	remote_addr addr = still->ends->newest_chunk_addr;
	struct circle circle = {0};

	while (addr && !circle_closes(&circle, addr) && still->nr_chunks < MAX_CHUNKS) {
		struct chunk *chunks = array_reserve(still->chunks, still->nr_chunks + 1,
						     &still->max_chunks, sizeof(*chunks));
		int err;

		if (!chunks)
			return -ENOMEM;
		still->chunks = chunks;
		err = read_chunk(still->walk.codes, addr, top_addr, &chunks[still->nr_chunks],
				 &addr);
		if (err)
			return remote_error_is_fatal(err) ? err : 0;
		still->nr_chunks++;
		top_addr = 0;
	}
	still->has_all_chunks = !addr && still->nr_chunks;
	return 0;
}

/* The size of the frame at addr. 0, -EBADMSG (none is there), -EFAULT, … */
static int read_size(const struct still_walk *still, remote_addr addr, uint32_t *ret_size_bytes)
{
	struct code_cache *codes = still->walk.codes;
	const struct py_offsets *offsets = &codes->build->offsets;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct frame_words words;
	remote_addr place_addr;
	struct code *code;
	int err = remote_memory_read(codes->memory, addr, bytes, frame_head_bytes(offsets));

	if (err)
		return err;
	words = frame_words(offsets, bytes);
	if (!words.executable || words.owner != OWNED_BY_THREAD)
		return -EBADMSG;
	err = code_cache_get(codes, words.executable, still->walk.clock, &code);
	if (!err)
		err = code_place(codes, code, still->walk.clock, words.instr_ptr, &place_addr);
	if (!err)
		*ret_size_bytes = code->frame_size_bytes;
	return err;
}

/* Find the frames of a chunk, and go on behind what is none. 0; -ENOMEM, -ESRCH, -EPERM. */
static int outline_chunk(struct still_walk *still, const struct chunk *chunk)
{
	remote_addr addr = chunk->start;

	while (addr < chunk->end && still->nr_outlined < MAX_FRAMES) {
		uint32_t size_bytes = 0;
		int err = read_size(still, addr, &size_bytes);

		if (remote_error_is_fatal(err))
			return err;
		if (err || !size_bytes || size_bytes > chunk->end - addr) {
			if (!still->nr_skips_left)
				return 0;
			still->nr_skips_left--;
			addr += sizeof(uint64_t);
			continue;
		}
		remote_addr *addrs = array_reserve(still->outline, still->nr_outlined + 1,
						   &still->max_outlined, sizeof(*addrs));

		if (!addrs)
			return -ENOMEM;
		still->outline = addrs;
		addrs[still->nr_outlined++] = addr;
		addr += size_bytes;
	}
	return 0;
}

/* Whether another frame may be found in spite of that error. */
static bool is_gap(int err)
{
	return err == -EFAULT || err == -EBADMSG || err == -EAGAIN;
}

/* Whether the words can be a frame's although its code object cannot be read. */
static bool may_be_frame(const struct still_walk *still, remote_addr addr,
			 const struct frame_words *words)
{
	return still->nr_missing < MAX_MISSING && addr % sizeof(uint64_t) == 0 &&
	       words->executable && words->previous != addr &&
	       (still->walk.build->traits.frames_on_heap ||
		words->owner < still->walk.build->traits.shim_owner);
}

/*
 * Whether the frame is the one below an __init__ that is called from Python (3.13 and newer):
 * people do not see it, and its code object is a constant of a file, which a core lacks. It
 * stands on the second instruction of four; no function calls another one as early.
 */
static bool is_init_cleanup(const struct still_walk *still, const struct frame_words *words)
{
	enum { INIT_CLEANUP_MAX_BYTES = 4 };
	const uint32_t start = still->walk.build->offsets.code.code_adaptive;
	uint64_t word;

	return start != OFFSET_ABSENT &&
	       words->instr_ptr - (words->executable + start) <= INIT_CLEANUP_MAX_BYTES &&
	       remote_memory_read_u64(still->walk.codes->memory, words->executable, &word) != 0;
}

/* Append a frame whose code object cannot be read, if it may be one. */
static int append_missing(struct still_walk *still, remote_addr addr,
			  const struct frame_words *words)
{
	struct code *missing = code_cache_missing(still->walk.codes);

	if (is_init_cleanup(still, words))
		return 0;
	still->nr_missing++;
	return missing ? walk_append(&still->walk, addr, words, missing) : -ENOMEM;
}

/* Append the frame at addr; *ret_next is its `previous`. */
static int step(struct still_walk *still, remote_addr addr, remote_addr *ret_next)
{
	struct frame_walk *walk = &still->walk;
	const struct py_offsets *offsets = &walk->build->offsets;
	const bool on_heap = walk->build->traits.frames_on_heap;
	const uint32_t nr_before = walk->list->nr_frames;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct frame_words words;
	int err = remote_memory_read(walk->codes->memory, addr, bytes, frame_head_bytes(offsets));

	if (err)
		return err;
	words = frame_words(offsets, bytes);
	err = walk_step(walk, addr, &words);
	if (is_gap(err) && may_be_frame(still, addr, &words))
		err = append_missing(still, addr, &words);
	else if (!err)
		still->nr_missing = 0;
	if (err)
		return err;
	if (walk->list->nr_frames > nr_before && !on_heap && words.owner == OWNED_BY_THREAD)
		still->lowest_addr = addr;
	*ret_next = words.previous;
	return 0;
}

/* Whether the walk, which ended with err, has come to the outermost frame on the data stack. */
static bool is_whole(const struct still_walk *still, int err)
{
	const struct stack_ends *ends = still->ends;
	const remote_addr bottom_addr =
		still->has_all_chunks ? still->chunks[still->nr_chunks - 1].start : 0;

	if (!ends->newest_chunk_addr)
		return !err;
	if (!still->lowest_addr)
		return ends->datastack_top_addr <= bottom_addr;
	return still->lowest_addr == bottom_addr;
}

/*
 * The innermost frame on the data stack below those that were walked: *ret_addr, or 0 if
 * there is none. 0; -ENOMEM, -ESRCH, -EPERM.
 */
static int find_below(struct still_walk *still, remote_addr *ret_addr)
{
	int err = 0;

	*ret_addr = 0;
	if (!still->is_outlined) {
		for (uint32_t i = still->nr_chunks; !err && i > 0; i--)
			err = outline_chunk(still, &still->chunks[i - 1]);
		if (err)
			return err;
		still->is_outlined = true;
		still->nr_below = still->nr_outlined;
	}
	while (still->lowest_addr && still->nr_below > 0 &&
	       still->outline[still->nr_below - 1] != still->lowest_addr)
		still->nr_below--;
	if (still->lowest_addr && still->nr_below > 0)
		still->nr_below--;
	if (still->nr_below > 0)
		*ret_addr = still->outline[still->nr_below - 1];
	return 0;
}

/* Follow `previous` from addr as far as it leads: 0 at the bottom. */
static int follow(struct still_walk *still, remote_addr addr, struct circle *circle)
{
	int err = 0;

	while (!err && addr && addr != still->ends->base_frame_addr) {
		if (circle_closes(circle, addr) || circle->nr > 2ull * MAX_FRAMES + 1)
			return -E2BIG;
		err = step(still, addr, &addr);
	}
	/* A stack that 3.15 has a bottom for must end there. */
	if (!err && still->ends->base_frame_addr && !addr && still->walk.list->nr_frames)
		err = -EAGAIN;
	return err;
}

static int walk_all(struct still_walk *still)
{
	struct circle circle = {0};
	remote_addr addr = still->ends->current_frame_addr;
	int err = still->ends->current_err;
	int below_err;

	for (;;) {
		if (!err)
			err = follow(still, addr, &circle);
		if (err && !is_gap(err))
			return err;
		if (is_whole(still, err))
			return 0;
		below_err = find_below(still, &addr);
		if (below_err || !addr)
			return below_err ? below_err : err;
		still->bridged = true;
		err = 0;
	}
}

int frames_walk_still(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged)
{
	struct still_walk still = {
		.walk = {.build = codes->build, .codes = codes, .clock = clock, .list = list},
		.ends = ends,
		.nr_skips_left = MAX_SKIPS,
	};
	int err = list_chunks(&still);

	list->nr_known = 0;
	frame_list_begin(list, 0);
	if (!err)
		err = walk_all(&still);
	frame_list_reverse(list);
	free(still.chunks);
	free(still.outline);
	*ret_bridged = still.bridged;
	return err;
}
