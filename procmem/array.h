/* SPDX-License-Identifier: MIT */
/* Arrays that grow. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * array, enlarged if needed for needed elements, to at least twice its size; *max is how
 * many it has room for. NULL if out of memory, and then array is still there. UINT32_MAX is
 * no index: it stays free to say "none".
 */
void *array_reserve(void *array, uint32_t needed, uint32_t *max, size_t element_bytes);

/* A copy of nr elements, allocated (free() it). NULL if out of memory, never because nr is 0. */
void *array_copy(const void *array, size_t nr, size_t element_bytes);
