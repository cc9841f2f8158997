/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/build_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/objects/object.h"

/* A field in use and the bounds for it. */
struct field {
	uint32_t offset;
	uint32_t width;
	uint32_t end; /* of the part of the struct that is read, or of the struct */
	uint32_t buffer_size;
};

/* Whether every field is absent, or aligned and within its bounds. */
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

/* The collector's struct is inside another one, the interpreter's or the runtime's. */
static bool collector_consistent(const struct py_offsets *o)
{
	const bool is_own = o->interpreter.gc != OFFSET_ABSENT;
	const uint32_t start = is_own ? o->interpreter.gc : o->runtime.gc;
	const uint32_t size = is_own ? o->interpreter.size : o->runtime.size;
	const struct field fields[] = {
		{start, 8, size, STRUCT_MAX_BYTES},
		{o->gc.collecting, 4, size - start, STRUCT_MAX_BYTES},
		{o->gc.frame, 8, size - start, STRUCT_MAX_BYTES},
	};

	return start == OFFSET_ABSENT || fields_fit(fields, sizeof(fields) / sizeof(*fields));
}

/* How many bytes of each field are read at once; OFFSET_ABSENT: not read as a number. */
static const uint32_t widths[NR_OFFSETS] = {
#define ROW(of, field, width, cells, truth) [OFFSET_INDEX(of, field)] = (width),
#include "sampler/cpython/layout/offsets.def"
};

/* The fields of a struct, the end that bounds them, and the size of the buffer. */
struct part {
	size_t start, size; /* in struct py_offsets */
	uint32_t end, buffer_size;
};

#define PART(of) offsetof(struct py_offsets, of), sizeof(((struct py_offsets *)0)->of)

static bool parts_fit(const struct py_offsets *offsets, const struct part *parts, size_t nr_parts)
{
	const uint32_t *numbers = (const uint32_t *)offsets;

	for (size_t i = 0; i < nr_parts; i++) {
		const size_t first = parts[i].start / sizeof(uint32_t);

		for (size_t k = first; k < first + parts[i].size / sizeof(uint32_t); k++) {
			const struct field field = {
				.offset = numbers[k],
				.width = widths[k],
				.end = parts[i].end,
				.buffer_size = parts[i].buffer_size,
			};

			if (widths[k] != OFFSET_ABSENT && !fields_fit(&field, 1))
				return false;
		}
	}
	return true;
}

/*
 * The fields of the runtime and of interpreters are read one by one; thread states are read up to
 * the last field used; of frames and code objects the heads are read.
 */
bool build_consistent(const struct py_build *build)
{
	const struct py_offsets *o = &build->offsets;
	const uint32_t any = STRUCT_MAX_BYTES;
	const uint32_t most = CODE_MAX_BYTES;
	const struct part parts[] = {
		{PART(runtime), o->runtime.size, any},
		{PART(interpreter), o->interpreter.size, any},
		{PART(thread), thread_head_bytes(o), THREAD_STATE_MAX_BYTES},
		{PART(exc_item), EXC_ITEM_MAX_BYTES, EXC_ITEM_MAX_BYTES},
		{PART(frame), frame_head_bytes(o), FRAME_MAX_BYTES},
		{PART(generator), any, any},
		{PART(code), code_head_bytes(o), most},
		{PART(object), most, most},
		{PART(unicode), o->unicode.ascii_data, most},
		{PART(bytes), most, most},
	};
	/* Fields at which something begins, and fields that are also in another part. */
	const struct field fields[] = {
		{o->thread.datastack_top, 8, o->thread.size, THREAD_STATE_MAX_BYTES},
		{o->thread.exc_state, 8, o->thread.size, THREAD_STATE_MAX_BYTES},
		{o->frame.localsplus, 8, o->frame.size, FRAME_MAX_BYTES},
		{o->generator.iframe, 8, any, any},
		{o->code.code_adaptive, 8, o->code.size, most},
		{o->object.ob_type, 8, code_head_bytes(o), most},
		{o->unicode.compact_data, 8, most, most},
		{o->bytes.ob_sval, 1, most, most},
		/* Thread-local bytecode, if the build has it. */
		{build->tlbc.code_array, 8, code_head_bytes(o), most},
		{build->tlbc.generation, 4, o->interpreter.size, any},
	};

	/* Only the first word of an exception item is read. */
	return parts_fit(o, parts, sizeof(parts) / sizeof(*parts)) &&
	       fields_fit(fields, sizeof(fields) / sizeof(*fields)) && collector_consistent(o) &&
	       (o->exc_item.value == 0 || o->exc_item.value == OFFSET_ABSENT) &&
	       (o->frame.localsplus == OFFSET_ABSENT || o->frame.size <= FRAME_MAX_BYTES) &&
	       frame_head_bytes(o) >= 32;
}

/* Limits on interpreters, threads of each, frames in all, and tries: about 500 reads. */
enum { LIVE_INTERPRETERS = 4, LIVE_THREADS = 8, LIVE_FRAMES = 32, LIVE_TRIES = 3 };

/*
 * Tries and pause before a known version is refused. A process that begins and ends threads all the
 * time shows torn lists several times in a row.
 */
enum { REPEATED_TRIES = 10, REPEATED_PAUSE_US = 1000 };

/* PID_MAX_LIMIT of Linux. */
#define TID_MAX (1u << 22)

/* _PyThreadStateImpl has 2 kB in 3.15. */
#define THREAD_OBJECT_MAX_BYTES (64u << 10)

/* The subject of a check, and what all tries have found so far. */
struct live {
	struct remote_memory *memory;
	const struct py_build *build;
	bool only_threads;	   /* do not check frames */
	unsigned int nr_frames;	   /* checked in this try */
	bool fits;		   /* a thread names its interpreter */
	bool has_frames;	   /* such a thread has a frame */
	bool has_other_executable; /* an executable was seen that is no code object */
	bool has_code;		   /* one was seen that is a code object */
	remote_addr code_addr;	   /* of a whole one; 0 if none was seen */
};

static bool read_word(const struct live *live, remote_addr addr, uint64_t *ret_word)
{
	return remote_memory_read_u64(live->memory, addr, ret_word) == 0;
}

/*
 * Whether the object at addr has the type called name. If the name is not in memory, as in a core
 * file without the program's file, it must be a static type whose flags give that kind
 * (VALUE_OBJECT: no kind).
 */
static bool type_is(const struct live *live, remote_addr addr, const char *name,
		    enum value_kind kind)
{
	const struct py_offsets *offsets = &live->build->offsets;
	struct value_type type;
	remote_addr type_addr;
	char text[8];

	if (read_word(live, addr + offsets->object.ob_type, &type_addr) &&
	    type_name_read(live->memory, offsets, type_addr, text, strlen(name) + 2) == 0)
		return strcmp(text, name) == 0;
	return value_type_of(live->memory, live->build, addr, &type) == 0 && !type.has_name &&
	       type.is_ready && type.kind == kind;
}

/* Whether the code object at addr has a name and file of type str and a table of type bytes. */
static bool code_is_whole(const struct live *live, remote_addr addr)
{
	const struct py_offsets *offsets = &live->build->offsets;
	const struct {
		uint32_t offset;
		enum value_kind kind;
	} members[] = {
		{offsets->code.qualname, VALUE_STR},
		{offsets->code.filename, VALUE_STR},
		{offsets->code.linetable, VALUE_BYTES},
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const enum value_kind kind = members[i].kind;
		uint64_t value;

		if (!read_word(live, addr + members[i].offset, &value) ||
		    !type_is(live, value, kind == VALUE_STR ? "str" : "bytes", kind))
			return false;
	}
	return true;
}

/* Whether a frame from addr outwards has a whole code object. */
static bool frames_have_code(struct live *live, remote_addr addr)
{
	const struct py_offsets *offsets = &live->build->offsets;
	/* f_executable is a tagged reference since 3.14. */
	const uint64_t tags = 3;

	for (; addr && live->nr_frames < LIVE_FRAMES; live->nr_frames++) {
		uint64_t executable;

		if (!read_word(live, addr + offsets->frame.executable, &executable))
			return false;
		executable &= ~tags;
		if (!type_is(live, executable, "code", VALUE_OBJECT)) {
			live->has_other_executable = true;
		} else {
			/* Without the names of types it may be anything, unless it is whole. */
			live->has_code = true;
			if (code_is_whole(live, executable)) {
				live->code_addr = executable;
				return true;
			}
		}
		if (!read_word(live, addr + offsets->frame.previous, &addr))
			return false;
	}
	return false;
}

/* Whether the thread has an id that Linux can give, and a data stack that contains its top. */
static bool thread_has_stack(const struct live *live, const uint8_t *state)
{
	const struct py_offsets *offsets = &live->build->offsets;
	uint64_t chunk_addr, top_addr, tid, size;

	if (offsets->thread.native_thread_id != OFFSET_ABSENT) {
		tid = field_u64(state, offsets->thread.native_thread_id);
		if (!tid || tid > TID_MAX)
			return false;
	}
	if (offsets->thread.datastack_chunk == OFFSET_ABSENT)
		return true;
	chunk_addr = field_u64(state, offsets->thread.datastack_chunk);
	top_addr = field_u64(state, offsets->thread.datastack_top);
	return read_word(live, chunk_addr + offsets->chunk.size, &size) && top_addr >= chunk_addr &&
	       top_addr - chunk_addr <= size;
}

/* Whether the state of the thread at addr has a stack and a frame as they must be. */
static bool thread_is_right(struct live *live, remote_addr addr, const uint8_t *state)
{
	struct stack_ends ends;

	if (live->only_threads)
		return thread_has_stack(live, state);
	ends = stack_ends_read(live->memory, live->build, addr, state);
	if (ends.current_frame_addr && ends.current_frame_addr != ends.base_frame_addr)
		live->has_frames = true;
	return thread_has_stack(live, state) && frames_have_code(live, ends.current_frame_addr);
}

/*
 * Check the threads of one interpreter, of which the first is at addr. Threads begin and end at
 * that end of the list, so one that does not fit is skipped as long as the list goes on.
 */
static enum build_live check_threads(struct live *live, remote_addr interp_addr, remote_addr addr)
{
	const struct py_offsets *offsets = &live->build->offsets;
	enum build_live found = BUILD_LIVE_UNKNOWN;
	uint8_t state[THREAD_STATE_MAX_BYTES];

	for (int i = 0; addr && i < LIVE_THREADS; i++) {
		if (addr % sizeof(uint64_t) ||
		    remote_memory_read(live->memory, addr, state, thread_head_bytes(offsets)) != 0)
			return BUILD_LIVE_CONTRADICTS;
		/* The sentinel below a stack follows the thread state, in the same object. */
		if (field_u64(state, offsets->thread.interp) == interp_addr &&
		    (offsets->thread.base_frame == OFFSET_ABSENT ||
		     field_u64(state, offsets->thread.base_frame) - addr <
			     THREAD_OBJECT_MAX_BYTES)) {
			live->fits = true;
			if (thread_is_right(live, addr, state))
				return BUILD_LIVE_PROVEN;
		} else {
			found = BUILD_LIVE_CONTRADICTS;
		}
		addr = field_u64(state, offsets->thread.next);
	}
	return found;
}

/* What the threads that name their interpreter show, if none proves the build. */
static enum build_live fit_of(const struct live *live)
{
	if (live->has_other_executable && !live->has_code)
		return BUILD_LIVE_NO_CODE;
	return live->has_frames ? BUILD_LIVE_UNPROVEN : BUILD_LIVE_FITS;
}

/* One try. */
static enum build_live check_once(struct live *live, remote_addr runtime_addr)
{
	const struct py_offsets *offsets = &live->build->offsets;
	remote_addr interp_addr, thread_addr;
	enum build_live found;

	if (!read_word(live, runtime_addr + offsets->runtime.interpreters_head, &interp_addr))
		return BUILD_LIVE_UNKNOWN;
	for (int i = 0; interp_addr && i < LIVE_INTERPRETERS; i++) {
		if (interp_addr % sizeof(uint64_t) ||
		    !read_word(live, interp_addr + offsets->interpreter.threads_head, &thread_addr))
			return BUILD_LIVE_CONTRADICTS;
		found = check_threads(live, interp_addr, thread_addr);
		if (found != BUILD_LIVE_UNKNOWN)
			return found;
		if (!read_word(live, interp_addr + offsets->interpreter.next, &interp_addr))
			return BUILD_LIVE_CONTRADICTS;
	}
	return live->fits ? fit_of(live) : BUILD_LIVE_UNKNOWN;
}

/* Whether a build of which that was found may be refused. A newer version has to be proven. */
static bool is_refusal(const struct py_build *build, enum build_live found)
{
	return found == BUILD_LIVE_CONTRADICTS || found == BUILD_LIVE_NO_CODE ||
	       (found == BUILD_LIVE_UNPROVEN && build->newer_than_tested);
}

/*
 * Try, and try again while the lists may be in motion: LIVE_TRIES times without a pause, and up to
 * max_tries with pauses while the result would be a refusal.
 */
static enum build_live check(struct live *live, remote_addr runtime_addr, int max_tries)
{
	enum build_live found = BUILD_LIVE_UNKNOWN;

	for (int i = 0; i < max_tries; i++) {
		if (i >= LIVE_TRIES)
			(void)usleep(REPEATED_PAUSE_US);
		live->nr_frames = 0;
		found = check_once(live, runtime_addr);
		if (found == BUILD_LIVE_UNKNOWN || found == BUILD_LIVE_PROVEN ||
		    (!is_refusal(live->build, found) && i + 1 >= LIVE_TRIES))
			break;
	}
	return found;
}

enum build_live build_check_live(struct remote_memory *memory, remote_addr runtime_addr,
				 const struct py_build *build)
{
	struct live live = {.memory = memory, .build = build};

	return check(&live, runtime_addr, LIVE_TRIES);
}

remote_addr build_find_code(struct remote_memory *memory, remote_addr runtime_addr,
			    const struct py_build *build)
{
	struct live live = {.memory = memory, .build = build};

	(void)check(&live, runtime_addr, LIVE_TRIES);
	return live.code_addr;
}

enum build_live build_check_threads(struct remote_memory *memory, remote_addr runtime_addr,
				    const struct py_build *build)
{
	struct live live = {.memory = memory, .build = build, .only_threads = true};

	return check(&live, runtime_addr, LIVE_TRIES);
}

enum build_live build_check_repeatedly(struct remote_memory *memory, remote_addr runtime_addr,
				       const struct py_build *build)
{
	struct live live = {.memory = memory, .build = build};
	enum build_live found = check(&live, runtime_addr, REPEATED_TRIES);

	if (found != BUILD_LIVE_CONTRADICTS || !live.fits)
		return found;
	/* In motion in every try, but a thread was where only this build has one. */
	return fit_of(&live);
}

/* The size of dtoa.preallocated, right before the pointer into it: PRIVATE_MEM of pycore_dtoa.h. */
#define DTOA_POOL_BYTES 2304

/* Most that is searched of an interpreter state: func_state is at 20092 in free-threaded 3.13. */
#define CODE_VERSION_MAX_OFFSET (32u << 10)

/*
 * The offset of next_code_version if the pointer at offset in the interpreter state is
 * dtoa.preallocated_next; else 0. In free-threaded builds a lock precedes it.
 */
static uint32_t version_after_pool(const struct py_build *build, const uint8_t *bytes,
				   remote_addr interp_addr, uint32_t offset)
{
	uint64_t own_addr = interp_addr + offset;
	uint64_t next_addr = field_u64(bytes, offset);
	uint32_t first = field_u32(bytes, offset + 8);
	uint32_t second = field_u32(bytes, offset + 12);

	/*
	 * Heads of empty lists point at or right before themselves; so the last two doubles do not
	 * count.
	 */
	if (own_addr - next_addr > DTOA_POOL_BYTES || own_addr - next_addr < 24 ||
	    next_addr % sizeof(uint64_t))
		return 0;
	if (build->free_threaded)
		return first < 256 && second ? offset + 12 : 0;
	return first && !second ? offset + 8 : 0;
}

/* Whether the number from our table is right after a pool, which may be used up. */
static bool version_is_in_place(const struct py_build *build, const uint8_t *bytes, size_t size,
				remote_addr interp_addr)
{
	uint32_t at = build->offsets.interpreter.next_code_version;
	uint32_t pointer;

	if (at == OFFSET_ABSENT || at < 16 || at + 8 > size)
		return false;
	pointer = at / 8 * 8 - 8;
	return interp_addr + pointer - field_u64(bytes, pointer) <= DTOA_POOL_BYTES;
}

void build_find_code_version(struct remote_memory *memory, remote_addr runtime_addr,
			     struct py_build *build)
{
	struct py_offsets *offsets = &build->offsets;
	cleanup_free uint8_t *bytes = NULL;
	remote_addr interp_addr;
	unsigned int nr_found = 0;
	size_t size = offsets->interpreter.size;

	if (remote_memory_read_u64(memory, runtime_addr + offsets->runtime.interpreters_head,
				   &interp_addr) != 0 ||
	    !interp_addr)
		return;
	if (size > CODE_VERSION_MAX_OFFSET)
		size = CODE_VERSION_MAX_OFFSET;
	bytes = malloc(size);
	if (!bytes || remote_memory_read(memory, interp_addr, bytes, size) != 0)
		return;
	if (version_is_in_place(build, bytes, size, interp_addr))
		return;
	/* Otherwise only a single candidate is accepted. */
	offsets->interpreter.next_code_version = OFFSET_ABSENT;
	for (uint32_t offset = 0; offset + 16 <= size; offset += 8) {
		const uint32_t at = version_after_pool(build, bytes, interp_addr, offset);

		if (at)
			offsets->interpreter.next_code_version = nr_found++ ? OFFSET_ABSENT : at;
	}
}
