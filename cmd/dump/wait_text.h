/* SPDX-License-Identifier: MIT */
/* What a waiting thread waits in, in words: the system call, and what its arguments refer to. */
#pragma once

#include "cmd/dump/tree.h"
#include "cmd/dump/waits.h"
#include "output/text/text.h"

/*
 * Append a phrase such as "waits in recvfrom on socket 127.0.0.1:1 → 127.0.0.1:2" for a thread of
 * the tree's process i; nothing if it is not known. What arguments refer to is read now: the thread
 * may have moved on, and then that is left out or outdated. *ret_call is the call's name, static,
 * or NULL; *ret_time_bytes is the length of the end that says how long it still waits, or 0.
 */
void wait_text_append(struct text *text, const struct tree *tree, size_t i,
		      const struct looked_thread *thread, const char **ret_call,
		      size_t *ret_time_bytes);
