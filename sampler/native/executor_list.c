/* SPDX-License-Identifier: MIT */
#include "sampler/native/executor_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/cpython/layout/object_offsets.h"

/* Limit on the code objects searched, 20 ms of work. One with an executor leads to all others. */
enum { CODES_MAX = 32768 };

/* Limit on the executors of a code object (MAX_EXECUTORS_SIZE of Python/optimizer.c). */
enum { ARRAY_MAX = 256 };

/* The JIT maps separate memory for each. A trace of 800 micro-operations takes 100 KiB. */
enum { CODE_ALIGNMENT_BYTES = 4096, CODE_MAX_BYTES_OF_ONE = 16 << 20 };

/* Bytes read of an executor, from the end of its ob_type. */
enum { EXECUTOR_BYTES = EXECUTOR_JIT_CODE_AFTER_TYPE + sizeof(uint64_t) };

struct executor {
	remote_addr addr, next_addr, previous_addr;
	struct executor_range range; /* empty: no machine code */
};

void executor_list_done(struct executor_list *list)
{
	free(list->ranges);
	*list = (struct executor_list){.ranges = NULL};
}

/* Whether this is the type of executors: by name at first, then by address. */
static bool is_executor_type(struct executor_list *list, remote_addr type_addr)
{
	struct remote_memory *memory = list->codes->memory;
	uint64_t name_addr;
	char name[sizeof(EXECUTOR_TYPE_NAME)];

	if (list->type_addr)
		return type_addr == list->type_addr;
	if (remote_memory_read_u64(memory, type_addr + list->codes->build->offsets.object.tp_name,
				   &name_addr) ||
	    remote_memory_read(memory, name_addr, name, sizeof(name)) ||
	    memcmp(name, EXECUTOR_TYPE_NAME, sizeof(name)) != 0)
		return false;
	list->type_addr = type_addr;
	return true;
}

static bool read_executor(struct executor_list *list, remote_addr addr,
			  struct executor *ret_executor)
{
	const uint32_t type_offset = list->codes->build->offsets.object.ob_type;
	uint8_t bytes[sizeof(uint64_t) + EXECUTOR_BYTES]; /* starting at ob_type */
	const uint8_t *fields = bytes + sizeof(uint64_t);
	uint64_t start_addr, nr_bytes;

	if (addr % sizeof(uint64_t) ||
	    remote_memory_read(list->codes->memory, addr + type_offset, bytes, sizeof(bytes)) ||
	    !is_executor_type(list, field_u64(bytes, 0)))
		return false;
	ret_executor->addr = addr;
	ret_executor->next_addr = field_u64(fields, EXECUTOR_NEXT_AFTER_TYPE);
	ret_executor->previous_addr = field_u64(fields, EXECUTOR_PREVIOUS_AFTER_TYPE);
	/* It may have no code. */
	start_addr = field_u64(fields, EXECUTOR_JIT_CODE_AFTER_TYPE);
	nr_bytes = start_addr ? field_u64(fields, EXECUTOR_JIT_SIZE_AFTER_TYPE) : 0;
	ret_executor->range = (struct executor_range){start_addr, start_addr + nr_bytes};
	return start_addr % CODE_ALIGNMENT_BYTES == 0 && nr_bytes <= CODE_MAX_BYTES_OF_ONE &&
	       start_addr + nr_bytes >= start_addr;
}

/* Append the code of one. Returns 0; -ENOMEM; -E2BIG: the list is full. */
static int append(struct executor_list *list, const struct executor *executor)
{
	struct executor_range *ranges;

	if (list->nr_ranges == EXECUTOR_LIST_MAX)
		return -E2BIG;
	ranges = array_reserve(list->ranges, list->nr_ranges + 1, &list->max_ranges,
			       sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	list->ranges = ranges;
	ranges[list->nr_ranges++] = executor->range;
	return 0;
}

/* Append its successors, or predecessors, up to the end or one that does not point back. */
static int append_side(struct executor_list *list, const struct executor *from, bool forwards)
{
	struct executor here = *from, next;
	int err = 0;

	while (!err) {
		const remote_addr addr = forwards ? here.next_addr : here.previous_addr;

		if (!addr || !read_executor(list, addr, &next) ||
		    (forwards ? next.previous_addr : next.next_addr) != here.addr)
			break;
		err = append(list, &next);
		here = next;
	}
	return err;
}

/* Append the list that a code object's array leads to. Returns 0, -ENOMEM, -E2BIG. */
static int append_list(struct executor_list *list, remote_addr array_addr)
{
	struct remote_memory *memory = list->codes->memory;
	uint64_t addrs[ARRAY_MAX];
	uint32_t nr;
	struct executor executor;
	int err;

	if (remote_memory_read(memory, array_addr + EXECUTOR_ARRAY_NR, &nr, sizeof(nr)) ||
	    nr > ARRAY_MAX ||
	    remote_memory_read(memory, array_addr + EXECUTOR_ARRAY_ITEMS, addrs,
			       nr * sizeof(*addrs)))
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (!addrs[i] || !read_executor(list, addrs[i], &executor))
			continue;
		/* Other interpreters have lists of their own. */
		for (uint32_t j = 0; j < list->nr_ranges; j++)
			if (list->ranges[j].start_addr == executor.range.start_addr)
				return 0;
		err = append(list, &executor);
		if (!err)
			err = append_side(list, &executor, true);
		return err ? err : append_side(list, &executor, false);
	}
	return 0;
}

static int compare(const void *first, const void *second)
{
	const struct executor_range *a = first, *b = second;

	return (a->start_addr > b->start_addr) - (a->start_addr < b->start_addr);
}

/* Compare an address to a range: less than 0 below it, 0 in it, more than 0 above it. */
static int compare_addr(const void *key, const void *element)
{
	const remote_addr addr = *(const remote_addr *)key;
	const struct executor_range *range = element;

	return (addr >= range->end_addr) - (addr < range->start_addr);
}

static bool find(const struct executor_list *list, remote_addr addr)
{
	return list->nr_ranges &&
	       bsearch(&addr, list->ranges, list->nr_ranges, sizeof(*list->ranges), compare_addr);
}

/* Starts from nothing: the memory of freed code may have other code now. */
void executor_list_read(struct executor_list *list, const struct code_cache *codes)
{
	const uint32_t executors = codes->build->offsets.code.linetable + EXECUTORS_AFTER_LINETABLE;
	const struct addr_map *map = &codes->codes;
	uint32_t nr_codes = 0;
	int err = 0;

	list->codes = codes;
	list->nr_ranges = 0;
	for (size_t slot = 0; !err && slot < map->nr_slots && nr_codes < CODES_MAX; slot++) {
		const struct code *code = map->slots[slot].value;
		uint64_t array_addr;

		if (!code || code->is_not_code || !code->function)
			continue;
		nr_codes++;
		if (!remote_memory_read_u64(codes->memory, code->addr + executors, &array_addr) &&
		    array_addr)
			err = append_list(list, array_addr);
	}
	if (list->ranges)
		qsort(list->ranges, list->nr_ranges, sizeof(*list->ranges), compare);
}

bool executor_list_has(struct executor_list *list, const struct code_cache *codes, remote_addr addr,
		       uint64_t now_ns)
{
	bool has = find(list, addr);
	uint64_t begin_ns;

	if (has || !refresh_backoff_is_due(&list->backoff, false, now_ns))
		return has;
	begin_ns = clock_now_ns();
	executor_list_read(list, codes);
	has = find(list, addr);
	refresh_backoff_record(&list->backoff, has, now_ns, clock_now_ns() - begin_ns);
	return has;
}

bool executor_is_name(const char *name)
{
	/* The first is from the list for debuggers, the others from jitdumps. */
	static const char *const names[] = {
		"py::jit:executor",
		"py::jit_executor:<jit>",
		"py::jit_shim:<jit>",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}
