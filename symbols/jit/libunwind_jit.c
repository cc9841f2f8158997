/* SPDX-License-Identifier: MIT */
#include "symbols/jit/libunwind_jit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "symbols/jit/remote_list.h"

/* unw_dyn_info_list_t: version (0), number of changes, first entry. */
enum { HEAD_BYTES = 16, LIST_VERSION = 0, FIRST_ENTRY_OFFSET = 8 };

/* unw_dyn_info_t, up to the name, the first member of each kind of description. */
enum {
	NEXT_OFFSET = 0,
	PREV_OFFSET = 8,
	START_OFFSET = 16,
	END_OFFSET = 24,
	FORMAT_OFFSET = 40,
	LOAD_OFFSET_OFFSET = 48,
	NAME_OFFSET = 56,
	ENTRY_BYTES = 64,
};
enum { FORMAT_DYNAMIC = 0, LAST_FORMAT = 4 };

struct list {
	remote_addr addr;
	uint8_t head[HEAD_BYTES]; /* as the last complete walk found it */
	bool has_head;
	bool is_stable; /* the walk before found the same */
};

struct libunwind_jit {
	struct remote_memory *memory; /* borrowed */
	struct list lists[LIBUNWIND_JIT_MAX_LISTS];
	uint32_t nr_lists;
	uint64_t *seen; /* owned; for each code of the map the last walk that saw it */
	uint32_t nr_seen, max_seen;
	uint64_t walk;
	uint64_t last_read_ns;
};

/* A walk along one list. */
struct walk {
	struct remote_list list;
	struct libunwind_jit *jit;
	uint32_t list_index;
	uint8_t head[HEAD_BYTES];
	struct jit_map *map;
	uint64_t from_ns;
};

struct libunwind_jit *libunwind_jit_create(struct remote_memory *memory)
{
	struct libunwind_jit *jit = calloc(1, sizeof(*jit));

	if (jit)
		jit->memory = memory;
	return jit;
}

void libunwind_jit_destroy(struct libunwind_jit *jit)
{
	if (!jit)
		return;
	free(jit->seen);
	free(jit);
}

/* Lists. */

int libunwind_jit_add_list(struct libunwind_jit *jit, remote_addr list_addr)
{
	for (uint32_t i = 0; i < jit->nr_lists; i++)
		if (jit->lists[i].addr == list_addr)
			return 0;
	if (jit->nr_lists == LIBUNWIND_JIT_MAX_LISTS)
		return -E2BIG;
	jit->lists[jit->nr_lists++] = (struct list){.addr = list_addr};
	return 0;
}

#if defined(__x86_64__)

/* lea OFFSET(%rip), %rax; ret, with an optional endbr64 before. OFFSET is relative to ret. */
static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t lea[] = {0x48, 0x8d, 0x05};
enum { LEA_BYTES = sizeof(lea) + 4, RET = 0xc3 };

int libunwind_jit_add_function(struct libunwind_jit *jit, remote_addr function_addr)
{
	uint8_t code[sizeof(endbr64) + LEA_BYTES + 1];
	int err = remote_memory_read(jit->memory, function_addr, code, sizeof(code));

	if (err)
		return err;
	const size_t at = memcmp(code, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;

	if (memcmp(code + at, lea, sizeof(lea)) != 0 || code[at + LEA_BYTES] != RET)
		return -ENOENT;
	return libunwind_jit_add_list(
		jit, function_addr + at + LEA_BYTES +
			     (remote_addr)(int64_t)field_i32(code, at + sizeof(lea)));
}

#elif defined(__aarch64__)

/* adrp x0, PAGE; add x0, x0, #OFFSET; ret, with an optional bti c before. PAGE is of 4 KiB. */
#define BTI_C	  0xd503245fu
#define RET	  0xd65f03c0u
#define ADRP	  0x90000000u
#define ADRP_MASK 0x9f00001fu
#define ADD	  0x91000000u
#define ADD_MASK  0xffc003ffu

/* The page that an adrp at addr leads to. The number is signed, and its two low bits are apart. */
static remote_addr page_of_adrp(remote_addr addr, uint32_t instruction)
{
	const uint64_t nr_pages = (instruction >> 5 & 0x7ffff) << 2 | (instruction >> 29 & 3);
	const uint64_t sign = 1u << 20;

	return (addr & ~0xfffull) + (((nr_pages ^ sign) - sign) << 12);
}

int libunwind_jit_add_function(struct libunwind_jit *jit, remote_addr function_addr)
{
	uint32_t code[4];
	int err = remote_memory_read(jit->memory, function_addr, code, sizeof(code));

	if (err)
		return err;
	const size_t at = code[0] == BTI_C;

	if ((code[at] & ADRP_MASK) != ADRP || (code[at + 1] & ADD_MASK) != ADD ||
	    code[at + 2] != RET)
		return -ENOENT;
	return libunwind_jit_add_list(jit,
				      page_of_adrp(function_addr + at * sizeof(code[0]), code[at]) +
					      (code[at + 1] >> 10 & 0xfff));
}

#endif

/* Entries. */

/*
 * Read the NUL-terminated text at addr. Returns 0; -EBADMSG if it is empty or too long; -ESRCH,
 * -EPERM.
 */
static int read_name(struct remote_memory *memory, remote_addr addr,
		     char name[LIBUNWIND_JIT_MAX_NAME_BYTES + 1])
{
	/* Read as much as there is: the name may be at the end of the memory. */
	struct remote_range range = {
		.addr = addr, .buffer = name, .size = LIBUNWIND_JIT_MAX_NAME_BYTES + 1};
	int err = remote_memory_read_ranges(memory, &range, 1);

	if (err)
		return err;
	return memchr(name, '\0', range.done_bytes) && name[0] ? 0 : -EBADMSG;
}

/*
 * The address of the name of an entry. Before libunwind 1.6 there was no load offset, which only
 * loaded files have; the name was in its place.
 */
static remote_addr name_addr(const uint8_t entry[ENTRY_BYTES])
{
	const bool is_old = field_u32(entry, FORMAT_OFFSET) == FORMAT_DYNAMIC &&
			    field_u64(entry, LOAD_OFFSET_OFFSET) != 0;

	return field_u64(entry, is_old ? LOAD_OFFSET_OFFSET : NAME_OFFSET);
}

/* Whether the map has that code already. *ret_index is its index. */
static bool is_known(const struct jit_map *map, const struct jit_code *code, uint32_t *ret_index)
{
	const struct jit_code *known =
		jit_map_find_in(map, JIT_SOURCE_LIBUNWIND, code->start_addr, JIT_MAP_NOW_NS);
	uint32_t nr_codes;

	if (!known || known->start_addr != code->start_addr || known->nr_bytes != code->nr_bytes ||
	    known->code_place != code->code_place || strcmp(known->name, code->name) != 0)
		return false;
	*ret_index = (uint32_t)(known - jit_map_codes(map, &nr_codes));
	return true;
}

/* Record that the code of that index is on the list. Returns 0 or -ENOMEM. */
static int mark_seen(struct libunwind_jit *jit, uint32_t index)
{
	if (index >= jit->nr_seen) {
		uint64_t *seen = array_reserve(jit->seen, index + 1, &jit->max_seen, sizeof(*seen));

		if (!seen)
			return -ENOMEM;
		jit->seen = seen;
		memset(seen + jit->nr_seen, 0, (index + 1 - jit->nr_seen) * sizeof(*seen));
		jit->nr_seen = index + 1;
	}
	jit->seen[index] = jit->walk;
	return 0;
}

/*
 * Add the code of an entry to the map, which refuses a code that ends before it starts. Returns 0,
 * or a fatal error.
 */
static int add_entry(const struct walk *walk, remote_addr addr, const uint8_t entry[ENTRY_BYTES])
{
	char name[LIBUNWIND_JIT_MAX_NAME_BYTES + 1] = "";
	const remote_addr start_addr = field_u64(entry, START_OFFSET);
	const struct jit_code code = {
		.start_addr = start_addr,
		.nr_bytes = field_u64(entry, END_OFFSET) - start_addr,
		.from_ns = walk->from_ns,
		.to_ns = JIT_MAP_OPEN_NS,
		.name = name,
		.source = JIT_SOURCE_LIBUNWIND,
		.file_index = walk->list_index,
		.code_place = addr,
	};
	uint32_t index;
	int err;

	if (field_u32(entry, FORMAT_OFFSET) > LAST_FORMAT)
		return 0;
	err = read_name(walk->jit->memory, name_addr(entry), name);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	if (!is_known(walk->map, &code, &index))
		err = jit_map_add(walk->map, &code, strlen(name), &index);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	return mark_seen(walk->jit, index);
}

/* Walking. */

static int read_head(struct remote_list *list, remote_addr *ret_first_addr)
{
	struct walk *walk = (struct walk *)list;
	int err = remote_memory_read(walk->jit->memory, walk->jit->lists[walk->list_index].addr,
				     walk->head, sizeof(walk->head));

	if (err || field_u32(walk->head, 0) != LIST_VERSION)
		return remote_error_is_fatal(err) ? err : -EAGAIN;
	*ret_first_addr = field_u64(walk->head, FIRST_ENTRY_OFFSET);
	walk->jit->walk++;
	return 0;
}

static int read_entry(struct remote_list *list, remote_addr addr, remote_addr prev_addr,
		      remote_addr *ret_next_addr)
{
	const struct walk *walk = (const struct walk *)list;
	uint8_t entry[ENTRY_BYTES];
	int err = remote_memory_read(walk->jit->memory, addr, entry, sizeof(entry));

	if (err || field_u64(entry, PREV_OFFSET) != prev_addr)
		return remote_error_is_fatal(err) ? err : -EAGAIN;
	*ret_next_addr = field_u64(entry, NEXT_OFFSET);
	return add_entry(walk, addr, entry);
}

/* End the codes that the walk did not see. */
static void end_gone(const struct walk *walk, uint64_t now_ns)
{
	const struct libunwind_jit *jit = walk->jit;
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(walk->map, &nr_codes);

	for (uint32_t i = 0; i < nr_codes && i < jit->nr_seen; i++)
		if (codes[i].source == JIT_SOURCE_LIBUNWIND &&
		    codes[i].file_index == walk->list_index && jit->seen[i] != jit->walk)
			jit_map_end(walk->map, &codes[i], now_ns);
}

/* Walk a list if it has changed, or was changing at the last walk. */
static int read_list(struct walk *walk, uint64_t now_ns)
{
	struct list *list = &walk->jit->lists[walk->list_index];
	uint8_t head[HEAD_BYTES];
	int err = remote_memory_read(walk->jit->memory, list->addr, head, sizeof(head));

	if (remote_error_is_fatal(err))
		return err;
	if (!err && list->is_stable && memcmp(head, list->head, sizeof(head)) == 0)
		return 0;
	err = remote_list_walk(&walk->list);
	if (err)
		return err == -EAGAIN ? 0 : err;
	end_gone(walk, now_ns);
	list->is_stable = list->has_head && memcmp(walk->head, list->head, sizeof(list->head)) == 0;
	memcpy(list->head, walk->head, sizeof(list->head));
	list->has_head = true;
	return 0;
}

int libunwind_jit_read(struct libunwind_jit *jit, struct jit_map *map, uint64_t first_ns,
		       uint64_t now_ns)
{
	static const struct remote_list_ops ops = {
		.read_head = read_head,
		.read_entry = read_entry,
	};
	struct walk walk = {
		.list.ops = &ops,
		.jit = jit,
		.map = map,
		.from_ns = jit->last_read_ns ? jit->last_read_ns : first_ns,
	};
	int err = 0;

	for (; !err && walk.list_index < jit->nr_lists; walk.list_index++)
		err = read_list(&walk, now_ns);
	jit->last_read_ns = now_ns;
	return err;
}
