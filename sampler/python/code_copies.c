/* SPDX-License-Identifier: MIT */
#include "sampler/python/code_copies.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/python/executable_offsets.h"

void code_copies_done(struct code_copies *copies)
{
	free(copies->starts);
	*copies = (struct code_copies){0};
}

static int compare_addrs(const void *a, const void *b)
{
	remote_addr x = *(const remote_addr *)a;
	remote_addr y = *(const remote_addr *)b;

	return (x > y) - (x < y);
}

/* The number of entries of the array at array_addr. 0, -EBADMSG, -EFAULT… */
static int read_size(struct remote_memory *memory, remote_addr array_addr, size_t *ret_nr)
{
	uint64_t nr;
	int err;

	if (array_addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read_u64(memory, array_addr + CODE_ARRAY_SIZE, &nr);
	if (err)
		return err;
	if (!nr || nr > INT32_MAX)
		return -EBADMSG;
	*ret_nr = nr < MAX_CODE_COPIES ? (size_t)nr : MAX_CODE_COPIES;
	return 0;
}

int code_copies_read(struct code_copies *copies, struct remote_memory *memory,
		     const struct py_build *build, remote_addr code_addr)
{
	remote_addr array_addr;
	size_t nr = 0;
	int err;

	code_copies_done(copies);
	err = remote_memory_read_u64(memory, code_addr + build->tlbc.code_array, &array_addr);
	if (!err)
		err = read_size(memory, array_addr, &nr);
	if (err)
		return err;
	copies->starts = malloc(nr * sizeof(*copies->starts));
	if (!copies->starts)
		return -ENOMEM;
	err = remote_memory_read(memory, array_addr + CODE_ARRAY_ENTRIES, copies->starts,
				 nr * sizeof(*copies->starts));
	if (err) {
		code_copies_done(copies);
		return err;
	}
	copies->nr = nr;
	qsort(copies->starts, nr, sizeof(*copies->starts), compare_addrs);
	return 0;
}

bool code_copies_find(const struct code_copies *copies, uint64_t size_bytes, remote_addr addr,
		      uint64_t *ret_offset)
{
	size_t low = 0;
	size_t high = copies->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (copies->starts[middle] <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* Entries of threads that have none are NULL. */
	if (!low || !copies->starts[low - 1] || addr - copies->starts[low - 1] >= size_bytes)
		return false;
	*ret_offset = addr - copies->starts[low - 1];
	return true;
}
