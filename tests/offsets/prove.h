/* SPDX-License-Identifier: MIT */
/*
 * Proof, when it is compiled, that the numbers of sampler/python/offsets_tables.h
 * are CPython's own. The tables are constant structs, which no static assertion
 * can look into; so each is compared with one made of offsetof and sizeof, the
 * optimiser decides every comparison, and a call of wrong_number() that it could
 * not remove is a compile error that names the struct (as the kernel's
 * BUILD_BUG_ON works). It needs -O2. A number that the truth leaves out is 0
 * there, so nothing in a table can stay unproved.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sampler/python/debug_offsets_tables.h"
#include "sampler/python/offsets_tables.h"

void wrong_number(void) __attribute__((error("this table differs from CPython's headers")));

static inline __attribute__((always_inline)) void prove(uint64_t number, uint64_t truth)
{
	if (number != truth)
		wrong_number();
}

/* Prove a struct whose members are all uint32_t. */
static inline __attribute__((always_inline)) void prove_struct(const void *table, const void *truth,
							       size_t size_bytes)
{
	const uint32_t *numbers = table;
	const uint32_t *truths = truth;

#pragma GCC unroll 32
	for (size_t i = 0; i < size_bytes / sizeof(uint32_t); i++)
		prove(numbers[i], truths[i]);
}

/* Prove one table, struct by struct: the error tells the line here. */
static inline __attribute__((always_inline)) void prove_offsets(const struct py_offsets *table,
								const struct py_offsets *truth)
{
	prove_struct(&table->runtime, &truth->runtime, sizeof(truth->runtime));
	prove_struct(&table->interpreter, &truth->interpreter, sizeof(truth->interpreter));
	prove_struct(&table->gc, &truth->gc, sizeof(truth->gc));
	prove_struct(&table->thread, &truth->thread, sizeof(truth->thread));
	prove_struct(&table->exc_item, &truth->exc_item, sizeof(truth->exc_item));
	prove_struct(&table->cframe, &truth->cframe, sizeof(truth->cframe));
	prove_struct(&table->frame, &truth->frame, sizeof(truth->frame));
	prove_struct(&table->generator, &truth->generator, sizeof(truth->generator));
	prove_struct(&table->chunk, &truth->chunk, sizeof(truth->chunk));
	prove_struct(&table->code, &truth->code, sizeof(truth->code));
	prove_struct(&table->object, &truth->object, sizeof(truth->object));
	prove_struct(&table->type, &truth->type, sizeof(truth->type));
	prove_struct(&table->instance, &truth->instance, sizeof(truth->instance));
	prove_struct(&table->dict, &truth->dict, sizeof(truth->dict));
	prove_struct(&table->dict_keys, &truth->dict_keys, sizeof(truth->dict_keys));
	prove_struct(&table->dict_values, &truth->dict_values, sizeof(truth->dict_values));
	prove_struct(&table->integer, &truth->integer, sizeof(truth->integer));
	prove_struct(&table->unicode, &truth->unicode, sizeof(truth->unicode));
	prove_struct(&table->bytes, &truth->bytes, sizeof(truth->bytes));
}

/* What a table must prove; each prove_3_N.c has one, never called. */
void prove_tables(void);
