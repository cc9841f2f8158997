/* SPDX-License-Identifier: MIT */
#include "sampler/python/debug_offsets.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/python/matrix.h"

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16, HEAD_BYTES = 24 };

/* A column for each minor version. */
enum { NR_COLUMNS = NEWEST_MINOR - FIRST_MINOR_THAT_TELLS + 1 };

/* Where a number stands. */
static const struct {
	size_t index; /* in struct py_offsets, as an array */
	uint32_t places[NR_COLUMNS];
} told[] = {
#define TOLD(of, field, cells, truth) {OFFSET_INDEX(of, field), {CELLS cells}},
#include "sampler/python/debug_offsets.def"
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
#include "sampler/python/debug_offsets.def"
};

/* A number left out does not compile. */
#define EXPECT(cells, nr)		      _Static_assert(NR_CELLS(cells) == (nr), "one for each version")
#define TABLE_BYTES(cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define TLBC(member, cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define TOLD(of, field, cells, truth)	      EXPECT(cells, NR_COLUMNS);
#define LACKED(of, field, from, holds, cells) EXPECT(cells, 2 * NR_COLUMNS);
#include "sampler/python/debug_offsets.def"

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
#include "sampler/python/debug_offsets.def"
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

int debug_offsets_supplement(bool is_own, struct py_build *build)
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

int debug_offsets_convert(const struct debug_offsets *table,
			  const struct debug_offsets_layout *layout, struct py_build *ret_build)
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
		err = debug_offsets_supplement(minor == layout->minor, &build);
	if (err)
		return err;
	*ret_build = build;
	return 0;
}
