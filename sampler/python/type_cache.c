/* SPDX-License-Identifier: MIT */
#include "sampler/python/type_cache.h"

int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type)
{
	/* Types are 16 bytes apart at the least. */
	struct value_type *cached = &cache->types[(addr >> 4) % NR_CACHED_TYPES];
	struct value_type type;
	int err;

	if (!addr || cached->addr != addr) {
		err = value_type_read(memory, offsets, addr, &type);
		if (err)
			return err;
		*cached = type;
	}
	*ret_type = *cached;
	return 0;
}
