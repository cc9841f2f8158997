/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/layout/offsets.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* A column for each version that does not carry its own offsets. */
enum { NR_COLUMNS = FIRST_MINOR_WITH_DEBUG_OFFSETS - OLDEST_MINOR };

static const uint32_t matrix[NR_OFFSETS][NR_COLUMNS] = {
#define ROW(of, field, width, cells, truth) [OFFSET_INDEX(of, field)] = {CELLS cells},
#include "sampler/cpython/layout/offsets.def"
};

/* A missing or duplicate row does not compile; nor does a missing number. */
struct rows {
#define ROW(of, field, width, cells, truth) uint32_t of##_##field;
#include "sampler/cpython/layout/offsets.def"
};
_Static_assert(sizeof(struct rows) == sizeof(struct py_offsets), "a row for each member");

#define ROW(of, field, width, cells, truth) \
	_Static_assert(NR_CELLS(cells) == NR_COLUMNS, #of "." #field);
#include "sampler/cpython/layout/offsets.def"

struct trait_rows {
#define TRAIT(member, ...) __typeof__(((struct py_traits *)0)->member) member;
#define STATE(member, ...) __typeof__(((struct generator_states *)0)->member) member;
#include "sampler/cpython/layout/traits.def"
	char end;
};
_Static_assert(offsetof(struct trait_rows, end) == offsetof(struct py_traits, generator_states) +
							   sizeof(struct generator_states),
	       "a row for each trait");

#define TRAIT(member, cells, truth) \
	_Static_assert(NR_CELLS(cells) == NEWEST_MINOR - OLDEST_MINOR + 1, #member);
#define STATE TRAIT
#include "sampler/cpython/layout/traits.def"

/* The number for 3.minor, or for the newest version, in a row of traits. */
static int cell_of(uint32_t minor, const int cells[NEWEST_MINOR - OLDEST_MINOR + 1])
{
	assert(minor >= OLDEST_MINOR);
	return cells[(minor < NEWEST_MINOR ? minor : NEWEST_MINOR) - OLDEST_MINOR];
}

struct py_traits traits_of_version(uint32_t minor)
{
	struct py_traits traits = {
#define CELL(member, cells) \
	.member = (__typeof__(traits.member))cell_of(minor, (const int[]){CELLS cells})
#define TRAIT(member, cells, truth) CELL(member, cells),
#define STATE(member, cells, truth) CELL(generator_states.member, cells),
#include "sampler/cpython/layout/traits.def"
#undef CELL
	};

	if (minor > NEWEST_MINOR)
		traits.generator_states = (struct generator_states){0};
	return traits;
}

void version_format(uint32_t version_hex, char ret_text[VERSION_MAX_BYTES])
{
	static const char *const marks[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *mark = marks[version_hex >> 4 & 0xf];
	int used = snprintf(ret_text, VERSION_MAX_BYTES, "%u.%u", version_hex >> 24,
			    version_hex >> 16 & 0xff);

	if (version_hex & 0xffff)
		used += snprintf(ret_text + used, VERSION_MAX_BYTES - (size_t)used, ".%u",
				 version_hex >> 8 & 0xff);
	if (mark)
		(void)snprintf(ret_text + used, VERSION_MAX_BYTES - (size_t)used, "%s%u", mark,
			       version_hex & 0xf);
}

int offsets_of_version(uint32_t version_hex, struct py_build *ret_build, struct message *reterr)
{
	const uint32_t minor = version_hex >> 16 & 0xff;
	char version[VERSION_MAX_BYTES];

	if (version_hex >> 24 == 3 && minor >= OLDEST_MINOR &&
	    minor < FIRST_MINOR_WITH_DEBUG_OFFSETS) {
		struct py_build build = {
			.version_hex = version_hex,
			.traits = traits_of_version(minor),
		};

		for (size_t i = 0; i < NR_OFFSETS; i++)
			((uint32_t *)&build.offsets)[i] = matrix[i][minor - OLDEST_MINOR];
		*ret_build = build;
		return 0;
	}
	version_format(version_hex, version);
	if (version_hex)
		message_set(
			reterr,
			"the target runs CPython %s; this pysample supports " SUPPORTED_VERSIONS,
			version);
	else
		message_set(reterr, "the version of the target's CPython could not be determined; "
				    "this pysample supports " SUPPORTED_VERSIONS);
	return -ENOTSUP;
}
