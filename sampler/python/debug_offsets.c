/* SPDX-License-Identifier: MIT */
#include "sampler/python/debug_offsets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/python/debug_offsets_tables.h"

#define NR_OFFSETS (sizeof(struct py_offsets) / sizeof(uint32_t))

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16 };

static const struct debug_offsets_layout *layout_find(uint32_t minor)
{
	for (size_t i = 0; i < sizeof(debug_offsets_layouts) / sizeof(*debug_offsets_layouts); i++)
		if (debug_offsets_layouts[i].minor == minor)
			return &debug_offsets_layouts[i];
	return NULL;
}

/* Fill ret_offsets from the target's table: 0, or -EBADMSG for a number no offset can be. */
static int offsets_convert(const uint8_t *table, const struct debug_offsets_layout *layout,
			   struct py_offsets *ret_offsets)
{
	uint32_t at[NR_OFFSETS];
	uint32_t values[NR_OFFSETS] = {0};

	memcpy(at, &layout->at, sizeof(at));
	for (size_t i = 0; i < NR_OFFSETS; i++) {
		uint64_t value;

		values[i] = OFFSET_ABSENT;
		if (!at[i])
			continue;
		assert(at[i] + sizeof(uint64_t) <= layout->size);
		value = field_u64(table, at[i]);
		if (value > STRUCT_MAX_BYTES)
			return -EBADMSG;
		values[i] = (uint32_t)value;
	}
	memcpy(ret_offsets, values, sizeof(values));
	return 0;
}

/* Add what the debug offsets of no version carry. */
static void offsets_supplement(uint32_t minor, struct py_offsets *offsets)
{
	static const uint32_t next_code_version[] = {
		[13] = NEXT_CODE_VERSION_3_13,
		[14] = NEXT_CODE_VERSION_3_14,
		[15] = NEXT_CODE_VERSION_3_15,
	};

	offsets->interpreter.next_code_version = next_code_version[minor];
	offsets->thread.datastack_top = offsets->thread.datastack_chunk + DATASTACK_TOP_AFTER_CHUNK;
	if (minor == 13) {
		offsets->frame.stacktop = offsets->frame.instr_ptr + STACKTOP_AFTER_INSTR_PTR;
		offsets->generator.iframe = GENERATOR_IFRAME;
	}
	offsets->chunk.previous = CHUNK_PREVIOUS;
	offsets->chunk.size = CHUNK_SIZE;
	offsets->chunk.top = CHUNK_TOP;
	offsets->chunk.data = CHUNK_DATA;
	offsets->code.ob_size = CODE_OB_SIZE;
	offsets->code.nlocalsplus = offsets->code.firstlineno + NLOCALSPLUS_AFTER_FIRSTLINENO;
	offsets->code.framesize = offsets->code.firstlineno + FRAMESIZE_AFTER_FIRSTLINENO;
	offsets->code.version = offsets->code.firstlineno + VERSION_AFTER_FIRSTLINENO;
	offsets->code.firsttraceable =
		offsets->code.code_adaptive - FIRSTTRACEABLE_BEFORE_CODE_ADAPTIVE;
	offsets->unicode.state_kind_shift = 2;
	if (offsets->unicode.compact_data == OFFSET_ABSENT)
		offsets->unicode.compact_data =
			offsets->unicode.ascii_data + COMPACT_DATA_AFTER_ASCII_DATA;
	offsets->unicode.data = offsets->unicode.compact_data;
}

static struct py_traits traits_of(uint32_t minor)
{
	return (struct py_traits){
		.leaf_rule = minor == 13 ? LEAF_BY_STACKTOP : LEAF_BY_EXECUTABLE,
		.shim_owner = 3, /* FRAME_OWNED_BY_CSTACK in 3.13, _INTERPRETER since 3.14 */
		.returns = minor == 13 ? return_opcodes_3_13 : (struct return_opcodes){0},
	};
}

/* The layout of the table that head begins, or NULL after saying why not. */
static const struct debug_offsets_layout *choose_layout(const uint8_t *head, uint32_t version_hex,
							struct message *reterr)
{
	const struct debug_offsets_layout *layout = layout_find(version_hex >> 16 & 0xff);
	char version[VERSION_MAX_BYTES];

	version_format(version_hex, version);
	if (version_hex >> 24 != 3 || !layout) {
		message_set(reterr,
			    "the target runs CPython %s; this pysample knows " SUPPORTED_VERSIONS
			    ": look for a newer pysample",
			    version);
		return NULL;
	}
	if (field_u64(head, FREE_THREADED_OFFSET)) {
		message_set(reterr,
			    "the target runs a free-threaded CPython %s, which this "
			    "pysample does not support yet",
			    version);
		return NULL;
	}
	return layout;
}

int debug_offsets_load(struct remote_memory *memory, remote_addr runtime_addr,
		       struct py_build *ret_build, struct message *reterr)
{
	uint8_t head[FREE_THREADED_OFFSET + sizeof(uint64_t)];
	const struct debug_offsets_layout *layout;
	cleanup_free uint8_t *table = NULL;
	struct py_build build = {0};
	int err;

	err = remote_memory_read(memory, runtime_addr, head, sizeof(head));
	if (err)
		return err;
	if (memcmp(head, DEBUG_OFFSETS_COOKIE, COOKIE_BYTES) != 0)
		return -ENOENT;
	build.version_hex = (uint32_t)field_u64(head, VERSION_OFFSET);
	layout = choose_layout(head, build.version_hex, reterr);
	if (!layout)
		return -ENOTSUP;
	table = malloc(layout->size);
	if (!table)
		return -ENOMEM;
	err = remote_memory_read(memory, runtime_addr, table, layout->size);
	if (!err)
		err = offsets_convert(table, layout, &build.offsets);
	if (err)
		return err;
	offsets_supplement(layout->minor, &build.offsets);
	build.traits = traits_of(layout->minor);
	*ret_build = build;
	return 0;
}
