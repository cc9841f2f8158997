/* SPDX-License-Identifier: MIT */
/*
 * The approximate stack of a thread that runs while it is read, for when its CPU cannot be held.
 *
 * Since CPython 3.11 a call takes the next words of the thread's data stack for its frame. A
 * frame is as long as its code object says, and its callee's frame begins where it ends. So each
 * chunk is copied in one call, right after the thread state, which has the end of its used part,
 * and walked upward from its first frame. A copy takes less than a microsecond, during which the
 * target goes on: the innermost frames may be of another moment than those below. Frames of
 * generators and coroutines are on the heap: they are not found, and their time counts for their
 * callers. An inconsistent stack is lost.
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

/* Limit on the data stack, about 40,000 frames; larger ones are not copied. */
#define RACING_MAX_BYTES (4u << 20)

/* CPython makes no chunk of less than 16 KiB. */
enum { RACING_MAX_CHUNKS = RACING_MAX_BYTES / (16 << 10) };

/* The copy of the used part of a chunk. */
struct racing_chunk {
	remote_addr addr;
	remote_addr end_addr; /* the end of its last frame */
	uint8_t *bytes;	      /* a part of racing.bytes */
	bool is_oldest;
};

/* Room for copies, reused by each walk. All zero: empty. racing_done() frees it. */
struct racing {
	uint8_t state[THREAD_STATE_MAX_BYTES]; /* of the thread, as read for the last walk */
	uint8_t *bytes;			       /* owned; RACING_MAX_BYTES for all chunks */
	uint32_t nr_bytes;
	struct racing_chunk chunks[RACING_MAX_CHUNKS]; /* newest first */
	uint32_t nr_chunks;
};

void racing_done(struct racing *racing);

/* Whether the threads of a build can be read this way: 3.11 and newer, with a GIL. */
bool racing_supports(const struct py_build *build);

/*
 * Outside of a look: copy the data stack of the thread, through the memory of codes, and put its
 * frames into list as frames_walk() does. clock is that of the last look.
 *
 * Returns 0; -EBADMSG and *ret_loss: LOSS_MOVED (it is inconsistent), LOSS_CODE, LOSS_TOO_DEEP;
 * -ENOENT (the state belongs to another thread now), -ENOMEM, -ESRCH, -EPERM.
 */
int racing_walk(struct racing *racing, struct code_cache *codes, const struct code_clock *clock,
		const struct thread_ref *thread, struct frame_list *list,
		enum sample_loss *ret_loss);
