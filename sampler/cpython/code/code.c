/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/code/code_ahead.h"
#include "sampler/cpython/code/executable.h"
#include "sampler/cpython/objects/strings.h"

/* ob_size is a number of code units; CPython's jumps cannot reach further than this. */
#define CODE_MAX_BYTECODE_BYTES (1u << 30)

/* A frame is at most a chunk of this size; CPython's co_stacksize and locals are ints. */
#define FRAME_SIZE_MAX_BYTES (64u << 20)

void code_cache_init(struct code_cache *cache, struct remote_memory *memory,
		     const struct py_build *build)
{
	*cache = (struct code_cache){
		.memory = memory,
		.build = build,
		.functions.max_bytes = FUNCTIONS_MAX_BYTES,
	};
}

void code_forget(struct code_cache *cache, struct code *code)
{
	cache->table_bytes -= code->table_bytes;
	cache->nr_cleared += code->function != NULL;
	if (code->identity && cache->teller)
		cache->teller->forget(cache->teller, code->addr);
	free(code->linetable);
	free(code->lines);
	free(code->copies.starts);
	*code = (struct code){
		.addr = code->addr,
		.nr_loads = code->nr_loads + 1,
		.in_use = code->in_use,
	};
}

static void code_destroy(struct code_cache *cache, struct code *code)
{
	if (!code)
		return;
	code_forget(cache, code);
	free(code);
}

/* Destroy all entries of a table. */
static void destroy_all(struct code_cache *cache, struct addr_map *map)
{
	for (size_t i = 0; i < map->nr_slots; i++)
		code_destroy(cache, map->slots[i].value);
	addr_map_done(map);
}

void code_cache_done(struct code_cache *cache)
{
	if (!cache)
		return;
	destroy_all(cache, &cache->codes);
	destroy_all(cache, &cache->executables);
	function_table_done(&cache->functions);
}

bool code_cache_relieve(struct code_cache *cache)
{
	if (!cache->tables_full)
		return false;
	for (size_t i = 0; i < cache->codes.nr_slots; i++)
		if (cache->codes.slots[i].value)
			code_forget(cache, cache->codes.slots[i].value);
	cache->tables_full = false;
	return true;
}

bool code_cache_is_due(const struct code_cache *cache)
{
	return cache->nr_new >= CODES_OF_A_TURN ||
	       cache->nr_new_executables >= EXECUTABLES_OF_A_TURN;
}

/* Drop the entries of a table that are not in use. */
static void drop_unused(struct code_cache *cache, struct addr_map *map)
{
	struct addr_map used = {0};

	for (size_t i = 0; i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && code->in_use && addr_map_put(&used, code->addr, code)) {
			addr_map_done(&used);
			return;
		}
	}
	for (size_t i = 0; i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && !code->in_use)
			code_destroy(cache, code);
		else if (code)
			code->in_use = false;
	}
	addr_map_done(map);
	*map = used;
}

void code_cache_drop_unused(struct code_cache *cache)
{
	drop_unused(cache, &cache->executables);
	cache->nr_new_executables = 0;
	if (cache->nr_new < CODES_OF_A_TURN)
		return;
	drop_unused(cache, &cache->codes);
	cache->nr_new = 0;
}

/* Whether type_addr is PyCode_Type: by address once it was told by name. */
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

static uint32_t optional_u32(const uint8_t *object, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u32(object, offset);
}

static uint64_t optional_u64(const uint8_t *object, uint32_t offset)
{
	return offset == OFFSET_ABSENT ? 0 : field_u64(object, offset);
}

/* The fingerprint of an object that was read. -EBADMSG if it is no code object. */
static int take_fingerprint(struct code_cache *cache, const uint8_t *object,
			    struct code_fingerprint *ret_fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;

	if (!is_code_type(cache, field_u64(object, offsets->object.ob_type)))
		return -EBADMSG;
	*ret_fingerprint = (struct code_fingerprint){
		.filename = field_u64(object, offsets->code.filename),
		.qualname = field_u64(object, offsets->code.qualname),
		.linetable = field_u64(object, offsets->code.linetable),
		.bytecode = optional_u64(object, offsets->code.bytecode),
		.ob_size = optional_u64(object, offsets->code.ob_size),
		.first_line = field_u32(object, offsets->code.firstlineno),
		.framesize = optional_u32(object, offsets->code.framesize),
		.version = optional_u32(object, offsets->code.version),
		.first_traceable = optional_u32(object, offsets->code.firsttraceable),
	};
	return 0;
}

/* Read the head of the object at addr. 0; -EBADMSG if it is no code object; -EFAULT… */
static int read_object(struct code_cache *cache, struct remote_memory *memory, remote_addr addr,
		       uint8_t object[CODE_MAX_BYTES], struct code_fingerprint *ret_fingerprint)
{
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(memory, addr, object, code_head_bytes(&cache->build->offsets));
	return err ? err : take_fingerprint(cache, object, ret_fingerprint);
}

/*
 * Of an object that was read from its length on, of which own_bytes are its own and those from
 * content_offset on its contents: clear what is behind it, and what may change in its head.
 */
static void trim(const struct remote_range *range, size_t own_bytes, uint32_t content_offset)
{
	uint8_t *bytes = range->buffer;

	memset(bytes + own_bytes, 0, range->size - own_bytes);
	memset(bytes + sizeof(uint64_t), 0, content_offset - sizeof(uint64_t));
}

static void trim_bytes(const struct py_offsets *offsets, const struct remote_range *range)
{
	const uint32_t content_offset = offsets->bytes.ob_sval - offsets->bytes.ob_size;
	uint64_t own_bytes = 0;

	if (range->done_bytes >= sizeof(uint64_t))
		own_bytes = field_u64(range->buffer, 0) + content_offset;
	trim(range, own_bytes < range->done_bytes ? own_bytes : range->done_bytes, content_offset);
}

static void trim_string(const struct py_offsets *offsets, const struct remote_range *range)
{
	trim(range, string_own_bytes(offsets, range->buffer, range->done_bytes),
	     string_content_offset(offsets, range->buffer, range->done_bytes));
}

/*
 * Read what an object names, behind the reference counts, which change all the time. 0; -ESRCH,
 * -EPERM.
 */
static int read_texts(struct code_cache *cache, struct remote_memory *memory,
		      const struct code_fingerprint *fingerprint, struct code_texts *ret_texts)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	struct remote_range ranges[] = {
		{.addr = fingerprint->qualname + offsets->unicode.length,
		 .buffer = ret_texts->qualname,
		 .size = sizeof(ret_texts->qualname)},
		{.addr = fingerprint->filename + offsets->unicode.length,
		 .buffer = ret_texts->filename,
		 .size = sizeof(ret_texts->filename)},
		{.addr = fingerprint->linetable + offsets->bytes.ob_size,
		 .buffer = ret_texts->linetable,
		 .size = sizeof(ret_texts->linetable)},
	};

	int err;

	/* One by one, so that a look keeps them (sampler/look_memory.h). */
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		err = remote_memory_read_ranges(memory, &ranges[i], 1);
		if (err)
			return err;
	}
	trim_string(offsets, &ranges[0]);
	trim_string(offsets, &ranges[1]);
	trim_bytes(offsets, &ranges[2]);
	ret_texts->bytecode_length = 0;
	if (!fingerprint->bytecode)
		return 0;
	err = remote_memory_read_u64(memory, fingerprint->bytecode + offsets->bytes.ob_size,
				     &ret_texts->bytecode_length);
	return err == -EFAULT ? 0 : err;
}

/* Whether what was read is the object of an entry. */
static bool is_same(const struct code *code, const struct code_fingerprint *fingerprint,
		    const struct code_texts *texts)
{
	return memcmp(fingerprint, &code->fingerprint, sizeof(*fingerprint)) == 0 &&
	       (fingerprint->version || memcmp(texts, &code->texts, sizeof(*texts)) == 0);
}

/* The frame's size, or 0 for a number that cannot be. */
static uint32_t frame_size(const struct py_build *build, const uint8_t *object,
			   const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &build->offsets;
	uint64_t words = fingerprint->framesize;

	if (offsets->code.framesize == OFFSET_ABSENT)
		words = (uint64_t)field_u32(object, offsets->code.nlocalsplus) +
			field_u32(object, offsets->code.stacksize) +
			build->traits.extra_frame_words;
	if (words > FRAME_SIZE_MAX_BYTES / sizeof(uint64_t) ||
	    words * sizeof(uint64_t) < offsets->frame.localsplus)
		return 0;
	return (uint32_t)(words * sizeof(uint64_t));
}

/* Have no lines: the table is too large, or the function stands for many. */
static void forget_lines(struct code *code)
{
	free(code->linetable);
	code->linetable = NULL;
	code->linetable_bytes = 0;
	code->nr_lines = 0;
}

/*
 * Count what the tables of code take, the lines that are decoded later as well. 0;
 * -E2BIG: there is no room.
 */
static int claim_tables(struct code_cache *cache, struct code *code)
{
	size_t nr_units = (code->code_end_addr - code->code_start_addr) / 2;
	size_t bytes;

	code->nr_lines =
		linetable_max_units(cache->build->traits.linetable_format, code->linetable_bytes);
	if (code->nr_lines > nr_units)
		code->nr_lines = nr_units;
	if (!code->linetable)
		code->nr_lines = 0;
	bytes = code->linetable_bytes + code->nr_lines * sizeof(*code->lines);
	if (bytes > LINETABLE_MAX_BYTES) {
		forget_lines(code);
		bytes = 0;
	}
	if (bytes > CODE_TABLES_MAX_BYTES - cache->table_bytes) {
		cache->tables_full = true;
		return -E2BIG;
	}
	code->table_bytes = bytes;
	cache->table_bytes += bytes;
	return 0;
}

/* Where code's instructions lie, and the size of its frames on a data stack. 0, -EBADMSG, … */
static int fill_bytecode(struct code_cache *cache, struct remote_memory *memory, struct code *code,
			 const uint8_t *object, const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	uint64_t code_bytes, stack_offset;
	int err = 0;

	if (fingerprint->bytecode) {
		code->code_start_addr = fingerprint->bytecode + offsets->bytes.ob_sval;
		err = remote_memory_read_u64(memory, fingerprint->bytecode + offsets->bytes.ob_size,
					     &code_bytes);
	} else {
		code->code_start_addr = code->addr + offsets->code.code_adaptive;
		if (__builtin_mul_overflow(fingerprint->ob_size, 2, &code_bytes))
			err = -EBADMSG;
	}
	if (err)
		return err;
	if (code_bytes > CODE_MAX_BYTECODE_BYTES)
		return -EBADMSG;
	code->code_end_addr = code->code_start_addr + code_bytes;
	if (cache->build->traits.frames_on_heap)
		return 0;
	code->first_traceable_addr = code->code_start_addr + 2ull * fingerprint->first_traceable;
	code->frame_size_bytes = frame_size(cache->build, object, fingerprint);
	if (!code->frame_size_bytes)
		return -EBADMSG;
	stack_offset = offsets->frame.localsplus +
		       field_u32(object, offsets->code.nlocalsplus) * sizeof(uint64_t);
	code->stack_offset = stack_offset < code->frame_size_bytes ? (uint32_t)stack_offset
								   : code->frame_size_bytes;
	return 0;
}

/* Whether it is no error that a piece cannot be read: then what stands for it is known. */
static bool is_gap(const struct code_cache *cache, int err)
{
	return cache->is_still && (err == -EFAULT || err == -EBADMSG);
}

/* Read a text that a code object names, or have what stands for it. */
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

/* Give code its name, table and numbers, all read from memory. 0, -EBADMSG, … */
static int code_fill(struct code_cache *cache, struct remote_memory *memory, struct code *code,
		     const struct code_fingerprint *fingerprint)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	cleanup_free char *qualname = NULL;
	cleanup_free char *path = NULL;
	int err = read_texts(cache, memory, fingerprint, &code->texts);

	if (!err)
		err = read_text(cache, memory, fingerprint->qualname, "<name not in the core>",
				code, &qualname);
	if (!err)
		err = read_text(cache, memory, fingerprint->filename, "<path not in the core>",
				code, &path);
	if (!err)
		err = bytes_read(memory, offsets, fingerprint->linetable, LINETABLE_MAX_BYTES,
				 &code->linetable, &code->linetable_bytes);
	if (err && err != -E2BIG && !is_gap(cache, err))
		return err;
	code->has_gaps |= is_gap(cache, err);
	err = claim_tables(cache, code);
	if (err)
		return err;
	code->function = function_table_get(&cache->functions, FUNCTION_PYTHON, qualname, path,
					    (int32_t)fingerprint->first_line);
	if (!code->function)
		return -ENOMEM;
	if (function_is_other(code->function))
		forget_lines(code);
	code->fingerprint = *fingerprint;
	return 0;
}

struct code *code_cache_missing(struct code_cache *cache)
{
	if (!cache->missing.function) {
		cache->missing.foreign = true;
		cache->missing.has_gaps = true;
		cache->missing.function = function_table_get(
			&cache->functions, FUNCTION_PYTHON, "<code object not in the core>", "", 0);
	}
	return cache->missing.function ? &cache->missing : NULL;
}

/*
 * A version that is far above the counter shows that the counter is not where it was thought to
 * be. One that is a little above is younger than the counter: the look did not hold.
 */
static void judge_counter(struct code_cache *cache, uint32_t version,
			  const struct code_clock *clock)
{
	enum { MAX_YOUNGER = 1 << 16 };

	if (clock->has_next_version && clock->next_version && version >= clock->next_version &&
	    version - clock->next_version > MAX_YOUNGER)
		cache->next_version_unusable = true;
}

/* Take the object that was read from memory at code->addr for the entry. 0, -EAGAIN, -EBADMSG, … */
static int take_object(struct code_cache *cache, struct remote_memory *memory, struct code *code,
		       const uint8_t *object, const struct code_fingerprint *fingerprint,
		       const struct code_clock *clock)
{
	uint8_t later_object[CODE_MAX_BYTES];
	struct code_fingerprint later;
	int err = fill_bytecode(cache, memory, code, object, fingerprint);

	if (!err)
		err = code_fill(cache, memory, code, fingerprint);
	if (!err)
		err = read_object(cache, memory, code->addr, later_object, &later);
	if (!err && memcmp(fingerprint, &later, sizeof(later)) != 0)
		return -EAGAIN;
	if (!err)
		judge_counter(cache, fingerprint->version, clock);
	return err;
}

/*
 * Whether the entry still holds by its object read once more; else take what is there. On
 * any error the entry says "not a code object".
 */
static int code_check(struct code_cache *cache, struct code *code, const struct code_clock *clock)
{
	uint8_t object[CODE_MAX_BYTES];
	struct code_fingerprint fingerprint;
	struct code_ahead ahead;
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
		err = code_ahead_init(&ahead, cache->memory, &cache->build->offsets, code->addr,
				      &fingerprint);
	if (!err)
		err = take_object(cache, &ahead.memory, code, object, &fingerprint, clock);
	if (err)
		code_forget(cache, code);
	/* That there is no code object any more is worth knowing, too. */
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
	if (code->nr_loads && code_cache_holds(cache, code, clock))
		err = code->function ? 0 : -EBADMSG;
	else
		err = code_check(cache, code, clock);
	if (!err)
		*ret_code = code;
	return err;
}

/* A text that was not told because it was not in memory: have it there for the next time. */
static void fault_in(struct code_cache *cache, const struct told_text *text, remote_addr addr)
{
	if (!text->nr_bytes)
		(void)remote_memory_fault_in(cache->memory, addr);
}

int code_cache_tell(struct code_cache *cache, const struct told_code *told,
		    const struct code_clock *clock)
{
	struct code_fingerprint fingerprint;
	struct code_ahead ahead;
	struct code_texts texts;
	struct code *code;
	int err = code_entry_get(&cache->codes, MAX_CODES, &cache->nr_new, told->addr, &code);

	if (err)
		return err;
	err = take_fingerprint(cache, told->object, &fingerprint);
	if (!err &&
	    (!told->qualname.nr_bytes || !told->filename.nr_bytes || !told->linetable.nr_bytes)) {
		fault_in(cache, &told->qualname, fingerprint.qualname);
		fault_in(cache, &told->filename, fingerprint.filename);
		fault_in(cache, &told->linetable, fingerprint.linetable);
		return -EAGAIN;
	}
	if (!err) {
		code_ahead_take(&ahead, cache->memory, &cache->build->offsets, &fingerprint, told);
		err = read_texts(cache, &ahead.memory, &fingerprint, &texts);
	}
	if (err || !code->function || !is_same(code, &fingerprint, &texts)) {
		code_forget(cache, code);
		if (!err)
			err = take_object(cache, &ahead.memory, code, told->object, &fingerprint,
					  clock);
		if (err)
			code_forget(cache, code);
	}
	/* That it is none is known, too. */
	if (!err || err == -EBADMSG) {
		code->checked = *clock;
		code->identity = told->identity;
	}
	if (!err)
		code->in_use = true;
	return err;
}

int code_cache_get_told(struct code_cache *cache, remote_addr addr, uint64_t identity,
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
	if (cache->teller)
		cache->teller->forget(cache->teller, addr);
	return -EAGAIN;
}
