/* SPDX-License-Identifier: MIT */
/*
 * From where in C the interpreter's loop is called to run a generator (gen_send_ex2() of
 * Objects/genobject.c), by return addresses: learnt, as symbols may be stripped. Frames of
 * generators are not on the data stack, so nothing there tells whether one has called the frame
 * that a loop runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/* A compiler may put the function into those that call it: 3.11 has five. */
#define GENERATOR_CALLS_MAX 16

/* All zero nothing is known. */
struct generator_calls {
	struct {
		remote_addr return_addr; /* 0: none */
		uint32_t votes;
	} calls[GENERATOR_CALLS_MAX];
};

/* Vote for a call: a generator's frame was run. Where there is no more room it is passed over. */
void generator_calls_vote(struct generator_calls *calls, remote_addr return_addr);

/* Whether that was seen often enough. */
bool generator_calls_has(const struct generator_calls *calls, remote_addr return_addr);
