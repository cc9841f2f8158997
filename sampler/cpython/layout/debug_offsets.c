/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/layout/debug_offsets.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/cpython/layout/build_check.h"

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16, HEAD_BYTES = 24 };

/* A column for each minor version. */
enum { NR_COLUMNS = NEWEST_MINOR - FIRST_MINOR_THAT_TELLS + 1 };

/* Where a number stands. */
static const struct {
	size_t index; /* in struct py_offsets, as an array */
	uint32_t places[NR_COLUMNS];
} told[] = {
#define TOLD(of, field, cells, truth) {OFFSET_INDEX(of, field), {CELLS cells}},
#include "sampler/cpython/layout/debug_offsets.def"
};

/* For which layouts what is lacked holds: any, the version's own, a release build's own. */
enum holds { ALWAYS, OWN, RELEASE };

/* What is lacked: how far from what; for each version a build with the GIL, a free-threaded one. */
static const struct {
	size_t index, from; /* from: START, or such an index */
	enum holds holds;
	int64_t numbers[2 * NR_COLUMNS];
} lacked[] = {
#define START				      NR_OFFSETS
#define LACKED(of, field, from, holds, cells) {OFFSET_INDEX(of, field), from, holds, {CELLS cells}},
#define FIELD				      OFFSET_INDEX
#include "sampler/cpython/layout/debug_offsets.def"
};

/* A number left out does not compile. */
#define EXPECT(cells, nr)		      _Static_assert(NR_CELLS(cells) == (nr), "one for each version")
#define TABLE_BYTES(cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define TLBC(member, cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define TOLD(of, field, cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define LACKED(of, field, from, holds, cells) EXPECT(cells, 2 * NR_COLUMNS);
#include "sampler/cpython/layout/debug_offsets.def"

static size_t column_of(uint32_t minor)
{
	assert(minor >= FIRST_MINOR_THAT_TELLS);
	return (minor < NEWEST_MINOR ? minor : NEWEST_MINOR) - FIRST_MINOR_THAT_TELLS;
}

struct debug_offsets_layout debug_offsets_layout(uint32_t minor)
{
	const size_t column = column_of(minor);
	uint32_t places[NR_OFFSETS];
	struct debug_offsets_layout layout = {
		.minor = FIRST_MINOR_THAT_TELLS + (uint32_t)column,
#define TABLE_BYTES(cells, truth)  .size = ((const uint32_t[]){CELLS cells})[column],
#define TLBC(member, cells, truth) .tlbc_at.member = ((const uint32_t[]){CELLS cells})[column],
#include "sampler/cpython/layout/debug_offsets.def"
	};

	memset(places, 0xff, sizeof(places)); /* OFFSET_ABSENT */
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
		places[told[i].index] = told[i].places[column];
	memcpy(&layout.at, places, sizeof(places));
	return layout;
}

int debug_offsets_read(struct remote_memory *memory, remote_addr runtime_addr,
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

/* The number at a place of the table, if there is one. -EBADMSG: no offset; -EFAULT: not read. */
static int take_number(const struct debug_offsets *table, uint32_t at, uint32_t absent,
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

static int take_offsets(const struct debug_offsets *table, const struct py_offsets *at,
			struct py_offsets *ret_offsets)
{
	uint32_t places[NR_OFFSETS];
	uint32_t values[NR_OFFSETS] = {0};
	int err = 0;

	memcpy(places, at, sizeof(places));
	for (size_t i = 0; !err && i < NR_OFFSETS; i++)
		err = take_number(table, places[i], OFFSET_ABSENT, &values[i]);
	memcpy(ret_offsets, values, sizeof(values));
	return err;
}

/*
 * Add what the debug offsets of a build's version lack and is known: is_own, if it is its version's own
 * layout, else of any that it may have. What counts from a field that is absent stays so. 0; -EBADMSG
 * (a number that no offset can be).
 */
static int supplement(bool is_own, struct py_build *build)
{
	const size_t column = 2 * column_of(build->version_hex >> 16 & 0xff) + build->free_threaded;
	uint32_t values[NR_OFFSETS];

	memcpy(values, &build->offsets, sizeof(values));
	for (size_t i = 0; i < sizeof(lacked) / sizeof(*lacked); i++) {
		const int64_t number = lacked[i].numbers[column];
		const int64_t from = lacked[i].from == START ? 0 : values[lacked[i].from];

		if (values[lacked[i].index] != OFFSET_ABSENT || number == OFFSET_ABSENT ||
		    from == OFFSET_ABSENT || (lacked[i].holds != ALWAYS && !is_own))
			continue;
		if (from + number < 0 || from + number > STRUCT_MAX_BYTES)
			return -EBADMSG;
		values[lacked[i].index] = (uint32_t)(from + number);
	}
	memcpy(&build->offsets, values, sizeof(values));
	return 0;
}

/* What a table says if it is laid out like that. 0; -EBADMSG, -EFAULT (it is not all there). */
static int convert(const struct debug_offsets *table, const struct debug_offsets_layout *layout,
		   struct py_build *ret_build)
{
	uint32_t minor = table->version_hex >> 16 & 0xff;
	struct py_build build = {
		.version_hex = table->version_hex,
		.free_threaded = table->free_threaded,
		.traits = traits_of_version(minor),
	};
	int err;

	if (layout->size > table->nr_bytes)
		return -EFAULT;
	err = take_offsets(table, &layout->at, &build.offsets);
	/* Builds with the GIL tell 0 for both. */
	if (!err)
		err = take_number(table, layout->tlbc_at.code_array, 0, &build.tlbc.code_array);
	if (!err)
		err = take_number(table, layout->tlbc_at.generation, 0, &build.tlbc.generation);
	if (!err)
		err = supplement(minor == layout->minor, &build);
	if (err)
		return err;
	*ret_build = build;
	return 0;
}

/* Which layout a table has. */

/*
 * The words of a group begin at most so far behind those of the one before: 26 words lie
 * between type objects and bytes in 3.15, other objects' that are not used.
 */
enum { MAX_WORDS_BETWEEN = 64 };

/*
 * A table that takes more steps or looks at the interpreter to search is refused as one
 * that no layout fits. What a pre-release may have been takes 7,200 steps and 13 looks.
 */
enum { MAX_STEPS = 40000, MAX_LOOKS = 64 };

/* The numbers of a struct that stand together: members of py_offsets from first to last. */
static const struct group {
	size_t first, last;
} groups[] = {
#define GROUP(of, from, to) {OFFSET_INDEX(of, from), OFFSET_INDEX(of, to)},
#include "sampler/cpython/layout/debug_offsets.def"
};

/* What always holds. */
static const struct relation {
	size_t of, from; /* from: START, or such an index */
	uint32_t least, most;
} relations[] = {
#define MOST				       STRUCT_MAX_BYTES
#define RELATION(of, field, from, least, most) {OFFSET_INDEX(of, field), from, least, most},
#include "sampler/cpython/layout/debug_offsets.def"
};

/* Whether the relations between those numbers that are known hold. */
static bool relations_hold(const struct py_offsets *offsets)
{
	uint32_t numbers[NR_OFFSETS + 1] = {[START] = 0};

	memcpy(numbers, offsets, sizeof(*offsets));
	for (size_t i = 0; i < sizeof(relations) / sizeof(*relations); i++) {
		const uint32_t number = numbers[relations[i].of];
		const uint32_t from = numbers[relations[i].from];

		if (number != OFFSET_ABSENT && from != OFFSET_ABSENT &&
		    (number < from || number - from < relations[i].least ||
		     number - from > relations[i].most))
			return false;
	}
	return true;
}

#define NR_GROUPS (sizeof(groups) / sizeof(*groups))

/* Whether the relations between the numbers hold that hold in 3.13 to 3.15. */
static bool numbers_plausible(const struct py_build *build)
{
	const struct py_offsets *o = &build->offsets;

	return relations_hold(o) && o->object.ob_type == (build->free_threaded ? 24 : 8) &&
	       (build->tlbc.code_array != 0) ==
		       (build->free_threaded && build->traits.leaf_rule == LEAF_BY_EXECUTABLE) &&
	       (!build->tlbc.code_array ||
		build->tlbc.code_array == o->code.code_adaptive - sizeof(uint64_t));
}

/* Where numbers stand in a table, by index: OFFSET_ABSENT where one is absent. */
struct places {
	uint32_t at[NR_OFFSETS];
};

/* The first place of a group, or OFFSET_ABSENT if all of it is absent. */
static uint32_t group_start(const struct group *group, const struct places *places)
{
	uint32_t start = OFFSET_ABSENT;

	for (size_t i = group->first; i <= group->last; i++)
		if (places->at[i] < start)
			start = places->at[i];
	return start;
}

/* Where it ends, or 0. */
static uint32_t group_end(const struct group *group, const struct places *places)
{
	uint32_t end = 0;

	for (size_t i = group->first; i <= group->last; i++)
		if (places->at[i] != OFFSET_ABSENT && places->at[i] + 8 > end)
			end = places->at[i] + 8;
	return end;
}

/* Whether a group has the same fields in the same order in two layouts. */
static bool same_shape(const struct group *group, const struct places *a, const struct places *b)
{
	uint32_t shift = group_start(group, a) - group_start(group, b);

	for (size_t i = group->first; i <= group->last; i++) {
		const bool is_told = a->at[i] != OFFSET_ABSENT;

		if (is_told != (b->at[i] != OFFSET_ABSENT) ||
		    (is_told && a->at[i] != b->at[i] + shift))
			return false;
	}
	return true;
}

/* A search, and what it has found. */
struct search {
	struct remote_memory *memory;
	remote_addr runtime_addr;
	const struct debug_offsets *table;
	struct places known[NR_COLUMNS];
	struct places places;	  /* of the groups that were placed so far */
	struct py_offsets values; /* what stands there; OFFSET_ABSENT of the other groups */
	uint32_t nr_steps, nr_looks;
	uint32_t nr_found;
	struct py_build found;
};

/* Whether a says all that b says, and nothing else about it. */
static bool says_all_of(const struct py_build *a, const struct py_build *b)
{
	uint32_t ours[NR_OFFSETS], theirs[NR_OFFSETS];

	memcpy(ours, &a->offsets, sizeof(ours));
	memcpy(theirs, &b->offsets, sizeof(theirs));
	for (size_t i = 0; i < NR_OFFSETS; i++)
		if (ours[i] != theirs[i] && theirs[i] != OFFSET_ABSENT)
			return false;
	return true;
}

/* What the table says with the groups placed so far. Errors of convert(). */
static int convert_placed(const struct search *search, struct py_build *ret_build)
{
	struct debug_offsets_layout layout = {.tlbc_at = {OFFSET_ABSENT, OFFSET_ABSENT}};

	memcpy(&layout.at, &search->places, sizeof(layout.at));
	/* co_tlbc and tlbc_generation came with the fields that they stand behind. */
	if (search->table->free_threaded &&
	    layout.at.interpreter.code_object_generation != OFFSET_ABSENT) {
		layout.tlbc_at.generation = layout.at.interpreter.code_object_generation + 8;
		layout.tlbc_at.code_array = layout.at.code.code_adaptive + 8;
	}
	return convert(search->table, &layout, ret_build);
}

/* All groups have their place: keep what comes out if the interpreter agrees. */
static void search_judge(struct search *search)
{
	struct py_build build;

	if (convert_placed(search, &build) != 0 || !build_consistent(&build) ||
	    !numbers_plausible(&build) || (search->nr_found && says_all_of(&search->found, &build)))
		return;
	search->nr_looks++;
	if (build_check_live(search->memory, search->runtime_addr, &build) != BUILD_LIVE_PROVEN)
		return;
	if (!search->nr_found || !says_all_of(&build, &search->found))
		search->nr_found++;
	search->found = build;
}

static void search_group(struct search *search, const struct group *group, uint32_t from);

/* Place a group from start on. False if what stands there is no offsets. */
static bool place_group(struct search *search, const struct group *group,
			const struct places *known, uint32_t start)
{
	uint32_t known_start = group_start(group, known);
	uint32_t values[NR_OFFSETS];

	memcpy(values, &search->values, sizeof(values));
	for (size_t i = group->first; i <= group->last; i++) {
		const uint32_t at = known->at[i] == OFFSET_ABSENT
					    ? OFFSET_ABSENT
					    : known->at[i] - known_start + start;

		search->places.at[i] = at;
		if (take_number(search->table, at, OFFSET_ABSENT, &values[i]) != 0)
			return false;
	}
	memcpy(&search->values, values, sizeof(values));
	return true;
}

/* Whether threads are where the groups say so far. The other groups need no trying if not. */
static bool threads_are_live(struct search *search)
{
	struct py_build build = {
		.version_hex = search->table->version_hex,
		.free_threaded = search->table->free_threaded,
		.offsets = search->values,
	};

	if (supplement(false, &build) != 0)
		return false;
	search->nr_looks++;
	return build_check_threads(search->memory, search->runtime_addr, &build) ==
	       BUILD_LIVE_PROVEN;
}

/* Try one place for a group, with the shape that it has in a known layout. */
static void search_place(struct search *search, const struct group *group,
			 const struct places *known, uint32_t start)
{
	const bool has_threads = group->last == OFFSET_INDEX(thread, datastack_chunk);
	const struct py_offsets values = search->values;

	search->nr_steps++;
	if (place_group(search, group, known, start) && relations_hold(&search->values) &&
	    (!has_threads || threads_are_live(search))) {
		uint32_t end = group_end(group, &search->places);

		search_group(search, group + 1, end ? end : start);
	}
	search->values = values;
}

static bool search_over(const struct search *search)
{
	return search->nr_found > 1 || search->nr_steps >= MAX_STEPS ||
	       search->nr_looks >= MAX_LOOKS;
}

/* Try every place and shape for a group, from that place of the table on. */
static void search_group(struct search *search, const struct group *group, uint32_t from)
{
	if (group == groups + NR_GROUPS) {
		search_judge(search);
		return;
	}
	for (size_t i = NR_COLUMNS; i > 0; i--) {
		const struct places *known = &search->known[i - 1];
		bool is_new = true;

		for (size_t k = NR_COLUMNS; is_new && k > i; k--)
			is_new = !same_shape(group, known, &search->known[k - 1]);
		if (is_new && group_start(group, known) == OFFSET_ABSENT)
			search_place(search, group, known, from);
		else if (is_new)
			for (uint32_t n = 0; n <= MAX_WORDS_BETWEEN && !search_over(search); n++)
				search_place(search, group, known, from + 8 * n);
	}
}

/* Search the table for the one layout that fits. 0, or -EBADMSG. */
static int search_layout(struct remote_memory *memory, remote_addr runtime_addr,
			 const struct debug_offsets *table, struct py_build *ret_build)
{
	struct search search = {.memory = memory, .runtime_addr = runtime_addr, .table = table};

	for (uint32_t i = 0; i < NR_COLUMNS; i++) {
		const struct debug_offsets_layout layout =
			debug_offsets_layout(FIRST_MINOR_THAT_TELLS + i);

		memcpy(&search.known[i], &layout.at, sizeof(layout.at));
	}
	/* Nothing is placed yet: all is OFFSET_ABSENT. */
	memset(&search.places, 0xff, sizeof(search.places));
	memset(&search.values, 0xff, sizeof(search.values));
	/* The runtime's own words follow the cookie, the version and the flag. */
	search_group(&search, groups, 24);
	if (search_over(&search) || !search.nr_found)
		return -EBADMSG;
	*ret_build = search.found;
	return 0;
}

int debug_offsets_match(struct remote_memory *memory, remote_addr runtime_addr,
			const struct debug_offsets *table, struct py_build *ret_build)
{
	uint32_t minor = table->version_hex >> 16 & 0xff;
	const struct debug_offsets_layout layout = debug_offsets_layout(minor);
	struct py_build build;
	int err = convert(table, &layout, &build);

	if (!err && (!build_consistent(&build) || !numbers_plausible(&build)))
		err = -EBADMSG;
	if (err && err != -EBADMSG)
		return err;
	if (!err && build_check_known(memory, runtime_addr, &build) == BUILD_LIVE_CONTRADICTS)
		err = -EBADMSG;
	if (!err) {
		build.newer_than_tested = minor != layout.minor;
	} else {
		err = search_layout(memory, runtime_addr, table, &build);
		if (err)
			return err;
		build.newer_than_tested = true;
	}
	build_find_code_version(memory, runtime_addr, &build);
	*ret_build = build;
	return 0;
}
