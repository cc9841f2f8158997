/* SPDX-License-Identifier: MIT */
/*
 * What a code object that is new names, as a memory: either read in one call, since a program that
 * makes and drops functions all the time leaves some microseconds from the copy of a frame to the
 * object's end, and a dozen calls take longer; or as the object's own thread met it (code.h). What is
 * read through it comes from there where it is, and out of the memory behind it where it is not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/layout/offsets.h"

/* So much of each is read: that of nearly all functions. Longer ones take more calls. */
enum {
	AHEAD_NAME_BYTES = 192,
	AHEAD_PATH_BYTES = 320,
	AHEAD_LINETABLE_BYTES = 512,
	NR_AHEAD_RANGES = 5,
};

struct code_ahead {
	struct remote_memory memory; /* what is handed on */
	struct remote_memory *inner; /* borrowed as long as this is read */
	bool is_told;	  /* the ranges are of an earlier moment, of an object that may be gone */
	size_t nr_ranges; /* of those; unless is_told 0 once something was read behind them */
	struct remote_range ranges[NR_AHEAD_RANGES]; /* the rest of one is not there */
	uint8_t name[AHEAD_NAME_BYTES];
	uint8_t path[AHEAD_PATH_BYTES];
	uint8_t linetable[AHEAD_LINETABLE_BYTES];
	uint64_t bytecode_length;
	uint8_t object[CODE_MAX_BYTES];
};

/*
 * Read what the object at object_addr names by its fingerprint, and the head of the object itself
 * last: that it is unchanged proves the rest. From the first read on that has to go to inner everything
 * goes there, so that what is read later is never older. Nothing is owned. 0; -ESRCH, -EPERM.
 */
int code_ahead_init(struct code_ahead *ahead, struct remote_memory *inner,
		    const struct py_offsets *offsets, remote_addr object_addr,
		    const struct code_fingerprint *fingerprint);

/*
 * The same of an object as it was told. What goes on behind what was told is read from inner, and is
 * not there (-EFAULT) unless it begins as that does. told is borrowed as long as ahead is used.
 */
void code_ahead_take(struct code_ahead *ahead, struct remote_memory *inner,
		     const struct py_offsets *offsets, const struct code_fingerprint *fingerprint,
		     const struct told_code *told);
