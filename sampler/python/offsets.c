/* SPDX-License-Identifier: MIT */
#include "sampler/python/offsets.h"

#include <errno.h>
#include <stdio.h>

#include "sampler/python/debug_offsets.h"
#include "sampler/python/offsets_tables.h"
#include "sampler/python/offsets_tables_heap.h"

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
	const uint32_t thread_end = thread_head_bytes(o);
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
		{o->thread.thread_id, 8, thread_end, most},
		{o->thread.native_thread_id, 8, thread_end, most},
		{o->thread.datastack_chunk, 8, thread_end, most},
		{o->thread.datastack_top, 8, o->thread.size, most},
	};

	return fields_fit(fields, sizeof(fields) / sizeof(*fields));
}

/* Of frames and code objects the heads are read. */
static bool objects_consistent(const struct py_offsets *o)
{
	const uint32_t any = STRUCT_MAX_BYTES;
	const uint32_t most = CODE_MAX_BYTES;
	const uint32_t code_end = code_head_bytes(o);
	const uint32_t frame_end = frame_head_bytes(o);
	const struct field fields[] = {
		{o->frame.executable, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.previous, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.instr_ptr, 8, frame_end, FRAME_MAX_BYTES},
		{o->frame.lasti, 4, frame_end, FRAME_MAX_BYTES},
		{o->frame.state, 1, frame_end, FRAME_MAX_BYTES},
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
		{o->code.bytecode, 8, code_end, most},
		{o->object.ob_type, 8, code_end, most},
		{o->object.tp_name, 8, most, most},
		{o->unicode.length, 8, o->unicode.ascii_data, most},
		{o->unicode.state, 4, o->unicode.ascii_data, most},
		{o->unicode.compact_data, 8, most, most},
		{o->bytes.ob_size, 8, most, most},
		{o->bytes.ob_sval, 1, most, most},
	};

	if (o->frame.localsplus != OFFSET_ABSENT && o->frame.size > FRAME_MAX_BYTES)
		return false;
	return fields_fit(fields, sizeof(fields) / sizeof(*fields)) && frame_end >= 32;
}

static const struct version_table *table_find(uint32_t version_hex)
{
	static const struct version_table *const tables[] = {
		&version_3_6,  &version_3_7,  &version_3_8, &version_3_9,
		&version_3_10, &version_3_11, &version_3_12};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (version_hex >> 16 == (0x0300u | tables[i]->minor))
			return tables[i];
	return NULL;
}

/* Fill ret_build for a version that carries no offsets. 0 or -ENOTSUP with a sentence. */
static int load_table(uint32_t version_hex, struct py_build *ret_build, struct message *reterr)
{
	const struct version_table *table = table_find(version_hex);
	char version[VERSION_MAX_BYTES];

	if (table) {
		*ret_build = (struct py_build){
			.version_hex = version_hex,
			.offsets = table->offsets,
			.traits = table->traits,
		};
		return 0;
	}
	version_format(version_hex, version);
	message_set(reterr,
		    version_hex ? "the target runs CPython %s; this pysample "
				  "knows " SUPPORTED_VERSIONS
				: "the version of the target's CPython cannot be "
				  "told%.0s; this pysample knows " SUPPORTED_VERSIONS,
		    version);
	return -ENOTSUP;
}

int offsets_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
		 struct py_build *ret_build, struct message *reterr)
{
	struct py_build build = {.version_hex = version_hex};
	char version[VERSION_MAX_BYTES];
	int err = debug_offsets_load(memory, runtime_addr, &build, reterr);

	if (err == -ENOENT)
		err = load_table(version_hex, &build, reterr);
	if (!err && (!states_consistent(&build.offsets) || !objects_consistent(&build.offsets)))
		err = -EBADMSG;
	if (err == -EBADMSG) {
		version_format(build.version_hex, version);
		message_set(reterr,
			    "the debug offsets of this CPython %s contradict themselves: "
			    "a patched build or damaged memory",
			    version);
	}
	if (err)
		return err;
	*ret_build = build;
	return 0;
}
