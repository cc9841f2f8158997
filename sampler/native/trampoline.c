/* SPDX-License-Identifier: MIT */
#include "sampler/native/trampoline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Before the name of the function; behind it a colon and the file's. */
static const char prefix[] = "py::";

/*
 * They begin at multiples of it: Py_TRAMPOLINE_CODE_ALIGNMENT of the architectures that have one.
 */
enum { ALIGNMENT_BYTES = 16 };

/* Where text goes on behind start; NULL: it does not begin so, or is NULL. */
static const char *skip(const char *text, const char *start)
{
	const size_t length = strlen(start);

	return text && strncmp(text, start, length) == 0 ? text + length : NULL;
}

bool trampoline_is_name(const char *name)
{
	return skip(name, prefix) != NULL;
}

bool trampoline_calls(const struct function *trampoline, const struct function *python)
{
	const char *rest = skip(trampoline->qualname, prefix);

	rest = skip(skip(rest, python->qualname), ":");
	return rest && python->kind == FUNCTION_PYTHON && strcmp(rest, python->path) == 0;
}

static size_t index_of(remote_addr addr)
{
	return addr / ALIGNMENT_BYTES % TRAMPOLINE_NAMES_MAX;
}

void trampoline_names_learn(struct trampoline_names *names, remote_addr addr,
			    const struct function *python)
{
	names->entries[index_of(addr)] = (struct trampoline_name){addr, python};
}

const struct function *trampoline_names_function(const struct trampoline_names *names,
						 remote_addr addr, struct sampler *sampler)
{
	const struct function *python = names->entries[index_of(addr)].python;
	cleanup_free char *name = NULL;

	if (!python || names->entries[index_of(addr)].addr != addr)
		return sampler_function(sampler, FUNCTION_JIT, TRAMPOLINE_UNNAMED, "");
	if (asprintf(&name, "%s%s:%s", prefix, python->qualname, python->path) < 0) {
		name = NULL; /* it may have any value now */
		return NULL;
	}
	return sampler_function(sampler, FUNCTION_JIT, name, "");
}
