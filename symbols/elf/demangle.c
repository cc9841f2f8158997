/* SPDX-License-Identifier: MIT */
#include "symbols/elf/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* The name written so far. */
struct output {
	char *name;
	size_t nr_bytes;
	size_t max_bytes;
	jmp_buf overflow;
};

/*
 * A symbol can double its name with each letter, so that printing it all would take forever; the
 * first piece that does not fit aborts. Jumping out of the callback is safe: its caller owns
 * nothing but its stack (demangle.h of libiberty).
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
	/* Rust first: its older symbols are valid C++ ones as well. */
	if (!rust_demangle_callback(symbol, options, append, &output)) {
		output.nr_bytes = 0;
		if (!cplus_demangle_v3_callback(symbol, options, append, &output))
			return false;
	}
	ret_name[output.nr_bytes] = '\0';
	return true;
}
