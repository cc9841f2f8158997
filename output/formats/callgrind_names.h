/* SPDX-License-Identifier: MIT */
/*
 * The names in a file of callgrind's format. Objects, files and functions are numbered each
 * for themselves; a name stands behind its number where that comes first: "fn=(3) main", and
 * "fn=(3)" from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/call_graph.h"
#include "output/text/text.h"

/* What one party is called by. */
struct callgrind_name {
	uint32_t object, file; /* their numbers */
	bool is_ambiguous;     /* another function of the file has that name */
	bool is_told;
};

/* Two more than the graph has parties: what calls the outermost, and what runs no Python. */
struct callgrind_names {
	const struct call_graph *graph;	 /* borrowed */
	uint32_t root, idle;		 /* the two */
	bool has_objects;		 /* there are functions that are not Python's */
	struct callgrind_name *names;	 /* owned; by party */
	bool *objects_told, *files_told; /* owned; by number */
};

/* Number the names. 0 or -ENOMEM. */
int callgrind_names_init(struct callgrind_names *names, const struct call_graph *graph);

/* Free what it holds, whether callgrind_names_init() succeeded or not. */
void callgrind_names_done(struct callgrind_names *names);

/* Append the lines that begin the costs of a party, or that say that it is called. */
void callgrind_names_begin(struct callgrind_names *names, struct text *text, uint32_t party);
void callgrind_names_call(struct callgrind_names *names, struct text *text, uint32_t party);

/* The first line of a party; 0 if it is not known. */
int32_t callgrind_names_line(const struct callgrind_names *names, uint32_t party);
