/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/object.h"

/*
 * Limit on bytecode, of which ob_size counts the code units; CPython's jumps cannot reach further.
 */
#define CODE_MAX_BYTECODE_BYTES (1u << 30)

/* Limit on a frame, which is inside one chunk; CPython's co_stacksize and locals are ints. */
#define FRAME_SIZE_MAX_BYTES (64u << 20)

/* How much of each text is read ahead; nearly all functions have less. */
enum {
	PREFETCHED_QUALNAME_BYTES = 192,
	PREFETCHED_FILENAME_BYTES = 320,
	PREFETCHED_LINETABLE_BYTES = 512,
	PREFETCHED_TEXTS_BYTES =
		PREFETCHED_QUALNAME_BYTES + PREFETCHED_FILENAME_BYTES + PREFETCHED_LINETABLE_BYTES,
};

/* How much of each text is kept, and read ahead. */
static const struct {
	uint16_t kept_bytes, prefetched_bytes;
} text_sizes[NR_CODE_TEXTS] = {
	[CODE_QUALNAME] = {CODE_QUALNAME_BYTES, PREFETCHED_QUALNAME_BYTES},
	[CODE_FILENAME] = {CODE_FILENAME_BYTES, PREFETCHED_FILENAME_BYTES},
	[CODE_LINETABLE] = {CODE_LINETABLE_BYTES, PREFETCHED_LINETABLE_BYTES},
};

void code_cache_init(struct code_cache *cache, struct remote_memory *memory,
		     const struct py_build *build)
{
	*cache = (struct code_cache){
		.memory = memory,
		.build = build,
		.functions = &cache->own_functions,
		.own_functions.max_bytes = FUNCTIONS_MAX_BYTES,
	};
}

void code_cache_share_functions(struct code_cache *cache, struct function_table *functions)
{
	cache->functions = functions;
}

/* Clear an entry: it becomes "not a code object". */
static void code_forget(struct code_cache *cache, struct code *code)
{
	cache->table_bytes -= code->table_bytes;
	cache->nr_cleared += code->function != NULL;
	if (code->identity && cache->reporter)
		cache->reporter->forget(cache->reporter, code->addr);
	free(code->lines.table);
	free(code->lines.by_unit);
	free(code->bytecode.copies.starts);
	*code = (struct code){
		.addr = code->addr,
		.nr_loads = code->nr_loads + 1,
		.in_use = code->in_use,
	};
}

/* Drop the entries of a table that are not in use, or all entries. */
static void drop(struct code_cache *cache, struct addr_map *map, bool drops_all)
{
	struct addr_map used = {0};

	for (size_t i = 0; !drops_all && i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && code->in_use && addr_map_put(&used, code->addr, code)) {
			addr_map_done(&used);
			return;
		}
	}
	for (size_t i = 0; i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && !drops_all && code->in_use) {
			code->in_use = false;
		} else if (code) {
			code_forget(cache, code);
			free(code);
		}
	}
	addr_map_done(map);
	*map = used;
}

void code_cache_done(struct code_cache *cache)
{
	if (!cache)
		return;
	drop(cache, &cache->codes, true);
	drop(cache, &cache->executables, true);
	function_table_done(&cache->own_functions);
}

bool code_cache_clear_if_full(struct code_cache *cache)
{
	if (!cache->tables_full)
		return false;
	for (size_t i = 0; i < cache->codes.nr_slots; i++)
		if (cache->codes.slots[i].value)
			code_forget(cache, cache->codes.slots[i].value);
	cache->tables_full = false;
	return true;
}

bool code_cache_should_drop(const struct code_cache *cache)
{
	return cache->nr_new >= DROP_AFTER_NEW_CODES ||
	       cache->nr_new_executables >= DROP_AFTER_NEW_EXECUTABLES;
}

void code_cache_drop_unused(struct code_cache *cache)
{
	drop(cache, &cache->executables, false);
	cache->nr_new_executables = 0;
	if (cache->nr_new < DROP_AFTER_NEW_CODES)
		return;
	drop(cache, &cache->codes, false);
	cache->nr_new = 0;
}

/* Whether type_addr is PyCode_Type. It is recognised by name once, then by address. */
static bool is_code_type(struct code_cache *cache, remote_addr type_addr)
{
	char name[sizeof("code") + 1];

	if (cache->code_type_addr)
		return type_addr == cache->code_type_addr;
	if (type_name_read(cache->memory, &cache->build->offsets, type_addr, name, sizeof(name)) ||
	    strcmp(name, "code") != 0)
		return false;
	cache->code_type_addr = type_addr;
	return true;
}

/* Get the fingerprint of an object that was read. Returns -EBADMSG if it is no code object. */
static int make_fingerprint(struct code_cache *cache, const uint8_t *object,
			    struct code_fingerprint *ret_fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;

	if (!is_code_type(cache, field_u64(object, offsets->object.ob_type)))
		return -EBADMSG;
	*ret_fingerprint = (struct code_fingerprint){
		.text_addrs = {field_u64(object, offsets->code.qualname),
			       field_u64(object, offsets->code.filename),
			       field_u64(object, offsets->code.linetable)},
		.bytecode = optional_u64(object, offsets->code.bytecode),
		.ob_size = optional_u64(object, offsets->code.ob_size),
		.first_line = field_u32(object, offsets->code.firstlineno),
		.framesize = optional_u32(object, offsets->code.framesize),
		.version = optional_u32(object, offsets->code.version),
		.first_traceable = optional_u32(object, offsets->code.firsttraceable),
	};
	return 0;
}

/* Read the head of the object at addr. Returns 0; -EBADMSG if it is no code object; -EFAULT, … */
static int read_object(struct code_cache *cache, struct remote_memory *memory, remote_addr addr,
		       uint8_t object[CODE_MAX_BYTES], struct code_fingerprint *ret_fingerprint)
{
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(memory, addr, object, code_head_bytes(&cache->build->offsets));
	return err ? err : make_fingerprint(cache, object, ret_fingerprint);
}

/* Where a text is read from: its length precedes everything that identifies it. */
static remote_addr text_addr(const struct py_offsets *offsets,
			     const struct code_fingerprint *fingerprint, enum code_text text)
{
	return fingerprint->text_addrs[text] +
	       (text == CODE_LINETABLE ? offsets->bytes.ob_size : offsets->unicode.length);
}

/*
 * In a text read from its length on, clear the bytes past its end, and those of its head that may
 * change.
 */
static void trim(const struct py_offsets *offsets, enum code_text text,
		 const struct remote_range *range)
{
	uint8_t *bytes = range->buffer;
	uint32_t content_offset = offsets->bytes.ob_sval - offsets->bytes.ob_size;
	uint64_t own_bytes = 0;

	if (text != CODE_LINETABLE) {
		own_bytes = string_valid_bytes(offsets, bytes, range->done_bytes);
		content_offset = string_content_offset(offsets, bytes, range->done_bytes);
	} else if (range->done_bytes >= sizeof(uint64_t)) {
		own_bytes = field_u64(bytes, 0) + content_offset;
	}
	if (own_bytes > range->done_bytes)
		own_bytes = range->done_bytes;
	memset(bytes + own_bytes, 0, range->size - own_bytes);
	memset(bytes + sizeof(uint64_t), 0, content_offset - sizeof(uint64_t));
}

/*
 * Read the texts of an object, without their reference counts, which change all the time. Returns
 * 0, -ESRCH or -EPERM.
 */
static int read_texts(struct code_cache *cache, struct remote_memory *memory,
		      const struct code_fingerprint *fingerprint, struct code_texts *ret_texts)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	size_t start = 0;
	int err;

	/* One by one, so that a look caches them (sampler/look_memory.h). */
	for (unsigned int i = 0; i < NR_CODE_TEXTS; i++) {
		struct remote_range range = {
			.addr = text_addr(offsets, fingerprint, i),
			.buffer = ret_texts->bytes + start,
			.size = text_sizes[i].kept_bytes,
		};

		err = remote_memory_read_ranges(memory, &range, 1);
		if (err)
			return err;
		trim(offsets, i, &range);
		start += range.size;
	}
	ret_texts->bytecode_length = 0;
	if (!fingerprint->bytecode)
		return 0;
	err = remote_memory_read_u64(memory, fingerprint->bytecode + offsets->bytes.ob_size,
				     &ret_texts->bytecode_length);
	return err == -EFAULT ? 0 : err;
}

/*
 * A memory that holds the texts of a new code object. They are read ahead in one call, because a
 * program that creates and frees functions all the time leaves only microseconds between the copy
 * of a frame and the end of the object, and a dozen calls take longer. Or they are as the object's
 * own thread reported them (reported_code). Reads are served from here if possible, else from
 * inner.
 */
struct prefetched_code {
	struct remote_memory memory; /* for readers */
	struct remote_memory *inner; /* borrowed for as long as memory is read */
	bool is_reported; /* the ranges are of an earlier moment, of an object that may be gone */
	size_t nr_ranges; /* number of ranges; without is_reported 0 after a read of inner */
	/* After done_bytes of a range the object has ended, or its rest is missing. */
	struct remote_range ranges[NR_CODE_TEXTS + 2];
	uint8_t texts[PREFETCHED_TEXTS_BYTES];
	uint64_t bytecode_length;
	uint8_t object[CODE_MAX_BYTES];
};

/* The offset of the wanted range inside range; UINT64_MAX if it begins elsewhere. */
static uint64_t offset_in(const struct remote_range *range, const struct remote_range *wanted)
{
	const uint64_t offset = wanted->addr - range->addr;

	return offset <= range->done_bytes ? offset : UINT64_MAX;
}

/*
 * Serve a read from the ranges, as far as they could be read. Returns false if it is not in them.
 */
static bool serve_read(const struct prefetched_code *prefetched, struct remote_range *wanted)
{
	for (size_t i = 0; i < prefetched->nr_ranges; i++) {
		const struct remote_range *range = &prefetched->ranges[i];
		const uint64_t offset = offset_in(range, wanted);

		if (offset == UINT64_MAX || wanted->size > range->size - offset)
			continue;
		wanted->done_bytes = range->done_bytes - offset;
		if (wanted->done_bytes > wanted->size)
			wanted->done_bytes = wanted->size;
		memcpy(wanted->buffer, (const uint8_t *)range->buffer + offset, wanted->done_bytes);
		return true;
	}
	return false;
}

/* Whether the bytes just read continue a reported range, and agree with it where they overlap. */
static bool continues_range(const struct prefetched_code *prefetched,
			    const struct remote_range *read)
{
	bool is_begun = false;

	for (size_t i = 0; i < prefetched->nr_ranges; i++) {
		const struct remote_range *range = &prefetched->ranges[i];
		const uint64_t offset = offset_in(range, read);
		const uint8_t *reported = range->buffer;
		const uint8_t *bytes = read->buffer;

		if (offset == UINT64_MAX)
			continue;
		for (uint64_t k = offset; k < range->done_bytes && k - offset < read->done_bytes;
		     k++)
			/* A text's hash, after its length, may have been computed since. */
			if (k / sizeof(uint64_t) != 1 && reported[k] != bytes[k - offset])
				return false;
		is_begun |= offset < range->done_bytes;
	}
	return is_begun;
}

static int prefetched_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
				  size_t nr_ranges)
{
	struct prefetched_code *prefetched = (struct prefetched_code *)memory;
	size_t nr_served = 0;
	int err;

	while (nr_served < nr_ranges && serve_read(prefetched, &ranges[nr_served]))
		nr_served++;
	if (nr_served == nr_ranges)
		return 0;
	if (!prefetched->is_reported)
		prefetched->nr_ranges = 0;
	err = remote_memory_read_ranges(prefetched->inner, ranges, nr_ranges);
	for (size_t i = 0; !err && prefetched->is_reported && i < nr_ranges; i++)
		if (!continues_range(prefetched, &ranges[i]))
			ranges[i].done_bytes = 0;
	return err;
}

static void prefetched_begin(struct prefetched_code *prefetched, struct code_cache *cache,
			     bool is_reported)
{
	static const struct remote_memory_ops ops = {.read_ranges = prefetched_read_ranges};

	prefetched->memory.ops = &ops;
	prefetched->inner = cache->memory;
	prefetched->is_reported = is_reported;
	prefetched->nr_ranges = 0;
}

/* Add a range of an object, held in buffer or to be read into it. */
static void prefetched_add(struct prefetched_code *prefetched, remote_addr addr, void *buffer,
			   size_t size)
{
	prefetched->ranges[prefetched->nr_ranges++] =
		(struct remote_range){.addr = addr, .buffer = buffer, .size = size};
}

/*
 * Read ahead the texts of the object at object_addr, found by its fingerprint, and last the head of
 * the object itself: if that is unchanged, so is the rest. After the first read that must go to
 * inner all reads go there, so that later reads never return older bytes. Nothing is owned. Returns
 * 0, -ESRCH or -EPERM.
 */
static int prefetched_read(struct prefetched_code *prefetched, struct code_cache *cache,
			   remote_addr object_addr, const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	size_t start = 0;

	prefetched_begin(prefetched, cache, false);
	for (unsigned int i = 0; i < NR_CODE_TEXTS; i++) {
		const size_t size = text_sizes[i].prefetched_bytes;

		prefetched_add(prefetched, text_addr(offsets, fingerprint, i),
			       prefetched->texts + start, size);
		start += size;
	}
	if (fingerprint->bytecode)
		prefetched_add(prefetched, fingerprint->bytecode + offsets->bytes.ob_size,
			       &prefetched->bytecode_length, sizeof(prefetched->bytecode_length));
	prefetched_add(prefetched, object_addr, prefetched->object, code_head_bytes(offsets));
	return remote_memory_read_ranges(prefetched->inner, prefetched->ranges,
					 prefetched->nr_ranges);
}

/* Add a reported part of an object; it needs no read. */
static void prefetched_add_reported(struct prefetched_code *prefetched, remote_addr addr,
				    const void *bytes, size_t nr_bytes, bool is_whole)
{
	prefetched_add(prefetched, addr, (void *)bytes, is_whole ? SIZE_MAX : nr_bytes);
	prefetched->ranges[prefetched->nr_ranges - 1].done_bytes = nr_bytes;
}

/*
 * The same for an object as reported. The continuation of a reported text is read from inner; it
 * counts as missing (-EFAULT) unless it agrees with the reported bytes. reported is borrowed for as
 * long as prefetched is used.
 */
static void prefetched_from_report(struct prefetched_code *prefetched, struct code_cache *cache,
				   const struct code_fingerprint *fingerprint,
				   const struct reported_code *reported)
{
	const struct py_offsets *offsets = &cache->build->offsets;

	prefetched_begin(prefetched, cache, true);
	for (unsigned int i = 0; i < NR_CODE_TEXTS; i++)
		prefetched_add_reported(prefetched, text_addr(offsets, fingerprint, i),
					reported->texts[i].bytes, reported->texts[i].nr_bytes,
					reported->texts[i].is_whole);
	if (fingerprint->bytecode)
		prefetched_add_reported(prefetched, fingerprint->bytecode + offsets->bytes.ob_size,
					&reported->bytecode_length,
					sizeof(reported->bytecode_length), false);
	prefetched_add_reported(prefetched, reported->addr, reported->object,
				code_head_bytes(offsets), false);
}

/* Whether the object just read is the one of the entry. */
static bool is_same(const struct code *code, const struct code_fingerprint *fingerprint,
		    const struct code_texts *texts)
{
	return memcmp(fingerprint, &code->fingerprint, sizeof(*fingerprint)) == 0 &&
	       (fingerprint->version || memcmp(texts, &code->texts, sizeof(*texts)) == 0);
}

/* Give up an entry's lines: the table is too large, or the function stands for many. */
static void forget_lines(struct code *code)
{
	free(code->lines.table);
	code->lines.table = NULL;
	code->lines.table_bytes = 0;
	code->lines.nr_units = 0;
}

/*
 * Replace before_bytes by bytes in the size of an entry's tables. Returns 0, or -E2BIG if there is
 * no room.
 */
static int claim_bytes(struct code_cache *cache, struct code *code, size_t before_bytes,
		       size_t bytes)
{
	code->table_bytes -= before_bytes;
	cache->table_bytes -= before_bytes;
	if (bytes > CODE_TABLES_MAX_BYTES - cache->table_bytes) {
		cache->tables_full = true;
		return -E2BIG;
	}
	code->table_bytes += bytes;
	cache->table_bytes += bytes;
	return 0;
}

/*
 * Count the tables of code, including lines that are decoded later. Returns 0, or -E2BIG if there
 * is no room.
 */
static int claim_tables(struct code_cache *cache, struct code *code)
{
	size_t nr_units = (code->bytecode.end_addr - code->bytecode.start_addr) / 2;
	size_t bytes;

	code->lines.nr_units =
		linetable_max_units(cache->build->traits.linetable_format, code->lines.table_bytes);
	if (code->lines.nr_units > nr_units)
		code->lines.nr_units = nr_units;
	if (!code->lines.table)
		code->lines.nr_units = 0;
	bytes = code->lines.table_bytes + code->lines.nr_units * sizeof(*code->lines.by_unit);
	if (bytes > LINETABLE_MAX_BYTES) {
		forget_lines(code);
		bytes = 0;
	}
	return claim_bytes(cache, code, 0, bytes);
}

/* Set where the instructions are, and the size of frames on data stacks. Returns 0, -EBADMSG, … */
static int fill_bytecode(struct code_cache *cache, struct remote_memory *memory, struct code *code,
			 const uint8_t *object, const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	uint64_t frame_words = fingerprint->framesize;
	uint64_t code_bytes, stack_offset;
	int err = 0;

	if (fingerprint->bytecode) {
		code->bytecode.start_addr = fingerprint->bytecode + offsets->bytes.ob_sval;
		err = remote_memory_read_u64(memory, fingerprint->bytecode + offsets->bytes.ob_size,
					     &code_bytes);
	} else {
		code->bytecode.start_addr = code->addr + offsets->code.code_adaptive;
		if (__builtin_mul_overflow(fingerprint->ob_size, 2, &code_bytes))
			err = -EBADMSG;
	}
	if (err)
		return err;
	if (code_bytes > CODE_MAX_BYTECODE_BYTES)
		return -EBADMSG;
	code->bytecode.end_addr = code->bytecode.start_addr + code_bytes;
	if (cache->build->traits.frames_on_heap)
		return 0;
	code->bytecode.first_traceable_addr =
		code->bytecode.start_addr + 2ull * fingerprint->first_traceable;
	if (offsets->code.framesize == OFFSET_ABSENT)
		frame_words = (uint64_t)field_u32(object, offsets->code.nlocalsplus) +
			      field_u32(object, offsets->code.stacksize) +
			      cache->build->traits.extra_frame_words;
	if (!frame_words || frame_words > FRAME_SIZE_MAX_BYTES / sizeof(uint64_t) ||
	    frame_words * sizeof(uint64_t) < offsets->frame.localsplus)
		return -EBADMSG;
	code->frame_size_bytes = (uint32_t)(frame_words * sizeof(uint64_t));
	stack_offset = offsets->frame.localsplus +
		       field_u32(object, offsets->code.nlocalsplus) * sizeof(uint64_t);
	code->stack_offset = stack_offset < code->frame_size_bytes ? (uint32_t)stack_offset
								   : code->frame_size_bytes;
	return 0;
}

/* Whether err is a missing piece of a core file, for which a placeholder is used. */
static bool is_gap(const struct code_cache *cache, int err)
{
	return cache->is_core && (err == -EFAULT || err == -EBADMSG);
}

/* Read a text of a code object, or use a placeholder. */
static int read_text(struct code_cache *cache, struct remote_memory *memory, remote_addr addr,
		     const char *missing, struct code *code, char **ret_text)
{
	int err = string_read(memory, &cache->build->offsets, addr, ret_text);

	if (!is_gap(cache, err))
		return err;
	code->has_gaps = true;
	*ret_text = strdup(missing);
	return *ret_text ? 0 : -ENOMEM;
}

/* Set the name, table and numbers of code, all read from memory. Returns 0, -EBADMSG, … */
static int code_fill(struct code_cache *cache, struct remote_memory *memory, struct code *code,
		     const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	cleanup_free char *qualname = NULL;
	cleanup_free char *path = NULL;
	int err = read_texts(cache, memory, fingerprint, &code->texts);

	if (!err)
		err = read_text(cache, memory, fingerprint->text_addrs[CODE_QUALNAME],
				"<name not in the core>", code, &qualname);
	if (!err)
		err = read_text(cache, memory, fingerprint->text_addrs[CODE_FILENAME],
				"<path not in the core>", code, &path);
	if (!err)
		err = bytes_read(memory, offsets, fingerprint->text_addrs[CODE_LINETABLE],
				 LINETABLE_MAX_BYTES, &code->lines.table, &code->lines.table_bytes);
	if (err && err != -E2BIG && !is_gap(cache, err))
		return err;
	code->has_gaps |= is_gap(cache, err);
	err = claim_tables(cache, code);
	if (err)
		return err;
	code->function = function_table_get(cache->functions, FUNCTION_PYTHON, qualname, path,
					    (int32_t)fingerprint->first_line);
	if (!code->function)
		return -ENOMEM;
	if (function_is_overflow(code->function))
		forget_lines(code);
	code->fingerprint = *fingerprint;
	return 0;
}

struct code *code_cache_missing(struct code_cache *cache)
{
	if (!cache->missing.function) {
		cache->missing.is_not_code = true;
		cache->missing.has_gaps = true;
		cache->missing.function = function_table_get(
			cache->functions, FUNCTION_PYTHON, "<code object not in the core>", "", 0);
	}
	return cache->missing.function ? &cache->missing : NULL;
}

/* Store the object that was read at code->addr in the entry. Returns 0, -EAGAIN, -EBADMSG, … */
static int load_object(struct code_cache *cache, struct remote_memory *memory, struct code *code,
		       const uint8_t *object, const struct code_fingerprint *fingerprint,
		       const struct code_clock *clock)
{
	enum { MAX_YOUNGER = 1 << 16 };
	uint8_t later_object[CODE_MAX_BYTES];
	struct code_fingerprint later;
	int err = fill_bytecode(cache, memory, code, object, fingerprint);

	if (!err)
		err = code_fill(cache, memory, code, fingerprint);
	if (!err)
		err = read_object(cache, memory, code->addr, later_object, &later);
	if (!err && memcmp(fingerprint, &later, sizeof(later)) != 0)
		return -EAGAIN;
	/*
	 * A version far above the counter shows that the counter is not where the table has it. A
	 * version a little above is newer than the counter: the look is dropped.
	 */
	if (!err && clock->has_next_version && clock->next_version &&
	    fingerprint->version >= clock->next_version &&
	    fingerprint->version - clock->next_version > MAX_YOUNGER)
		cache->next_version_unusable = true;
	return err;
}

/*
 * Read an entry's object once more. If it is another one now, load that. After any error the entry
 * is "not a code object".
 */
static int code_check(struct code_cache *cache, struct code *code, const struct code_clock *clock)
{
	uint8_t object[CODE_MAX_BYTES];
	struct code_fingerprint fingerprint;
	struct prefetched_code prefetched;
	struct code_texts texts;
	int err = read_object(cache, cache->memory, code->addr, object, &fingerprint);

	if (!err && code->function && !fingerprint.version)
		err = read_texts(cache, cache->memory, &fingerprint, &texts);
	if (!err && code->function && is_same(code, &fingerprint, &texts)) {
		code->checked = *clock;
		return 0;
	}
	code_forget(cache, code);
	if (!err)
		err = prefetched_read(&prefetched, cache, code->addr, &fingerprint);
	if (!err)
		err = load_object(cache, &prefetched.memory, code, object, &fingerprint, clock);
	if (err)
		code_forget(cache, code);
	/* That there is no code object any more is remembered as well. */
	if (!err || err == -EBADMSG || err == -EFAULT)
		code->checked = *clock;
	return err;
}

int code_entry_get(struct addr_map *map, uint32_t max_entries, uint32_t *nr_new, remote_addr addr,
		   struct code **ret_code)
{
	struct code *code = addr_map_get(map, addr);

	if (!code) {
		if (map->nr_used >= max_entries)
			return -E2BIG;
		code = calloc(1, sizeof(*code));
		if (!code || addr_map_put(map, addr, code)) {
			free(code);
			return -ENOMEM;
		}
		code->addr = addr;
		++*nr_new;
	}
	*ret_code = code;
	return 0;
}

int code_cache_get(struct code_cache *cache, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code)
{
	struct code *code;
	int err = code_entry_get(&cache->codes, MAX_CODES, &cache->nr_new, addr, &code);

	if (err)
		return err;
	code->in_use = code->nr_loads > 0;
	if (code->nr_loads && code_cache_is_current(cache, code, clock))
		err = code->function ? 0 : -EBADMSG;
	else
		err = code_check(cache, code, clock);
	if (!err)
		*ret_code = code;
	return err;
}

int code_cache_add_reported(struct code_cache *cache, const struct reported_code *reported,
			    const struct code_clock *clock)
{
	struct code_fingerprint fingerprint;
	struct prefetched_code prefetched;
	struct code_texts texts;
	struct code *code;
	bool is_missing = false;
	int err = code_entry_get(&cache->codes, MAX_CODES, &cache->nr_new, reported->addr, &code);

	if (err)
		return err;
	err = make_fingerprint(cache, reported->object, &fingerprint);
	for (unsigned int i = 0; !err && i < NR_CODE_TEXTS; i++) {
		if (reported->texts[i].nr_bytes)
			continue;
		/* It was not in memory: fault it in for the next time. */
		(void)remote_memory_fault_in(cache->memory, fingerprint.text_addrs[i]);
		is_missing = true;
	}
	if (is_missing)
		return -EAGAIN;
	if (!err) {
		prefetched_from_report(&prefetched, cache, &fingerprint, reported);
		err = read_texts(cache, &prefetched.memory, &fingerprint, &texts);
	}
	if (err || !code->function || !is_same(code, &fingerprint, &texts)) {
		code_forget(cache, code);
		if (!err)
			err = load_object(cache, &prefetched.memory, code, reported->object,
					  &fingerprint, clock);
		if (err)
			code_forget(cache, code);
	}
	/* That it is no code object is remembered as well. */
	if (!err || err == -EBADMSG) {
		code->checked = *clock;
		code->identity = reported->identity;
	}
	if (!err)
		code->in_use = true;
	return err;
}

int code_cache_get_reported(struct code_cache *cache, remote_addr addr, uint64_t identity,
			    struct code **ret_code)
{
	struct code *code = addr_map_get(&cache->codes, addr);

	if (!identity)
		return -EBADMSG;
	if (code && code->identity == identity) {
		if (!code->function)
			return -EBADMSG;
		code->in_use = true;
		*ret_code = code;
		return 0;
	}
	if (cache->reporter)
		cache->reporter->forget(cache->reporter, addr);
	return -EAGAIN;
}

/*
 * Where a frame stands. In free-threaded builds since 3.14 each thread but the first that runs a
 * code object has its own copy of the bytecode, and instr_ptr of its frames points into it. A copy
 * is as long as the original and has the same instructions at the same offsets (specialised
 * separately). So an address in a copy corresponds to one in the code object, to which tables
 * refer.
 *
 * Source: CPython 3.14 and 3.15 Include/cpython/code.h (_PyCodeArray), Objects/codeobject.c
 * (create_tlbc_lock_held).
 */

static int compare_addrs(const void *a, const void *b)
{
	remote_addr x = *(const remote_addr *)a;
	remote_addr y = *(const remote_addr *)b;

	return (x > y) - (x < y);
}

/*
 * Whether an address is in the object's own bytecode. 3.11's prev_instr begins one unit before it.
 */
static bool code_holds(const struct code *code, remote_addr instr_addr)
{
	return instr_addr + 2 >= code->bytecode.start_addr && instr_addr < code->bytecode.end_addr;
}

bool code_known_place(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr)
{
	const struct code_copies *copies = &code->bytecode.copies;
	size_t low = 0;
	size_t high = copies->nr;
	uint64_t offset;

	if (code_holds(code, instr_addr)) {
		*ret_addr = instr_addr;
		return true;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (copies->starts[middle] <= instr_addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* Entries of threads without a copy are NULL. */
	if (!low || !copies->starts[low - 1])
		return false;
	offset = instr_addr - copies->starts[low - 1];
	if (offset >= code->bytecode.end_addr - code->bytecode.start_addr)
		return false;
	*ret_addr = code->bytecode.start_addr + offset;
	return true;
}

/*
 * Read the addresses of the copies, at most once a tick, and count their size; the old ones are
 * forgotten. Returns 0; -ENOENT (there is no plausible array, or it was read in this tick); -E2BIG,
 * -ENOMEM, -ESRCH, -EPERM.
 */
static int renew_copies(struct code_cache *cache, struct code *code, const struct code_clock *clock)
{
	struct code_copies *copies = &code->bytecode.copies;
	const size_t before_bytes = copies->nr * sizeof(*copies->starts);
	remote_addr array_addr;
	uint64_t nr = 0;
	int err;

	if (copies->tick == clock->tick)
		return -ENOENT;
	free(copies->starts);
	*copies = (struct code_copies){.tick = clock->tick, .generation = clock->tlbc_generation};
	err = remote_memory_read_u64(cache->memory, code->addr + cache->build->tlbc.code_array,
				     &array_addr);
	if (!err && array_addr % sizeof(uint64_t))
		err = -EBADMSG;
	if (!err)
		err = remote_memory_read_u64(cache->memory, array_addr + CODE_ARRAY_SIZE, &nr);
	if (!err && (!nr || nr > INT32_MAX))
		err = -EBADMSG;
	if (nr > MAX_CODE_COPIES)
		nr = MAX_CODE_COPIES;
	if (!err) {
		copies->starts = malloc(nr * sizeof(*copies->starts));
		err = copies->starts
			      ? remote_memory_read(cache->memory, array_addr + CODE_ARRAY_ENTRIES,
						   copies->starts, nr * sizeof(*copies->starts))
			      : -ENOMEM;
	}
	if (!err) {
		copies->nr = (size_t)nr;
		qsort(copies->starts, copies->nr, sizeof(*copies->starts), compare_addrs);
	}
	if (claim_bytes(cache, code, before_bytes, copies->nr * sizeof(*copies->starts))) {
		free(copies->starts);
		*copies = (struct code_copies){0};
		return -E2BIG;
	}
	return err == -EBADMSG || err == -EFAULT ? -ENOENT : err;
}

int code_place(struct code_cache *cache, struct code *code, const struct code_clock *clock,
	       remote_addr instr_addr, remote_addr *ret_addr)
{
	int err;

	if ((code_holds(code, instr_addr) ||
	     code->bytecode.copies.generation == clock->tlbc_generation) &&
	    code_known_place(code, instr_addr, ret_addr))
		return 0;
	if (!cache->build->tlbc.code_array)
		return -ENOENT;
	err = renew_copies(cache, code, clock);
	if (err)
		return err;
	return code_known_place(code, instr_addr, ret_addr) ? 0 : -ENOENT;
}

static struct linetable table_of(const struct code_cache *cache, const struct code *code)
{
	return (struct linetable){
		.format = cache->build->traits.linetable_format,
		.bytes = code->lines.table,
		.nr_bytes = code->lines.table_bytes,
		.first_line = code->function->first_line,
	};
}

struct linetable_position code_position(const struct code_cache *cache, const struct code *code,
					remote_addr instr_addr)
{
	const struct linetable table = table_of(cache, code);

	if (!code->lines.table || !code_known_place(code, instr_addr, &instr_addr))
		return (struct linetable_position){.column = -1, .end_line = -1, .end_column = -1};
	return linetable_position(&table, (int32_t)(instr_addr - code->bytecode.start_addr));
}

int32_t code_line(const struct code_cache *cache, struct code *code, remote_addr instr_addr)
{
	size_t unit;

	if (code->is_not_code)
		return code->function->first_line;
	if (!code_known_place(code, instr_addr, &instr_addr))
		return 0;
	unit = (instr_addr - code->bytecode.start_addr) / 2;
	if (instr_addr < code->bytecode.start_addr)
		return code_position(cache, code, instr_addr).line;
	if (unit >= code->lines.nr_units)
		return 0;
	if (!code->lines.by_unit) {
		const struct linetable table = table_of(cache, code);

		code->lines.by_unit = malloc(code->lines.nr_units * sizeof(*code->lines.by_unit));
		if (!code->lines.by_unit)
			return code_position(cache, code, instr_addr).line;
		linetable_lines(&table, code->lines.by_unit, code->lines.nr_units);
	}
	return code->lines.by_unit[unit];
}
