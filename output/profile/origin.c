/* SPDX-License-Identifier: MIT */
#include "output/profile/origin.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* A path component. */
struct part {
	const char *start;
	size_t length;
};

/* Read the component at *path and advance; false at the end. */
static bool part_next(const char **path, struct part *part)
{
	const char *start = *path + strspn(*path, "/");

	*part = (struct part){start, strcspn(start, "/")};
	*path = start + part->length;
	return part->length > 0;
}

static bool part_is(const struct part *part, const char *name)
{
	return part->length == strlen(name) && memcmp(part->start, name, part->length) == 0;
}

/* "python3.12", "python3.13t", "python3", "pypy3.10", "python312.zip". */
static bool part_is_versioned_python(const struct part *part)
{
	static const char *const names[] = {"python", "pypy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t length = strlen(names[i]);

		if (part->length > length && memcmp(part->start, names[i], length) == 0 &&
		    isdigit((unsigned char)part->start[length]))
			return true;
	}
	return false;
}

static enum origin origin_of_path(const char *path)
{
	struct part previous = {"", 0};
	struct part part;
	bool in_library = false;

	for (const char *rest = path; part_next(&rest, &part); previous = part) {
		if (part_is(&part, "site-packages") || part_is(&part, "dist-packages"))
			return ORIGIN_SITE_PACKAGES;
		if (part_is_versioned_python(&part) &&
		    (part_is(&previous, "lib") || part_is(&previous, "lib64")))
			in_library = true;
	}
	return in_library ? ORIGIN_STANDARD_LIBRARY : ORIGIN_APPLICATION;
}

enum origin origin_of(const struct profile_function *function)
{
	static const char frozen[] = "<frozen ";

	switch (function->kind) {
	case FUNCTION_COLLECTOR:
		return ORIGIN_COLLECTOR;
	case FUNCTION_NATIVE:
		return ORIGIN_NATIVE;
	case FUNCTION_JIT:
		return ORIGIN_JIT;
	case FUNCTION_KERNEL:
		return ORIGIN_KERNEL;
	case FUNCTION_TASK:
		return ORIGIN_TASK;
	case FUNCTION_PYTHON:
	case NR_FUNCTION_KINDS:
		break;
	}
	if (!function->path[0])
		return ORIGIN_OTHER;
	if (strncmp(function->path, frozen, sizeof(frozen) - 1) == 0)
		return ORIGIN_STANDARD_LIBRARY;
	return origin_of_path(function->path);
}

const char *origin_name(enum origin origin)
{
	static const char *const names[] = {
		[ORIGIN_APPLICATION] = "application",
		[ORIGIN_SITE_PACKAGES] = "site-packages",
		[ORIGIN_STANDARD_LIBRARY] = "standard library",
		[ORIGIN_NATIVE] = "native",
		[ORIGIN_JIT] = "jit",
		[ORIGIN_COLLECTOR] = "gc",
		[ORIGIN_KERNEL] = "kernel",
		[ORIGIN_TASK] = "task",
		[ORIGIN_OTHER] = "other",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == NR_ORIGINS, "a name each");
	assert(origin < NR_ORIGINS);
	return names[origin];
}
