/* SPDX-License-Identifier: MIT */
#include "sampler/call_names.h"

#include <errno.h>
#include <string.h>

#include "procmem/addr_slot.h"

/* co_names is the second of the fields behind the size, and co_name is behind co_filename. */
enum { NAMES_AFTER_SIZE = 16, NAME_AFTER_FILENAME = 8 };

/* Whether others call it by what they do, and not by its name. */
static bool is_nameless(const struct code *code)
{
	const char *qualname = code->function->qualname;
	const char *dot = strrchr(qualname, '.');
	const char *name = dot ? dot + 1 : qualname;

	return name[0] == '<' || strncmp(name, "__", 2) == 0;
}

/* Whether the tuple that the word at addr points to has an item. What cannot be read has none. */
static int has_item(const struct code_cache *codes, remote_addr addr, remote_addr item,
		    bool *ret_has)
{
	/* The size, and the items, of a tuple. */
	const uint32_t size_offset = codes->build->offsets.object.ob_type + sizeof(remote_addr);
	const uint32_t items_offset = size_offset + codes->build->traits.tuple_items_after_type;
	uint64_t items[CALL_NAMES_MAX];
	uint64_t tuple_addr, nr = 0;
	int err = remote_memory_read_u64(codes->memory, addr, &tuple_addr);

	*ret_has = false;
	if (!err)
		err = remote_memory_read_u64(codes->memory, tuple_addr + size_offset, &nr);
	if (!err) {
		nr = nr < CALL_NAMES_MAX ? nr : CALL_NAMES_MAX;
		err = remote_memory_read(codes->memory, tuple_addr + items_offset, items,
					 nr * sizeof(*items));
	}
	for (uint64_t i = 0; !err && i < nr; i++)
		*ret_has |= items[i] == item;
	return err == -EFAULT ? 0 : err;
}

static int read_has(const struct code_cache *codes, const struct code *caller,
		    const struct code *callee, bool *ret_has)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	uint64_t name_addr;
	int err = remote_memory_read_u64(
		codes->memory, callee->addr + offsets->code.filename + NAME_AFTER_FILENAME,
		&name_addr);

	*ret_has = false;
	if (!err)
		err = has_item(codes, caller->addr + offsets->code.ob_size + NAMES_AFTER_SIZE,
			       name_addr, ret_has);
	if (!err && !*ret_has)
		err = has_item(codes, caller->addr + offsets->code.names, name_addr, ret_has);
	return err == -EFAULT ? 0 : err;
}

int call_names_has(struct call_names *names, const struct code_cache *codes,
		   const struct code *caller, const struct code *callee, bool *ret_has)
{
	/* Not the sum: of a caller and its callee it would be that of the callee and its caller. */
	const size_t slot = addr_slot(caller->addr + 2 * callee->addr, CALL_NAMES_KNOWN);
	struct call_pair *pair = &names->known[slot];
	int err;

	*ret_has = is_nameless(callee);
	if (*ret_has)
		return 0;
	if (pair->caller_addr != caller->addr || pair->callee_addr != callee->addr ||
	    pair->caller_loads != caller->nr_loads || pair->callee_loads != callee->nr_loads) {
		*pair = (struct call_pair){caller->addr, callee->addr, caller->nr_loads,
					   callee->nr_loads, false};
		err = read_has(codes, caller, callee, &pair->is_named);
		if (err)
			return err;
	}
	*ret_has = pair->is_named;
	return 0;
}
