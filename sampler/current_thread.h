/* SPDX-License-Identifier: MIT */
/*
 * Where CPython 3.6 names the thread state that holds the GIL. Its GIL has no struct, only static
 * variables, but the program exports _PyThreadState_Current: NULL while nobody holds the GIL. There
 * is no count of switches, so it proves nothing of the time between two looks.
 *
 * Source: CPython 3.6 Python/pystate.c, Python/ceval.c (PyThreadState_Swap() behind take_gil()).
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/image_source.h"

/*
 * The address of the variable, which belongs to the file that has interp_head_addr; 0 if the file
 * cannot be opened or does not export it.
 */
remote_addr current_thread_find(const struct maps *maps, struct image_source *images,
				remote_addr interp_head_addr);
