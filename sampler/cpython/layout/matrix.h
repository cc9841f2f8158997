/* SPDX-License-Identifier: MIT */
/*
 * The tables of numbers (offsets.def, debug_offsets.def, traits.def): a row a field, a column a
 * version. Whoever includes one has defined a macro for its rows, which the table undefines again.
 */
#pragma once

/* The numbers of a row without their parentheses: {CELLS cells} initializes an array. */
#define CELLS(...) __VA_ARGS__

/* How many there are. A row with one too few for its table must not compile. */
#define NR_CELLS(cells) (sizeof((long long[]){CELLS cells}) / sizeof(long long))
