/* SPDX-License-Identifier: MIT */
/*
 * What was found at single instructions of the interpreter's loop: where it keeps a thing just
 * there. Between two calls a compiler holds most of it in the same register all along, but
 * where it needs that register, or saves it around a call, it is elsewhere for some instructions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/*
 * Instructions that are known at a time, one for each value of a hash: a loop has some hundred
 * calls, and a few thousand instructions that programs are found in often.
 */
#define LOOP_SITES_MAX 4096

/* Places that are voted for at an instruction at a time. */
#define LOOP_SITE_PLACES 6

struct loop_site {
	remote_addr pc_addr; /* 0: none */
	uint32_t nr_seen;    /* times that anything was found there */
	struct {
		uint16_t place, votes;
	} places[LOOP_SITE_PLACES];
};

/* All zero nothing is known. */
struct loop_sites {
	struct loop_site sites[LOOP_SITES_MAX];
};

/*
 * Something was found at pc_addr, in nr_places places: 1 or more. One that holds its place in
 * the table by fewer findings makes room at last.
 */
void loop_sites_vote(struct loop_sites *sites, remote_addr pc_addr, const uint16_t *places,
		     uint32_t nr_places);

enum loop_site_trust {
	LOOP_SITE_UNKNOWN,
	LOOP_SITE_LIKELY, /* to be taken where much else speaks for that place, too */
	LOOP_SITE_SURE,	  /* no other place is worth a look there */
};

/* The place where it was found mostly at that instruction, and how far to trust it. */
enum loop_site_trust loop_sites_find(const struct loop_sites *sites, remote_addr pc_addr,
				     uint32_t *ret_place);
