/* SPDX-License-Identifier: MIT */
#include "sampler/executor.h"

#include <stddef.h>
#include <string.h>

/* The first is on the list for debuggers, the others in jitdumps. */
static const char *const names[] = {
	"py::jit:executor",
	"py::jit_executor:<jit>",
	"py::jit_shim:<jit>",
};

bool executor_is_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

bool executor_runs(const struct merged_frame *merged, uint32_t nr_merged,
		   const struct native_frame *natives)
{
	for (uint32_t i = nr_merged; i-- > 0 && merged[i].kind != MERGED_PYTHON;)
		if (merged[i].kind == MERGED_NATIVE && natives[merged[i].index].is_executor)
			return true;
	return false;
}
