/* SPDX-License-Identifier: MIT */
/*
 * The stack of a thread that runs while it is read, for where its CPU cannot be held: approximate.
 *
 * From CPython 3.11 on a call takes the next words of the thread's data stack for its frame: a frame
 * is as long as its code object says, and its callee's begins where it ends. So the chunk is copied
 * in one call, behind the thread state that says how far it is in use, and walked upward from its
 * first frame. A copy takes less than a microsecond, in which the target goes on: frames near the
 * innermost one may be of another moment than those below them. Frames of generators and coroutines
 * lie in the heap: they are not met, and their time is their caller's. What does not fit together is
 * lost.
 *
 * Source: CPython 3.11-3.15 Python/pystate.c (push_chunk(), _PyThreadState_PopFrame()),
 * Include/internal/pycore_frame.h (_PyFrame_PushUnchecked()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/threads/threads.h"

/* Larger data stacks are not copied: some 40,000 frames. */
#define RACING_MAX_BYTES (4u << 20)

/* CPython makes no chunk of less than 16 KiB. */
enum { RACING_MAX_CHUNKS = RACING_MAX_BYTES / (16 << 10) };

/* The copy of a chunk, or of what of it is in use. */
struct racing_chunk {
	remote_addr addr;
	remote_addr end_addr; /* behind its last frame */
	uint8_t *bytes;	      /* out of those of all */
	bool is_oldest;
};

/* Room for copies, kept from walk to walk. All zero it is empty; racing_done() frees it. */
struct racing {
	uint8_t state[THREAD_STATE_MAX_BYTES]; /* of the thread, as it was read for the last walk */
	uint8_t *bytes;			       /* owned; of all chunks: RACING_MAX_BYTES */
	uint32_t nr_bytes;
	struct racing_chunk chunks[RACING_MAX_CHUNKS]; /* newest first */
	uint32_t nr_chunks;
};

void racing_done(struct racing *racing);

/* Whether threads of that build can be told so: 3.11 and newer, with a GIL. */
bool racing_can_tell(const struct py_build *build);

/*
 * Copy the data stack of the thread, outside of a look, through the memory of codes, and put its
 * frames into list as frames_walk() does. clock is that of the last look.
 *
 * 0; -EBADMSG and *ret_loss: LOSS_MOVED (it does not fit together), LOSS_CODE, LOSS_TOO_DEEP; -ENOENT
 * (it is another thread's state by now), -ENOMEM, -ESRCH, -EPERM.
 */
int racing_walk(struct racing *racing, struct code_cache *codes, const struct code_clock *clock,
		const struct thread_ref *thread, struct frame_list *list,
		enum sample_loss *ret_loss);
