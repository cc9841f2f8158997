/* SPDX-License-Identifier: MIT */
#include "symbols/elf/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* The name so far. */
struct output {
	char *name;
	size_t nr_bytes;
	size_t max_bytes;
	jmp_buf overflow;
};

/*
 * What a name stands for may double with each letter, so that printing all of it would take
 * for ever: what does not fit ends it. The callbacks' caller has nothing but its own stack
 * (demangle.h of libiberty), which makes it safe to leave it so.
 */
static void append(const char *piece, size_t nr_bytes, void *opaque)
{
	struct output *output = opaque;

	if (nr_bytes >= output->max_bytes - output->nr_bytes)
		longjmp(output->overflow, 1);
	memcpy(output->name + output->nr_bytes, piece, nr_bytes);
	output->nr_bytes += nr_bytes;
}

bool demangle(const char *symbol, char *ret_name, size_t max_bytes)
{
	struct output output = {.name = ret_name, .max_bytes = max_bytes};
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (!max_bytes || symbol[0] != '_' ||
	    strnlen(symbol, DEMANGLE_MAX_BYTES) == DEMANGLE_MAX_BYTES)
		return false;
	if (setjmp(output.overflow))
		return false;
	/* Those of Rust first: its older ones are names of C++ as well. */
	if (!rust_demangle_callback(symbol, options, append, &output)) {
		output.nr_bytes = 0;
		if (!cplus_demangle_v3_callback(symbol, options, append, &output))
			return false;
	}
	ret_name[output.nr_bytes] = '\0';
	return true;
}
