/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/layout/offsets.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

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
	message_set(reterr,
		    version_hex ? "the target runs CPython %s; this pysample "
				  "supports " SUPPORTED_VERSIONS
				: "the version of the target's CPython could not be "
				  "determined%.0s; this pysample supports " SUPPORTED_VERSIONS,
		    version);
	return -ENOTSUP;
}

/* asyncio. */

/* Modules are searched in pieces of this size. */
#define PIECE_BYTES (1u << 20)

/* The variable has this alignment. */
enum { ALIGN_BYTES = 8 };

/* The width of each field in bytes; 0 for the size of the struct whose fields follow. */
static const uint8_t widths[NR_ASYNCIO_WORDS] = {
	0, 8,  8, 1,  1, 8, 16, /* task; the last is a node */
	0, 16,			/* interpreter state */
	0, 8,  8, 16,		/* thread state */
};

/* Whether a field of that many bytes is naturally aligned and inside [start, size). */
static bool fits(uint32_t offset, uint32_t bytes, uint32_t start, uint32_t size)
{
	const uint32_t align = bytes > ALIGN_BYTES ? ALIGN_BYTES : bytes;

	return offset >= start && offset % align == 0 && offset <= size && size - offset >= bytes;
}

bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio)
{
	/* After an object's type; anywhere; after the public part of a thread state. */
	const uint32_t starts[] = {offsets->object.ob_type + (uint32_t)sizeof(remote_addr), 0,
				   offsets->thread.datastack_chunk};
	struct asyncio_offsets asyncio;
	uint32_t *numbers = (uint32_t *)&asyncio;
	size_t nr_structs = 0;
	uint32_t size = 0;

	for (size_t i = 0; i < NR_ASYNCIO_WORDS; i++) {
		const uint64_t word = field_u64(bytes, i * sizeof(word));

		if (word > STRUCT_MAX_BYTES)
			return false;
		numbers[i] = (uint32_t)word;
		if (!widths[i]) {
			size = numbers[i];
			nr_structs++;
		} else if (!fits(numbers[i], widths[i], starts[nr_structs - 1], size)) {
			return false;
		}
	}
	if (asyncio.task.size > TASK_MAX_BYTES ||
	    asyncio.interpreter.size != offsets->interpreter.size)
		return false;
	*ret_asyncio = asyncio;
	return true;
}

/*
 * Search one mapping. Returns 0, -ENOENT, -ESRCH or -EPERM. Clears *is_whole if a part cannot be
 * read.
 */
static int find_in_mapping(struct remote_memory *memory, const struct mapping *mapping,
			   const struct py_offsets *offsets, uint8_t *buffer,
			   struct asyncio_offsets *ret_asyncio, bool *is_whole)
{
	/* Pieces overlap: the variable may begin in one and end in the next. */
	for (remote_addr addr = mapping->start; addr < mapping->end;
	     addr += PIECE_BYTES - ASYNCIO_DEBUG_BYTES) {
		const uint64_t left_bytes = mapping->end - addr;
		struct remote_range range = {
			.addr = addr,
			.buffer = buffer,
			.size = left_bytes < PIECE_BYTES ? left_bytes : PIECE_BYTES,
		};
		int err = remote_memory_read_ranges(memory, &range, 1);

		if (err)
			return err;
		for (size_t at = 0; at + ASYNCIO_DEBUG_BYTES <= range.done_bytes; at += ALIGN_BYTES)
			if (asyncio_offsets_parse(buffer + at, offsets, ret_asyncio))
				return 0;
		if (range.done_bytes < range.size)
			*is_whole = false;
	}
	return -ENOENT;
}

int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole)
{
	cleanup_free uint8_t *buffer = NULL;
	uint64_t left_bytes = ASYNCIO_SEARCH_MAX_BYTES;
	bool is_whole = true;
	int err = -ENOENT;

	if (!build->traits.generator_states.awaited_words)
		return -ENOTSUP;
	buffer = malloc(PIECE_BYTES);
	if (!buffer)
		return -ENOMEM;
	for (size_t i = 0; err == -ENOENT && i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		const uint64_t bytes = mapping->end - mapping->start;

		/* Only such mappings hold initialised variables of a module. */
		if (!mapping->readable || !mapping->writable || !mapping->inode)
			continue;
		if (bytes > ASYNCIO_MAPPING_MAX_BYTES || bytes > left_bytes) {
			is_whole = false;
			continue;
		}
		left_bytes -= bytes;
		err = find_in_mapping(memory, mapping, &build->offsets, buffer, ret_asyncio,
				      &is_whole);
	}
	*ret_whole = is_whole;
	return err;
}
