/* SPDX-License-Identifier: MIT */
/*
 * What a code object that is new names, read in one call: a program that makes and drops
 * functions all the time leaves some microseconds from the copy of a frame to the object's
 * end, and a dozen calls take longer. What is read through this memory comes out of that
 * call where it holds it, and out of the memory behind it where it does not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

/* The addresses that an object was read to have. */
struct code_named {
	remote_addr object_addr;
	remote_addr qualname, filename, linetable;
};

/* So much of each is read: that of nearly all functions. Longer ones take more calls. */
enum {
	AHEAD_NAME_BYTES = 192,
	AHEAD_PATH_BYTES = 320,
	AHEAD_LINETABLE_BYTES = 512,
	NR_AHEAD_RANGES = 4,
};

struct code_ahead {
	struct remote_memory memory;		     /* what is handed on */
	struct remote_memory *inner;		     /* borrowed as long as this is read */
	size_t nr_ranges;			     /* 0 once something was read behind it */
	struct remote_range ranges[NR_AHEAD_RANGES]; /* in the order in which they were read */
	uint8_t name[AHEAD_NAME_BYTES];
	uint8_t path[AHEAD_PATH_BYTES];
	uint8_t linetable[AHEAD_LINETABLE_BYTES];
	uint8_t object[CODE_MAX_BYTES];
};

/*
 * Read what an object names, and the head of the object itself last: that it is unchanged
 * proves the rest. From the first read on that has to go to inner everything goes there,
 * so that what is read later is never older. Nothing is owned. 0; -ESRCH, -EPERM.
 */
int code_ahead_init(struct code_ahead *ahead, struct remote_memory *inner,
		    const struct py_offsets *offsets, const struct code_named *named);
