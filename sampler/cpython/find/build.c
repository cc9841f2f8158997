/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/build.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/cpython/find/build_check.h"

/* Most that is read: 3.15's debug offsets have 888 bytes, and its runtime goes on for 280 kB. */
enum { DEBUG_OFFSETS_MAX_BYTES = 1536 };

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16, HEAD_BYTES = 24 };

/* A column for each minor version. */
enum { NR_COLUMNS = NEWEST_MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS + 1 };

/* The place of each number. */
static const struct {
	size_t index; /* in struct py_offsets as an array */
	uint32_t places[NR_COLUMNS];
} present[] = {
#define PRESENT(of, field, cells, truth) {OFFSET_INDEX(of, field), {CELLS cells}},
#include "sampler/cpython/layout/debug_offsets.def"
};

/* The layouts to which a MISSING row applies: any, the version's own, a release build's own. */
enum applies_to { ANY_LAYOUT, OWN_LAYOUT, RELEASE_LAYOUT };

/* The MISSING rows: distances, for each version in a build with the GIL and a free-threaded one. */
static const struct {
	size_t index, from; /* from: an index as well, or START */
	enum applies_to applies_to;
	int64_t numbers[2 * NR_COLUMNS];
} missing[] = {
#define START NR_OFFSETS
#define MISSING(of, field, from, applies_to, cells) \
	{OFFSET_INDEX(of, field), from, applies_to, {CELLS cells}},
#define FIELD OFFSET_INDEX
#include "sampler/cpython/layout/debug_offsets.def"
};

/* A missing number does not compile. */
#define EXPECT(cells, nr) _Static_assert(NR_CELLS(cells) == (nr), "one for each version")

#define TABLE_BYTES(cells, truth)		    EXPECT(cells, NR_COLUMNS);
#define TLBC(member, cells, truth)		    EXPECT(cells, NR_COLUMNS);
#define PRESENT(of, field, cells, truth)	    EXPECT(cells, NR_COLUMNS);
#define MISSING(of, field, from, applies_to, cells) EXPECT(cells, 2 * NR_COLUMNS);
#include "sampler/cpython/layout/debug_offsets.def"

static size_t column_of(uint32_t minor)
{
	assert(minor >= FIRST_MINOR_WITH_DEBUG_OFFSETS);
	return (minor < NEWEST_MINOR ? minor : NEWEST_MINOR) - FIRST_MINOR_WITH_DEBUG_OFFSETS;
}

/* A copy of the debug offsets. */
struct debug_offsets {
	uint32_t version_hex;
	bool free_threaded;
	size_t nr_bytes; /* that could be read */
	uint8_t bytes[DEBUG_OFFSETS_MAX_BYTES];
};

struct debug_offsets_layout debug_offsets_layout(uint32_t minor)
{
	const size_t column = column_of(minor);
	struct debug_offsets_layout layout = {
		.minor = FIRST_MINOR_WITH_DEBUG_OFFSETS + (uint32_t)column,
#define TABLE_BYTES(cells, truth)  .size = ((const uint32_t[]){CELLS cells})[column],
#define TLBC(member, cells, truth) .tlbc_at.member = ((const uint32_t[]){CELLS cells})[column],
#include "sampler/cpython/layout/debug_offsets.def"
	};
	uint32_t *places = (uint32_t *)&layout.at;

	memset(&layout.at, 0xff, sizeof(layout.at)); /* OFFSET_ABSENT */
	for (size_t i = 0; i < sizeof(present) / sizeof(*present); i++)
		places[present[i].index] = present[i].places[column];
	return layout;
}

/*
 * Read the debug offsets at runtime_addr. Returns 0; -ENOENT (no cookie: an older version, or no
 * runtime); -EBADMSG (the version or the free-threaded flag is out of range); -EFAULT, -ESRCH,
 * -EPERM.
 */
static int debug_offsets_read(struct remote_memory *memory, remote_addr runtime_addr,
			      struct debug_offsets *ret_table)
{
	struct debug_offsets table = {0};
	struct remote_range range = {
		.addr = runtime_addr,
		.buffer = table.bytes,
		.size = sizeof(table.bytes),
	};
	uint64_t version, free_threaded;
	int err = remote_memory_read_ranges(memory, &range, 1);

	if (err)
		return err;
	if (range.done_bytes < HEAD_BYTES)
		return -EFAULT;
	if (memcmp(table.bytes, DEBUG_OFFSETS_COOKIE, COOKIE_BYTES) != 0)
		return -ENOENT;
	version = field_u64(table.bytes, VERSION_OFFSET);
	free_threaded = field_u64(table.bytes, FREE_THREADED_OFFSET);
	if (version > UINT32_MAX || free_threaded > 1)
		return -EBADMSG;
	table.version_hex = (uint32_t)version;
	table.free_threaded = free_threaded != 0;
	table.nr_bytes = range.done_bytes;
	*ret_table = table;
	return 0;
}

/* Read the number at a place of the table, or absent. -EBADMSG: no offset; -EFAULT: not read. */
static int read_number(const struct debug_offsets *table, uint32_t at, uint32_t absent,
		       uint32_t *ret_value)
{
	uint64_t value;

	*ret_value = absent;
	if (at == OFFSET_ABSENT)
		return 0;
	if (at + sizeof(value) > table->nr_bytes)
		return -EFAULT;
	value = field_u64(table->bytes, at);
	if (value > STRUCT_MAX_BYTES)
		return -EBADMSG;
	*ret_value = (uint32_t)value;
	return 0;
}

/*
 * Add the numbers that debug offsets lack, from the MISSING rows for the build's version. is_own:
 * the table has its version's own layout; otherwise only rows that apply to any layout count. A
 * number relative to an absent field stays absent. Returns 0, or -EBADMSG (a number that cannot be
 * an offset).
 */
static int supplement(bool is_own, struct py_build *build)
{
	const size_t column = 2 * column_of(build->version_hex >> 16 & 0xff) + build->free_threaded;
	uint32_t *values = (uint32_t *)&build->offsets;

	for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
		const int64_t number = missing[i].numbers[column];
		const int64_t from = missing[i].from == START ? 0 : values[missing[i].from];

		if (values[missing[i].index] != OFFSET_ABSENT || number == OFFSET_ABSENT ||
		    from == OFFSET_ABSENT || (missing[i].applies_to != ANY_LAYOUT && !is_own))
			continue;
		if (from + number < 0 || from + number > STRUCT_MAX_BYTES)
			return -EBADMSG;
		values[missing[i].index] = (uint32_t)(from + number);
	}
	return 0;
}

/* Read the table as laid out by layout. Returns 0, -EBADMSG, or -EFAULT (a part was not read). */
static int convert(const struct debug_offsets *table, const struct debug_offsets_layout *layout,
		   struct py_build *ret_build)
{
	uint32_t minor = table->version_hex >> 16 & 0xff;
	struct py_build build = {
		.version_hex = table->version_hex,
		.free_threaded = table->free_threaded,
		.traits = traits_of_version(minor),
	};
	const uint32_t *places = (const uint32_t *)&layout->at;
	uint32_t *values = (uint32_t *)&build.offsets;
	int err = layout->size > table->nr_bytes ? -EFAULT : 0;

	for (size_t i = 0; !err && i < NR_OFFSETS; i++)
		err = read_number(table, places[i], OFFSET_ABSENT, &values[i]);
	/* Both are 0 in builds with the GIL. */
	if (!err)
		err = read_number(table, layout->tlbc_at.code_array, 0, &build.tlbc.code_array);
	if (!err)
		err = read_number(table, layout->tlbc_at.generation, 0, &build.tlbc.generation);
	if (!err)
		err = supplement(minor == layout->minor, &build);
	if (err)
		return err;
	*ret_build = build;
	return 0;
}

/* Matching a table to a layout. */

/*
 * The words of a group begin at most this far after those of the one before. In 3.15, 26 words are
 * between type objects and bytes, for other objects that are not used here.
 */
enum { MAX_WORDS_BETWEEN = 64 };

/*
 * A table whose search takes more steps, or more checks of the interpreter, is refused as one that
 * no layout fits. Plausible pre-releases take 7,200 steps and 13 checks.
 */
enum { MAX_STEPS = 40000, MAX_LOOKS = 64 };

/*
 * The numbers of a struct that are adjacent: members of struct py_offsets from first to last.
 * Arrays of NR_OFFSETS numbers are indexed like struct py_offsets.
 */
static const struct group {
	size_t first, last;
} groups[] = {
#define GROUP(of, from, to) {OFFSET_INDEX(of, from), OFFSET_INDEX(of, to)},
#include "sampler/cpython/layout/debug_offsets.def"
};
#define NR_GROUPS (sizeof(groups) / sizeof(*groups))

/* What is true in all layouts. */
static const struct relation {
	size_t of, from; /* from: an index as well, or START */
	uint32_t least, most;
} relations[] = {
#define MOST				       STRUCT_MAX_BYTES
#define RELATION(of, field, from, least, most) {OFFSET_INDEX(of, field), from, least, most},
#include "sampler/cpython/layout/debug_offsets.def"
};

/* Whether the relations hold between those numbers that are known. */
static bool relations_hold(const uint32_t *numbers)
{
	for (size_t i = 0; i < sizeof(relations) / sizeof(*relations); i++) {
		const struct relation *relation = &relations[i];
		const uint32_t number = numbers[relation->of];
		const uint32_t from = relation->from == START ? 0 : numbers[relation->from];

		if (number != OFFSET_ABSENT && from != OFFSET_ABSENT &&
		    (number < from || number - from < relation->least ||
		     number - from > relation->most))
			return false;
	}
	return true;
}

/* Whether the numbers satisfy all relations of 3.13 to 3.15. */
static bool numbers_plausible(const struct py_build *build)
{
	const struct py_offsets *o = &build->offsets;

	return relations_hold((const uint32_t *)o) &&
	       o->object.ob_type == (build->free_threaded ? 24 : 8) &&
	       (build->tlbc.code_array != 0) ==
		       (build->free_threaded && build->traits.leaf_rule == LEAF_BY_EXECUTABLE) &&
	       (!build->tlbc.code_array ||
		build->tlbc.code_array == o->code.code_adaptive - sizeof(uint64_t));
}

/* The range of places that a group covers; OFFSET_ABSENT and 0 if the whole group is absent. */
struct span {
	uint32_t start, end;
};

static struct span group_span(const struct group *group, const uint32_t *places)
{
	struct span span = {.start = OFFSET_ABSENT};

	for (size_t i = group->first; i <= group->last; i++) {
		if (places[i] == OFFSET_ABSENT)
			continue;
		if (places[i] < span.start)
			span.start = places[i];
		if (places[i] + 8 > span.end)
			span.end = places[i] + 8;
	}
	return span;
}

/* Whether a group has the same fields in the same order in both layouts. */
static bool same_shape(const struct group *group, const uint32_t *a, const uint32_t *b)
{
	const uint32_t shift = group_span(group, a).start - group_span(group, b).start;

	for (size_t i = group->first; i <= group->last; i++) {
		const bool is_present = a[i] != OFFSET_ABSENT;

		if (is_present != (b[i] != OFFSET_ABSENT) || (is_present && a[i] != b[i] + shift))
			return false;
	}
	return true;
}

/* A search and its results. */
struct search {
	struct remote_memory *memory;
	remote_addr runtime_addr;
	const struct debug_offsets *table;
	uint32_t known[NR_COLUMNS][NR_OFFSETS];
	uint32_t places[NR_OFFSETS]; /* of the groups placed so far */
	uint32_t values[NR_OFFSETS]; /* at those places; OFFSET_ABSENT for the other groups */
	uint32_t nr_steps, nr_looks;
	uint32_t nr_found;
	struct py_build found;
};

/* Whether a has every number that b has, with the same value. */
static bool has_all_of(const struct py_build *a, const struct py_build *b)
{
	const uint32_t *ours = (const uint32_t *)&a->offsets;
	const uint32_t *theirs = (const uint32_t *)&b->offsets;

	for (size_t i = 0; i < NR_OFFSETS; i++)
		if (ours[i] != theirs[i] && theirs[i] != OFFSET_ABSENT)
			return false;
	return true;
}

/* All groups have a place: keep the resulting build if the interpreter confirms it. */
static void search_check(struct search *search)
{
	struct debug_offsets_layout layout = {.tlbc_at = {OFFSET_ABSENT, OFFSET_ABSENT}};
	struct py_build build;

	memcpy(&layout.at, search->places, sizeof(layout.at));
	/* co_tlbc and tlbc_generation were added together with the fields that they follow. */
	if (search->table->free_threaded &&
	    layout.at.interpreter.code_object_generation != OFFSET_ABSENT) {
		layout.tlbc_at.generation = layout.at.interpreter.code_object_generation + 8;
		layout.tlbc_at.code_array = layout.at.code.code_adaptive + 8;
	}
	if (convert(search->table, &layout, &build) != 0 || !build_consistent(&build) ||
	    !numbers_plausible(&build) || (search->nr_found && has_all_of(&search->found, &build)))
		return;
	search->nr_looks++;
	if (build_check_live(search->memory, search->runtime_addr, &build) != BUILD_LIVE_PROVEN)
		return;
	if (!search->nr_found || !has_all_of(&build, &search->found))
		search->nr_found++;
	search->found = build;
}

/*
 * Whether the groups placed so far lead to live threads. If not, the other groups need not be
 * tried.
 */
static bool threads_are_live(struct search *search)
{
	struct py_build build = {
		.version_hex = search->table->version_hex,
		.free_threaded = search->table->free_threaded,
	};

	memcpy(&build.offsets, search->values, sizeof(build.offsets));
	if (supplement(false, &build) != 0)
		return false;
	search->nr_looks++;
	return build_check_threads(search->memory, search->runtime_addr, &build) ==
	       BUILD_LIVE_PROVEN;
}

static void search_group(struct search *search, const struct group *group, uint32_t from);

/* Try one place for a group, in the shape that it has in a known layout. */
static void search_place(struct search *search, const struct group *group, const uint32_t *known,
			 uint32_t start)
{
	const bool has_threads = group->last == OFFSET_INDEX(thread, datastack_chunk);
	const uint32_t known_start = group_span(group, known).start;
	uint32_t values[NR_OFFSETS];
	bool fits = true;

	search->nr_steps++;
	memcpy(values, search->values, sizeof(values));
	for (size_t i = group->first; fits && i <= group->last; i++) {
		search->places[i] =
			known[i] == OFFSET_ABSENT ? OFFSET_ABSENT : known[i] - known_start + start;
		fits = read_number(search->table, search->places[i], OFFSET_ABSENT,
				   &search->values[i]) == 0;
	}
	if (fits && relations_hold(search->values) && (!has_threads || threads_are_live(search))) {
		const uint32_t end = group_span(group, search->places).end;

		search_group(search, group + 1, end ? end : start);
	}
	memcpy(search->values, values, sizeof(values));
}

static bool search_over(const struct search *search)
{
	return search->nr_found > 1 || search->nr_steps >= MAX_STEPS ||
	       search->nr_looks >= MAX_LOOKS;
}

/* Try every place and shape for a group, beginning at from in the table. */
static void search_group(struct search *search, const struct group *group, uint32_t from)
{
	if (group == groups + NR_GROUPS) {
		search_check(search);
		return;
	}
	for (size_t i = NR_COLUMNS; i > 0; i--) {
		const uint32_t *known = search->known[i - 1];
		bool is_new = true;

		for (size_t k = NR_COLUMNS; is_new && k > i; k--)
			is_new = !same_shape(group, known, search->known[k - 1]);
		if (is_new && group_span(group, known).end == 0)
			search_place(search, group, known, from);
		else if (is_new)
			for (uint32_t n = 0; n <= MAX_WORDS_BETWEEN && !search_over(search); n++)
				search_place(search, group, known, from + 8 * n);
	}
}

/* Search the table for the one layout that fits. Returns 0 or -EBADMSG. */
static int search_layout(struct remote_memory *memory, remote_addr runtime_addr,
			 const struct debug_offsets *table, struct py_build *ret_build)
{
	struct search search = {.memory = memory, .runtime_addr = runtime_addr, .table = table};

	for (uint32_t i = 0; i < NR_COLUMNS; i++) {
		const struct debug_offsets_layout layout =
			debug_offsets_layout(FIRST_MINOR_WITH_DEBUG_OFFSETS + i);

		memcpy(search.known[i], &layout.at, sizeof(layout.at));
	}
	/* No group has a place yet: OFFSET_ABSENT everywhere. */
	memset(&search.places, 0xff, sizeof(search.places));
	memset(&search.values, 0xff, sizeof(search.values));
	/* The runtime's group follows the cookie, the version and the free-threaded flag. */
	search_group(&search, groups, 24);
	if (search_over(&search) || !search.nr_found)
		return -EBADMSG;
	*ret_build = search.found;
	return 0;
}

/*
 * Whether the interpreter is not as a build in its version's own layout says. In a newer version
 * what the table does not say may have changed as well: so if there are frames, one must be right.
 */
static bool is_refuted(struct remote_memory *memory, remote_addr runtime_addr,
		       const struct py_build *build)
{
	const enum build_live found = build_check_repeatedly(memory, runtime_addr, build);

	return found == BUILD_LIVE_CONTRADICTS ||
	       (build->newer_than_tested &&
		(found == BUILD_LIVE_NO_CODE || found == BUILD_LIVE_UNPROVEN));
}

/*
 * Fill ret_build from the debug offsets at runtime_addr; table is a copy of them.
 *
 * The layout of the table's minor version is tried first. If its numbers contradict each other or
 * the interpreter (a pre-release whose table had fewer fields, or a minor version newer than this
 * pysample), the table is searched. It is a sequence of groups, one per struct, in an order that
 * has never changed, and the numbers of each group have relations that always hold (a frame's
 * executable is its first word, native_thread_id follows thread_id, …). A group may be some words
 * before or after its place in a known layout. The result of a search must fit the live
 * interpreter, and be the only one that does.
 *
 * Returns 0; -EBADMSG (no layout fits, or several do); -EFAULT (a part that the version's layout
 * needs could not be read). build.newer_than_tested is set unless the version's own layout fits.
 */
static int match_layout(struct remote_memory *memory, remote_addr runtime_addr,
			const struct debug_offsets *table, struct py_build *ret_build)
{
	uint32_t minor = table->version_hex >> 16 & 0xff;
	const struct debug_offsets_layout layout = debug_offsets_layout(minor);
	struct py_build build;
	int err = convert(table, &layout, &build);

	if (!err)
		build.newer_than_tested = minor != layout.minor;
	if (!err && (!build_consistent(&build) || !numbers_plausible(&build) ||
		     is_refuted(memory, runtime_addr, &build)))
		err = -EBADMSG;
	if (err == -EBADMSG) {
		err = search_layout(memory, runtime_addr, table, &build);
		build.newer_than_tested = true;
	}
	if (err)
		return err;
	build_find_code_version(memory, runtime_addr, &build);
	*ret_build = build;
	return 0;
}

/* Fill ret_build from a runtime that carries offsets. Returns -ENOENT if it does not. */
static int load_debug_offsets(struct remote_memory *memory, remote_addr runtime_addr,
			      struct py_build *ret_build, struct message *reterr)
{
	struct debug_offsets table = {0};
	int err = debug_offsets_read(memory, runtime_addr, &table);
	char version[VERSION_MAX_BYTES];

	version_format(table.version_hex, version);
	if (!err && (table.version_hex >> 16 < 0x030d || table.version_hex >> 24 != 3)) {
		message_set(
			reterr,
			"the target runs CPython %s; this pysample supports " SUPPORTED_VERSIONS,
			version);
		return -ENOTSUP;
	}
	if (!err)
		err = match_layout(memory, runtime_addr, &table, ret_build);
	if (err == -EBADMSG && (table.version_hex >> 16 & 0xff) > NEWEST_MINOR) {
		err = -ENOTSUP;
		message_set(reterr,
			    "the target runs CPython %s, whose structs this pysample "
			    "does not understand; it supports " SUPPORTED_VERSIONS
			    ": use a newer pysample",
			    version);
	} else if (err == -EBADMSG) {
		message_set(reterr,
			    "the debug offsets of the target's CPython %s are inconsistent: "
			    "a pre-release, a patched build or damaged memory",
			    version);
	}
	return err;
}

int build_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
	       struct py_build *ret_build, struct message *reterr)
{
	char version[VERSION_MAX_BYTES];
	struct py_build build;
	enum build_live found;
	int err = load_debug_offsets(memory, runtime_addr, ret_build, reterr);

	if (err != -ENOENT)
		return err;
	err = offsets_of_version(version_hex, &build, reterr);
	if (err)
		return err;
	found = build_check_repeatedly(memory, runtime_addr, &build);
	if (found == BUILD_LIVE_CONTRADICTS || found == BUILD_LIVE_NO_CODE) {
		version_format(version_hex, version);
		message_set(
			reterr,
			"CPython %s in the target has an unusual struct layout (a debug or patched "
			"build): "
			"use a release build",
			version);
		return -ENOTSUP;
	}
	*ret_build = build;
	return 0;
}
