/* SPDX-License-Identifier: MIT */
/*
 * The order in which a dict got its keys. It is that of its entries, but for instances of one
 * class that share their keys: since 3.11 each has the order beside its values.
 */
#pragma once

#include "sampler/python/dict.h"

/*
 * As dict_read(), with the entries in the order in which they were put into the dict if they
 * are asked for all at once, those that are not set at the end.
 *
 * Source: CPython Include/internal/pycore_dict.h, _PyDictValues_AddToInsertionOrder().
 */
int dict_read_ordered(struct remote_memory *memory, const struct py_build *build,
		      const struct dict *dict, uint32_t first, uint32_t nr,
		      struct dict_entry *ret_entries);
