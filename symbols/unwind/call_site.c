/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/call_site.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>

#include "symbols/unwind/signal_return.h"
#include "symbols/unwind/stack_depth.h"

/* Limit on the stack of one function: musl's longest paths and host names have 8 KiB. */
enum { SEARCH_MAX_WORDS = 2048, WORD_BYTES = 8 };

/* Limits on the functions that are followed for one frame, and on the instructions of each. */
enum { MAX_WALKS = 16, WALK_MAX_STEPS = 8192 };

/* A frame for which nothing was found so often is not searched for again at that pc. */
enum { MAX_FAILURES = 8 };

/* The longest call instruction: "call *disp32(base,index)" with a prefix. */
enum { CALL_MAX_BYTES = 8 };

/* The entry point calls the C library within its first instructions. */
enum { ENTRY_MAX_BYTES = 64 };

/* How much is read of what may be an entry of the procedure linkage table. */
enum { LINKAGE_BYTES = 16 };

void call_sites_init(struct call_sites *sites, struct remote_memory *memory, struct module_map *map)
{
	*sites = (struct call_sites){.memory = memory, .map = map};
}

/* The executable mapping of a file that contains addr, and its module; NULL: none. */
static const struct mapping *find_code(const struct call_sites *sites, remote_addr addr,
				       const struct module_range **ret_range)
{
	const uint32_t index = module_map_find(sites->map, addr);
	const struct mapping *mapping;

	if (index == MODULE_MAP_NONE)
		return NULL;
	*ret_range = &sites->map->ranges[index];
	mapping = module_map_mapping(sites->map, index, addr);
	return mapping && mapping->executable && mapping->inode ? mapping : NULL;
}

static int64_t s32_at(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Follow an entry of the procedure linkage table, which jumps to where a word says. */
static int resolve(const struct call_sites *sites, remote_addr *addr)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	uint8_t bytes[LINKAGE_BYTES];
	size_t at = 0;
	int err = remote_memory_read(sites->memory, *addr, bytes, sizeof(bytes));

	if (err)
		return err;
	if (memcmp(bytes, landing, sizeof(landing)) == 0)
		at += sizeof(landing);
	if (bytes[at] == 0xf2) /* bnd */
		at++;
	if (bytes[at] != 0xff || bytes[at + 1] != 0x25)
		return 0;
	return remote_memory_read_u64(sites->memory,
				      *addr + at + 6 + (uint64_t)s32_at(bytes + at + 2), addr);
}

/* What the instructions around a return address say. */
struct site {
	bool is_after_call;
	remote_addr target_addr; /* of that call; 0: unknown */
};

/* Whether the bytes end with a call through a register or memory, of whichever length. */
static bool is_indirect_call(const uint8_t *end)
{
	for (int length = 2; length < CALL_MAX_BYTES; length++)
		if (end[-length] == 0xff && (end[-length + 1] & 0x38) == 0x10)
			return true;
	return false;
}

static int read_site(const struct call_sites *sites, remote_addr return_addr, struct site *ret_site)
{
	uint8_t bytes[CALL_MAX_BYTES];
	const uint8_t *end = bytes + sizeof(bytes);
	int err = remote_memory_read(sites->memory, return_addr - sizeof(bytes), bytes,
				     sizeof(bytes));

	*ret_site = (struct site){.is_after_call = false};
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	if (end[-5] == 0xe8) {
		ret_site->target_addr = return_addr + (uint64_t)s32_at(end - 4);
		err = resolve(sites, &ret_site->target_addr);
	} else if (end[-6] == 0xff && end[-5] == 0x15) {
		err = remote_memory_read_u64(sites->memory, return_addr + (uint64_t)s32_at(end - 4),
					     &ret_site->target_addr);
	}
	if (err)
		ret_site->target_addr = 0;
	ret_site->is_after_call = ret_site->target_addr || is_indirect_call(end);
	return remote_error_is_fatal(err) ? err : 0;
}

/* Whether the code at addr sets the number of exit(2) and calls the kernel. */
static bool ends_thread(const struct call_sites *sites, remote_addr addr)
{
	static const uint8_t exits[][7] = {
		{0xb8, 0x3c, 0x00, 0x00, 0x00, 0x0f, 0x05}, /* mov $60,%eax; syscall */
		{0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05},	    /* xor %eax,%eax; mov $60,%al; … */
	};
	uint8_t bytes[16];

	if (remote_memory_read(sites->memory, addr, bytes, sizeof(bytes)))
		return false;
	return memmem(bytes, sizeof(bytes), exits[0], 7) ||
	       memmem(bytes, sizeof(bytes), exits[1], 6);
}

/*
 * Whether a position-independent module is a program. To a library old linkers gave an entry, too:
 * the beginning of its code.
 */
static bool has_interpreter(const struct call_sites *sites, const struct module_range *range,
			    const Elf64_Ehdr *header)
{
	enum { MAX_HEADERS = 16 };
	Elf64_Phdr headers[MAX_HEADERS];
	const size_t nr_headers = header->e_phnum < MAX_HEADERS ? header->e_phnum : MAX_HEADERS;

	if (header->e_phentsize != sizeof(headers[0]) ||
	    remote_memory_read(sites->memory, range->start + header->e_phoff, headers,
			       nr_headers * sizeof(headers[0])))
		return false;
	for (size_t i = 0; i < nr_headers; i++)
		if (headers[i].p_type == PT_INTERP)
			return true;
	return false;
}

/* Whether code at addr, which is in a module, belongs to the entry point of a program. */
static bool is_in_entry(const struct call_sites *sites, const struct module_range *range,
			remote_addr addr)
{
	Elf64_Ehdr header;

	if (remote_memory_read(sites->memory, range->start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || !header.e_entry)
		return false;
	if (header.e_type == ET_DYN) {
		if (!has_interpreter(sites, range, &header))
			return false;
		header.e_entry += range->start;
	}
	return addr - header.e_entry < ENTRY_MAX_BYTES;
}

/* Whether a return address is in a function that has no caller. */
static bool is_first(const struct call_sites *sites, const struct module_range *range,
		     remote_addr return_addr)
{
	return is_in_entry(sites, range, return_addr) || ends_thread(sites, return_addr);
}

/* Whether the context that the kernel saves for a signal handler, at addr, interrupted code. */
static bool interrupted_code(const struct call_sites *sites, struct stack_window *stack,
			     remote_addr addr)
{
	const struct module_range *range;
	uint64_t pc;

	return !stack_window_u64(stack, addr + offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
				 &pc) &&
	       find_code(sites, pc, &range);
}

/*
 * Whether a word is a return address that few functions have: into a function that has no caller,
 * or what the kernel pushes when it calls a signal handler. The word ends at end_addr.
 */
static bool is_special(const struct call_sites *sites, struct stack_window *stack,
		       const struct module_range *range, uint64_t word, remote_addr end_addr,
		       const struct site *site)
{
	if (site->is_after_call)
		return is_first(sites, range, word);
	return signal_return_rule(sites->memory, word - 1) &&
	       interrupted_code(sites, stack, end_addr);
}

/* The code around the pc of a frame, read when it is first needed. */
struct code_window {
	remote_addr start;
	size_t nr_bytes;
	uint8_t *bytes; /* NULL: not read yet */
	uint32_t nr_walks;
};

static struct code_window window_around(const struct mapping *mapping, remote_addr addr)
{
	const uint64_t half = STACK_DEPTH_MAX_BYTES / 2;
	const remote_addr start = addr - mapping->start > half ? addr - half : mapping->start;
	const remote_addr end = mapping->end - addr > half ? addr + half : mapping->end;

	return (struct code_window){.start = start, .nr_bytes = end - start};
}

/* The stack that a function, entered at target_addr, has used at the pc of a frame. */
static int find_depth(const struct call_sites *sites, struct code_window *window,
		      const struct registers *frame, remote_addr target_addr,
		      uint32_t *ret_depth_bytes)
{
	struct stack_depth_code code = {.nr_bytes = window->nr_bytes,
					.max_steps = WALK_MAX_STEPS,
					.entry_offset = target_addr - window->start};
	int err;

	if (code.entry_offset >= window->nr_bytes || window->nr_walks == MAX_WALKS)
		return -ENOENT;
	window->nr_walks++;
	if (!window->bytes) {
		window->bytes = malloc(window->nr_bytes);
		if (!window->bytes)
			return -ENOMEM;
		err = remote_memory_read(sites->memory, window->start, window->bytes,
					 window->nr_bytes);
		if (err) {
			window->nr_bytes = 0;
			return err;
		}
	}
	code.bytes = window->bytes;
	return stack_depth_find(&code, frame->values[REGISTER_PC] - window->start,
				!frame->is_interrupted, ret_depth_bytes);
}

/*
 * Search the stack for the word that the call has pushed; *ret_depth_bytes: up to its end. A word
 * that is proven comes before one that is special, which may have been left by another call, or be
 * an address that the function handles: sigaction() has that of the code that ends handlers.
 *
 * Returns 0; -ENOENT; -EFAULT if the stack is not readable that far; another error.
 */
static int search(const struct call_sites *sites, struct stack_window *stack,
		  struct code_window *window, const struct registers *frame,
		  uint32_t *ret_depth_bytes, bool *ret_is_proven)
{
	const remote_addr sp = frame->values[REGISTER_SP];
	const struct module_range *range;
	bool has_passed_one = false;
	struct site site;
	uint64_t word;
	int err = 0;

	*ret_depth_bytes = 0;
	for (uint32_t depth = WORD_BYTES; depth <= SEARCH_MAX_WORDS * WORD_BYTES;
	     depth += WORD_BYTES) {
		uint32_t used = 0;

		err = stack_window_u64(stack, sp + depth - WORD_BYTES, &word);
		if (err)
			break;
		if (!find_code(sites, word - 1, &range))
			continue;
		err = read_site(sites, word, &site);
		if (!err && site.target_addr)
			err = find_depth(sites, window, frame, site.target_addr, &used);
		if (remote_error_is_fatal(err) || err == -ENOMEM)
			return err;
		*ret_is_proven = used == depth;
		if (*ret_is_proven) {
			*ret_depth_bytes = depth;
			return 0;
		}
		if (!has_passed_one && !*ret_depth_bytes &&
		    is_special(sites, stack, range, word, sp + depth, &site))
			*ret_depth_bytes = depth;
		has_passed_one |= site.is_after_call;
		err = 0;
	}
	if (remote_error_is_fatal(err))
		return err;
	if (*ret_depth_bytes)
		return 0;
	return err ? -EFAULT : -ENOENT;
}

static int find_uncached(struct call_sites *sites, struct stack_window *stack,
			 const struct registers *frame, const struct mapping *mapping,
			 struct call_site_cached *cached, remote_addr *ret_cfa)
{
	struct code_window window = window_around(mapping, frame->values[REGISTER_PC]);
	uint32_t depth_bytes = 0;
	bool is_proven = false;
	int err = search(sites, stack, &window, frame, &depth_bytes, &is_proven);

	free(window.bytes);
	if (err == -ENOENT)
		cached->nr_failures++;
	if (err)
		return err;
	if (is_proven)
		cached->depth_bytes = depth_bytes;
	*ret_cfa = frame->values[REGISTER_SP] + depth_bytes;
	return 0;
}

int call_sites_find(struct call_sites *sites, struct stack_window *window,
		    const struct registers *frame, enum call_site_kind *ret_kind,
		    remote_addr *ret_cfa)
{
	const remote_addr pc = frame->values[REGISTER_PC];
	const bool is_call = !frame->is_interrupted;
	struct call_site_cached *cached = &sites->cache[(pc ^ pc >> 8) % CALL_SITES_CACHED];
	const struct module_range *range;
	const struct mapping *mapping = find_code(sites, registers_lookup_addr(frame), &range);

	*ret_kind = CALL_SITE_FOUND;
	if (!mapping)
		return -ENOENT;
	if (cached->pc != pc || cached->is_call != is_call)
		*cached = (struct call_site_cached){.pc = pc, .is_call = is_call};
	if (cached->nr_failures == MAX_FAILURES)
		return -ENOENT;
	if (cached->depth_bytes) {
		*ret_cfa = frame->values[REGISTER_SP] + cached->depth_bytes;
		return 0;
	}
	if (is_call && is_first(sites, range, pc)) {
		*ret_kind = CALL_SITE_NONE;
		return 0;
	}
	return find_uncached(sites, window, frame, mapping, cached, ret_cfa);
}
