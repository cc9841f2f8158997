/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "procmem/clock.h"
#include "procmem/machine.h"
#include "symbols/jit/jit_sources.h"
#include "symbols/jit/refresh_backoff.h"

/* The cached unwind table of a code. */
struct code_table {
	bool is_read;
	uint32_t code;		    /* index in the map */
	struct unwind_table *table; /* owned; NULL: none, or not readable */
};

struct jit_frames {
	struct jit_sources *sources;
	uint64_t time_ns; /* of the stack that is unwound */
	uint64_t read_ns; /* of the stack for which the files were last read */
	struct refresh_backoff backoff;
	struct code_table tables[JIT_FRAMES_MAX_TABLES];
	uint64_t unwind_bytes; /* of all tables */
};

/* Create from sources, taking ownership of them. sources is NULL if memory was lacking. */
static int create(struct jit_sources *sources, struct jit_frames **ret_frames)
{
	struct jit_frames *frames = sources ? calloc(1, sizeof(*frames)) : NULL;

	if (!frames) {
		jit_sources_destroy(sources);
		return -ENOMEM;
	}
	frames->sources = sources;
	frames->time_ns = JIT_MAP_NOW_NS;
	*ret_frames = frames;
	return 0;
}

int jit_frames_create(const struct process *process, struct remote_memory *memory,
		      struct jit_frames **ret_frames)
{
	return create(jit_sources_create(process, memory), ret_frames);
}

int jit_frames_create_of_core(struct remote_memory *memory, const struct maps *maps,
			      struct image_source *images, struct jit_frames **ret_frames)
{
	return create(jit_sources_create_of_core(memory, maps, images), ret_frames);
}

static void drop_table(struct jit_frames *frames, struct code_table *entry)
{
	if (entry->table)
		frames->unwind_bytes -= unwind_table_section(entry->table)->nr_bytes;
	unwind_table_destroy(entry->table);
	*entry = (struct code_table){.is_read = false};
}

void jit_frames_destroy(struct jit_frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < JIT_FRAMES_MAX_TABLES; i++)
		drop_table(frames, &frames->tables[i]);
	jit_sources_destroy(frames->sources);
	free(frames);
}

void jit_frames_set_time(struct jit_frames *frames, uint64_t time_ns)
{
	frames->time_ns = time_ns;
}

static void drop_tables_of_ended(struct jit_frames *frames)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(jit_sources_map(frames->sources), &nr_codes);

	for (size_t i = 0; i < JIT_FRAMES_MAX_TABLES; i++) {
		struct code_table *entry = &frames->tables[i];

		if (entry->is_read && codes[entry->code].to_ns <= frames->time_ns)
			drop_table(frames, entry);
	}
}

static const struct jit_code *find(const struct jit_frames *frames, remote_addr addr)
{
	return jit_sources_find(frames->sources, addr, frames->time_ns);
}

/*
 * Read the known files on, once for each stack, and find the code at addr. Errors are handled as
 * by refresh().
 */
static const struct jit_code *find_in_files(struct jit_frames *frames, remote_addr addr)
{
	if (frames->read_ns == frames->time_ns)
		return NULL;
	frames->read_ns = frames->time_ns;
	(void)jit_sources_read_new(frames->sources);
	return find(frames, addr);
}

/*
 * Read all sources and find the code at addr. Errors are ignored: the next refresh may succeed, or
 * the process has ended.
 */
static const struct jit_code *refresh(struct jit_frames *frames, remote_addr addr)
{
	const uint64_t begin_ns = clock_now_ns();
	const struct jit_code *code;

	(void)jit_sources_refresh(frames->sources, false);
	drop_tables_of_ended(frames);
	code = find(frames, addr);
	refresh_backoff_record(&frames->backoff, code != NULL, frames->time_ns,
			       clock_now_ns() - begin_ns);
	return code;
}

const struct jit_code *jit_frames_find(struct jit_frames *frames, remote_addr addr)
{
	const struct jit_code *code = find(frames, addr);

	if (!code)
		code = find_in_files(frames, addr);
	return refresh_backoff_is_due(&frames->backoff, code != NULL, frames->time_ns)
		       ? refresh(frames, addr)
		       : code;
}

/* Rules. */

/* Make the unwind table of a body. Moves the bytes out of the body. NULL if there is none. */
static struct unwind_table *make_table(struct jit_frames *frames, const struct jit_code *code,
				       struct jit_body *body)
{
	const struct cfi_section section = {
		.bytes = body->unwind,
		.nr_bytes = body->unwind_bytes,
		.vaddr = body->unwind_vaddr,
		.kind = CFI_EH_FRAME,
	};
	struct unwind_table *table;

	if (!body->unwind || body->is_big_endian || body->elf_machine != MACHINE_ELF ||
	    body->unwind_bytes > JIT_FRAMES_MAX_UNWIND_BYTES - frames->unwind_bytes)
		return NULL;
	body->unwind = NULL;
	if (unwind_table_create(&section, code->start_addr, &table))
		return NULL;
	frames->unwind_bytes += section.nr_bytes;
	return table;
}

/* The table of a code of the map, read on first use. NULL if there is none. */
static struct unwind_table *table_of(struct jit_frames *frames, const struct jit_code *code)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(jit_sources_map(frames->sources), &nr_codes);
	const uint32_t index = (uint32_t)(code - codes);
	struct code_table *entry = &frames->tables[index % JIT_FRAMES_MAX_TABLES];
	struct jit_body body;

	if (entry->is_read && entry->code == index)
		return entry->table;
	drop_table(frames, entry);
	*entry = (struct code_table){.is_read = true, .code = index};
	if (!jit_sources_read_body(frames->sources, code, &body)) {
		entry->table = make_table(frames, code, &body);
		jit_body_done(&body);
	}
	return entry->table;
}

const struct unwind_rule *jit_frames_rule(struct jit_frames *frames, remote_addr addr,
					  const struct cfi_section **ret_section)
{
	const struct jit_code *code = jit_frames_find(frames, addr);
	struct unwind_table *table = code && code->unwind_place ? table_of(frames, code) : NULL;
	const struct unwind_rule *rule = table ? unwind_table_find(table, addr) : NULL;

	if (rule)
		*ret_section = unwind_table_section(table);
	return rule;
}
