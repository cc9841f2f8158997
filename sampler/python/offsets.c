/* SPDX-License-Identifier: MIT */
#include "sampler/python/offsets.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "procmem/cleanup.h"
#include "sampler/python/offsets_tables.h"

#define NR_OFFSETS (sizeof(struct py_offsets) / sizeof(uint32_t))

/* No struct of CPython is larger: 3.15's runtime has 350 kB. */
#define STRUCT_MAX_BYTES (4u << 20)

enum { COOKIE_BYTES = 8, VERSION_OFFSET = 8, FREE_THREADED_OFFSET = 16 };

void version_format(uint32_t version_hex, char ret_text[VERSION_MAX_BYTES])
{
	static const struct {
		unsigned int level;
		const char *mark;
	} levels[] = {{0xa, "a"}, {0xb, "b"}, {0xc, "rc"}};
	unsigned int level = version_hex >> 4 & 0xf;
	int used;

	if (!(version_hex & 0xffff)) {
		(void)snprintf(ret_text, VERSION_MAX_BYTES, "%u.%u", version_hex >> 24,
			       version_hex >> 16 & 0xff);
		return;
	}
	used = snprintf(ret_text, VERSION_MAX_BYTES, "%u.%u.%u", version_hex >> 24,
			version_hex >> 16 & 0xff, version_hex >> 8 & 0xff);

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (levels[i].level == level)
			(void)snprintf(ret_text + used, VERSION_MAX_BYTES - (size_t)used, "%s%u",
				       levels[i].mark, version_hex & 0xf);
}

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

/* A field that will be used, and what it has to lie inside of. */
struct field {
	uint32_t offset;
	uint32_t width;
	uint32_t end; /* of what is read of the struct, or of the struct */
	uint32_t buffer_size;
};

/* Whether every field is absent, or aligned and inside. */
static bool fields_fit(const struct field *fields, size_t nr_fields)
{
	for (size_t i = 0; i < nr_fields; i++) {
		uint32_t end;

		if (fields[i].offset == OFFSET_ABSENT)
			continue;
		if (fields[i].offset % fields[i].width ||
		    __builtin_add_overflow(fields[i].offset, fields[i].width, &end) ||
		    end > fields[i].end || end > fields[i].buffer_size)
			return false;
	}
	return true;
}

/* The runtime's and interpreters' fields are read one by one, threads' up to the last one. */
static bool states_consistent(const struct py_offsets *o)
{
	const uint32_t any = STRUCT_MAX_BYTES;
	const uint32_t most = THREAD_STATE_MAX_BYTES;
	const uint32_t top = o->thread.datastack_top;
	const uint32_t thread_end = top < most ? top + 8 : 0;
	const struct field fields[] = {
		{o->runtime.interpreters_head, 8, o->runtime.size, any},
		{o->interpreter.id, 8, o->interpreter.size, any},
		{o->interpreter.next, 8, o->interpreter.size, any},
		{o->interpreter.threads_head, 8, o->interpreter.size, any},
		{o->interpreter.gil_locked, 4, o->interpreter.size, any},
		{o->interpreter.gil_last_holder, 8, o->interpreter.size, any},
		{o->interpreter.code_object_generation, 8, o->interpreter.size, any},
		{o->interpreter.next_code_version, 4, o->interpreter.size, any},
		{o->thread.next, 8, thread_end, most},
		{o->thread.interp, 8, thread_end, most},
		{o->thread.current_frame, 8, thread_end, most},
		{o->thread.cframe, 8, thread_end, most},
		{o->thread.base_frame, 8, thread_end, most},
		{o->thread.native_thread_id, 8, thread_end, most},
		{o->thread.datastack_chunk, 8, thread_end, most},
		{o->thread.datastack_top, 8, o->thread.size, most},
	};

	return fields_fit(fields, sizeof(fields) / sizeof(*fields));
}

/* Of frames what lies before localsplus is read, of code objects what lies before the bytecode. */
static bool objects_consistent(const struct py_offsets *o)
{
	const uint32_t any = STRUCT_MAX_BYTES;
	const uint32_t most = CODE_MAX_BYTES;
	const uint32_t code_end = o->code.code_adaptive;
	const uint32_t frame_end = o->frame.localsplus;
	const struct field fields[] = {
		{o->frame.executable, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.previous, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.instr_ptr, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.stacktop, 4, frame_end, FRAME_MAX_BYTES},
		{o->frame.stackpointer, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.owner, 1, frame_end, FRAME_MAX_BYTES},
		{o->frame.localsplus, 8, o->frame.size, FRAME_MAX_BYTES},
		{o->generator.iframe, 8, any, any},
		{o->code.ob_size, 8, code_end, most},
		{o->code.filename, 8, code_end, most},
		{o->code.qualname, 8, code_end, most},
		{o->code.linetable, 8, code_end, most},
		{o->code.firstlineno, 4, code_end, most},
		{o->code.nlocalsplus, 4, code_end, most},
		{o->code.framesize, 4, code_end, most},
		{o->code.version, 4, code_end, most},
		{o->code.firsttraceable, 4, code_end, most},
		{o->code.code_adaptive, 8, o->code.size, most},
		{o->object.ob_type, 8, code_end, most},
		{o->object.tp_name, 8, most, most},
		{o->unicode.length, 8, o->unicode.ascii_data, most},
		{o->unicode.state, 4, o->unicode.ascii_data, most},
		{o->unicode.compact_data, 8, most, most},
		{o->bytes.ob_size, 8, most, most},
		{o->bytes.ob_sval, 1, most, most},
	};

	return fields_fit(fields, sizeof(fields) / sizeof(*fields)) &&
	       o->frame.size <= FRAME_MAX_BYTES && o->frame.localsplus >= 32;
}

static int load_debug_offsets(struct remote_memory *memory, remote_addr runtime_addr,
			      const uint8_t *head, struct py_build *build, struct message *reterr)
{
	char version[VERSION_MAX_BYTES];
	uint32_t minor = build->version_hex >> 16 & 0xff;
	const struct debug_offsets_layout *layout = layout_find(minor);
	cleanup_free uint8_t *table = NULL;
	int err;

	version_format(build->version_hex, version);
	if (build->version_hex >> 24 != 3 || !layout) {
		message_set(reterr,
			    "the target runs CPython %s; this pysample knows " SUPPORTED_VERSIONS
			    ": look for a newer pysample",
			    version);
		return -ENOTSUP;
	}
	if (field_u64(head, FREE_THREADED_OFFSET)) {
		message_set(reterr,
			    "the target runs a free-threaded CPython %s, which this "
			    "pysample does not support yet",
			    version);
		return -ENOTSUP;
	}
	table = malloc(layout->size);
	if (!table)
		return -ENOMEM;
	err = remote_memory_read(memory, runtime_addr, table, layout->size);
	if (!err)
		err = offsets_convert(table, layout, &build->offsets);
	if (!err) {
		offsets_supplement(minor, &build->offsets);
		if (!states_consistent(&build->offsets) || !objects_consistent(&build->offsets))
			err = -EBADMSG;
	}
	if (err == -EBADMSG)
		message_set(reterr,
			    "the debug offsets of this CPython %s contradict themselves: "
			    "a patched build or damaged memory",
			    version);
	build->traits = (struct py_traits){
		.leaf_rule = minor == 13 ? LEAF_BY_STACKTOP : LEAF_BY_EXECUTABLE,
		.shim_owner = 3, /* FRAME_OWNED_BY_CSTACK in 3.13, _INTERPRETER since 3.14 */
	};
	if (minor == 13)
		build->traits.returns = return_opcodes_3_13;
	return err;
}

int offsets_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
		 struct py_build *ret_build, struct message *reterr)
{
	struct py_build build = {.version_hex = version_hex};
	char version[VERSION_MAX_BYTES];
	uint8_t head[FREE_THREADED_OFFSET + sizeof(uint64_t)];
	int err;

	err = remote_memory_read(memory, runtime_addr, head, sizeof(head));
	if (err)
		return err;
	if (memcmp(head, DEBUG_OFFSETS_COOKIE, COOKIE_BYTES) == 0) {
		build.version_hex = (uint32_t)field_u64(head, VERSION_OFFSET);
		err = load_debug_offsets(memory, runtime_addr, head, &build, reterr);
	} else if (version_hex >> 16 == 0x030b && version_hex & 0xffff) {
		build.offsets = offsets_3_11;
		build.traits = (struct py_traits){
			.leaf_rule = LEAF_BY_STACKTOP,
			.shim_owner = UINT8_MAX,
			.extra_frame_words = 9, /* FRAME_SPECIALS_SIZE */
			.returns = return_opcodes_3_11,
		};
	} else {
		version_format(version_hex, version);
		message_set(reterr,
			    version_hex ? "the target runs CPython %s; this pysample "
					  "knows " SUPPORTED_VERSIONS
					: "the version of the target's CPython cannot be "
					  "told%.0s; this pysample knows " SUPPORTED_VERSIONS,
			    version);
		return -ENOTSUP;
	}
	if (err)
		return err;
	*ret_build = build;
	return 0;
}
