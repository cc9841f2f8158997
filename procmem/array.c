/* SPDX-License-Identifier: MIT */
#include "procmem/array.h"

#include <stdlib.h>
#include <string.h>

#define MIN_ROWS 16

void *array_reserve(void *array, uint32_t needed, uint32_t *max, size_t element_bytes)
{
	uint32_t grown = *max ? *max : MIN_ROWS;
	void *ret;

	if (array && needed <= *max)
		return array;
	if (needed == UINT32_MAX)
		return NULL;
	while (grown < needed)
		grown = grown > UINT32_MAX / 2 ? UINT32_MAX : grown * 2;
	ret = reallocarray(array, grown, element_bytes);
	if (ret)
		*max = grown;
	return ret;
}

void *array_copy(const void *array, size_t nr, size_t element_bytes)
{
	/* reallocarray() of 0 bytes may return NULL. */
	void *copy = reallocarray(NULL, nr ? nr : 1, element_bytes);

	if (copy && nr)
		memcpy(copy, array, nr * element_bytes);
	return copy;
}
