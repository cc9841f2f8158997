/* SPDX-License-Identifier: MIT */
/*
 * Debug information of one function: which lines its instructions are of. DWARF 4, in as few
 * entries as debuggers ask for: a unit, the function, its line table.
 *
 * Source: DWARF 4 §2.17 (ranges), §3.1 (units), §6.1.2 (.debug_aranges), §6.2 (line tables), §7
 * (encodings).
 */
#pragma once

#include "output/dump/code_object.h"
#include "output/text/byte_buffer.h"

/* The sections. */
struct code_debug_info {
	struct byte_buffer abbrev;
	struct byte_buffer info;
	struct byte_buffer aranges;
	struct byte_buffer line;
};

/* Fill the sections, which are empty, for an object that has lines. Memory may run out. */
void code_debug_info_make(const struct code_object *object, struct code_debug_info *sections);
bool code_debug_info_failed(const struct code_debug_info *sections);
void code_debug_info_done(struct code_debug_info *sections);
