/* SPDX-License-Identifier: MIT */
#include "sampler/executor.h"

#include <stddef.h>
#include <string.h>

#include "sampler/native_stacks.h"

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

static bool is_executor(const struct function *function)
{
	return function->kind == FUNCTION_JIT && executor_is_name(function->qualname);
}

bool executor_runs(const struct frame *frames, uint32_t nr_frames, const char *unnamed_name)
{
	const struct function *called = NULL; /* by the loop, in the end */

	for (uint32_t i = nr_frames; i-- > 0 && frames[i].function->kind != FUNCTION_PYTHON;) {
		if (is_executor(frames[i].function))
			return true;
		if (!native_stacks_is_hole(frames[i].function))
			called = frames[i].function;
	}
	return called && unnamed_name && called->kind == FUNCTION_JIT &&
	       strcmp(called->qualname, unnamed_name) == 0;
}
