/* SPDX-License-Identifier: MIT */
#include "sampler/python/debug_offsets.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/executable_offsets.h"
#include "sampler/python/value_offsets.h"

#define NR_OFFSETS (sizeof(struct py_offsets) / sizeof(uint32_t))

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16, HEAD_BYTES = 24 };

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

/* The number at a place of the table; no place is 0. -EBADMSG: no offset; -EFAULT: not read. */
static int take_number(const struct debug_offsets *table, uint32_t at, uint32_t absent,
		       uint32_t *ret_value)
{
	uint64_t value;

	*ret_value = absent;
	if (!at)
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

/* Add what leads to the attributes of an instance. */
static void supplement_attributes(struct py_build *build)
{
	struct py_offsets *offsets = &build->offsets;

	/* Where the layout had to be searched, nothing is known of types: no names then. */
	if (offsets->type.basicsize == OFFSET_ABSENT && offsets->type.flags != OFFSET_ABSENT) {
		offsets->type.basicsize = offsets->object.tp_name + BASICSIZE_AFTER_NAME;
		offsets->type.dictoffset = offsets->type.flags + DICTOFFSET_AFTER_FLAGS;
		offsets->type.cached_keys = offsets->type.flags + CACHED_KEYS_AFTER_FLAGS;
	}
	offsets->instance.dict_before =
		build->free_threaded ? INSTANCE_DICT_BEFORE_FREE_THREADED : INSTANCE_DICT_BEFORE;
	offsets->dict_keys.log2_size = DICT_KEYS_LOG2_SIZE;
	offsets->dict_keys.log2_index_bytes = DICT_KEYS_LOG2_INDEX_BYTES;
	offsets->dict_keys.kind = DICT_KEYS_KIND;
	offsets->dict_keys.nr_entries = DICT_KEYS_NR_ENTRIES;
	offsets->dict_keys.indices = DICT_KEYS_INDICES;
	offsets->dict_values.valid = DICT_VALUES_VALID;
	offsets->dict_values.values = DICT_VALUES_VALUES;
	offsets->integer.size_shift = INTEGER_SIZE_SHIFT;
}

/*
 * Add what leads to the exceptions that a thread handles. A layout that had to be searched
 * tells nothing of it: minor is another one then.
 */
static void supplement_exceptions(uint32_t minor, struct py_offsets *offsets)
{
	if (minor == 13 || minor == 14) {
		offsets->thread.raised = offsets->thread.current_frame + RAISED_AFTER_CURRENT_FRAME;
		offsets->thread.exc_state = offsets->thread.datastack_chunk + EXC_STATE_AFTER_CHUNK;
		offsets->exc_item.value = EXC_ITEM_VALUE;
	}
	if (offsets->thread.raised == OFFSET_ABSENT)
		return;
	offsets->thread.exc_info = offsets->thread.raised + EXC_INFO_AFTER_RAISED;
	offsets->exc_item.previous = EXC_ITEM_PREVIOUS;
}

/* Add what the debug offsets of no version carry. */
static void supplement_objects(uint32_t minor, struct py_build *build)
{
	struct py_offsets *offsets = &build->offsets;

	offsets->thread.datastack_top = offsets->thread.datastack_chunk + DATASTACK_TOP_AFTER_CHUNK;
	if (minor == 13) {
		offsets->frame.stacktop = offsets->frame.instr_ptr + STACKTOP_AFTER_INSTR_PTR;
		offsets->generator.iframe = offsets->object.ob_type + GENERATOR_IFRAME_AFTER_TYPE;
	}
	offsets->chunk.previous = CHUNK_PREVIOUS;
	offsets->chunk.size = CHUNK_SIZE;
	offsets->chunk.top = CHUNK_TOP;
	offsets->chunk.data = CHUNK_DATA;
	offsets->code.ob_size = offsets->object.ob_type + CODE_OB_SIZE_AFTER_TYPE;
	offsets->code.nlocalsplus = offsets->code.firstlineno + NLOCALSPLUS_AFTER_FIRSTLINENO;
	offsets->code.framesize = offsets->code.firstlineno + FRAMESIZE_AFTER_FIRSTLINENO;
	offsets->code.version = offsets->code.firstlineno + VERSION_AFTER_FIRSTLINENO;
	if (offsets->code.argcount != OFFSET_ABSENT) {
		offsets->code.kwonlyargcount =
			offsets->code.argcount + KWONLYARGCOUNT_AFTER_ARGCOUNT;
		offsets->code.flags = offsets->code.argcount - FLAGS_BEFORE_ARGCOUNT;
	}
	offsets->code.firsttraceable =
		build->tlbc.code_array
			? build->tlbc.code_array - FIRSTTRACEABLE_BEFORE_TLBC
			: offsets->code.code_adaptive - FIRSTTRACEABLE_BEFORE_CODE_ADAPTIVE;
	offsets->unicode.state_kind_shift = build->free_threaded && minor > 13
						    ? STATE_KIND_SHIFT_FREE_THREADED_3_14
						    : STATE_KIND_SHIFT;
	if (offsets->unicode.compact_data == OFFSET_ABSENT)
		offsets->unicode.compact_data =
			offsets->unicode.ascii_data + COMPACT_DATA_AFTER_ASCII_DATA;
	offsets->unicode.data = offsets->unicode.compact_data;
	supplement_attributes(build);
}

static struct generator_states generator_states_of(uint32_t minor)
{
	const uint32_t nr = sizeof(generator_states) / sizeof(*generator_states);

	return minor - 14 < nr ? generator_states[minor - 14] : (struct generator_states){0};
}

static struct py_traits traits_of(uint32_t minor)
{
	return (struct py_traits){
		.leaf_rule = minor == 13 ? LEAF_BY_STACKTOP : LEAF_BY_EXECUTABLE,
		.attribute_rule = ATTRIBUTES_INLINE,
		.has_unnamed_executors = minor == 14,
		.tuple_items_after_type =
			minor == 13 ? TUPLE_ITEMS_AFTER_TYPE : TUPLE_ITEMS_AFTER_TYPE_3_14,
		.qualname_after_type = QUALNAME_AFTER_TYPE,
		.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE,
		.shim_owner = 3, /* FRAME_OWNED_BY_CSTACK in 3.13, _INTERPRETER since 3.14 */
		.generator_states = generator_states_of(minor),
	};
}

int debug_offsets_convert(const struct debug_offsets *table,
			  const struct debug_offsets_layout *layout, struct py_build *ret_build)
{
	uint32_t minor = table->version_hex >> 16 & 0xff;
	struct py_build build = {
		.version_hex = table->version_hex,
		.free_threaded = table->free_threaded,
		.traits = traits_of(minor),
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
	if (err)
		return err;
	supplement_objects(minor, &build);
	supplement_exceptions(layout->minor, &build.offsets);
	build.offsets.interpreter.next_code_version = OFFSET_ABSENT;
	if (minor == layout->minor)
		build.offsets.interpreter.next_code_version =
			next_code_version_offsets[minor - 13][build.free_threaded];
	*ret_build = build;
	return 0;
}
