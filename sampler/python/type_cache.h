/* SPDX-License-Identifier: MIT */
/* What is known of the types of objects, for those who meet many of few types. */
#pragma once

#include "procmem/memory.h"
#include "sampler/python/offsets.h"
#include "sampler/python/value_types.h"

/* So many types are known at once; which one it is goes by its address. */
enum { NR_CACHED_TYPES = 64 };

/* All zero it is empty. */
struct type_cache {
	struct value_type types[NR_CACHED_TYPES];
};

/* The type at addr: as value_type_read(), but for a type that is known. */
int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type);
