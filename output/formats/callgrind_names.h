/* SPDX-License-Identifier: MIT */
/*
 * The names in a callgrind file. Objects, files and functions are numbered separately. A name
 * follows its number at its first occurrence only: "fn=(3) main", then "fn=(3)".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/call_graph.h"
#include "output/text/text.h"

/* The name of one party. */
struct callgrind_name {
	uint32_t object, file; /* their numbers */
	bool is_ambiguous;     /* another function of the file has the same name */
	bool is_told;
};

/*
 * All names: those of the graph's parties, the caller of the outermost, and samples without
 * frames.
 */
struct callgrind_names {
	const struct call_graph *graph;	 /* borrowed */
	uint32_t root, idle;		 /* the party numbers of the last two */
	bool has_objects;		 /* some functions are not Python's */
	struct callgrind_name *names;	 /* owned; by party */
	bool *objects_told, *files_told; /* owned; by number; already written */
};

/* Assign the numbers. Returns 0 or -ENOMEM; call callgrind_names_done() either way. */
int callgrind_names_init(struct callgrind_names *names, const struct call_graph *graph);

/* Free the tables, whether callgrind_names_init() succeeded or not. */
void callgrind_names_done(struct callgrind_names *names);

/* Append the lines that begin the costs of a party, or that name it as a callee. */
void callgrind_names_begin(struct callgrind_names *names, struct text *text, uint32_t party);
void callgrind_names_call(struct callgrind_names *names, struct text *text, uint32_t party);

/* Return the first line of a party; 0 if unknown. */
int32_t callgrind_names_line(const struct callgrind_names *names, uint32_t party);
