/* SPDX-License-Identifier: MIT */
/* Arrays that grow. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Make room for at least needed elements. An array that must grow at least doubles; *max is its
 * capacity. Returns the array, or NULL if out of memory, and then the old array is still valid.
 * UINT32_MAX is never a valid index, so callers may use it for "none".
 */
void *array_reserve(void *array, uint32_t needed, uint32_t *max, size_t element_bytes);

/* Returns an allocated copy of nr elements (free() it), or NULL if out of memory. nr may be 0. */
void *array_copy(const void *array, size_t nr, size_t element_bytes);
