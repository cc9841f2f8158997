/* SPDX-License-Identifier: MIT */
/*
 * Exception tables (3.11 and newer): which instructions a handler protects, and how deep the value
 * stack is below it. Source: CPython Objects/exception_handling_notes.txt (3.14:
 * InternalDocs/exception_handling.md), Python/ceval.c (get_exception_handler()).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Get how many values of the stack the handler of an instruction finds, which are alive at the
 * instruction, too. unit is the index of the instruction's code unit. Returns 0; -ENOENT (no
 * handler); -EBADMSG.
 */
int exception_table_depth(const uint8_t *table, size_t size_bytes, uint32_t unit,
			  uint32_t *ret_depth);
