/* SPDX-License-Identifier: MIT */
/* What a waiting thread waits in, in words: the system call, and what its arguments refer to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/dump/pipe_ends.h"
#include "cmd/dump/tree.h"
#include "cmd/dump/waits.h"
#include "output/text/text.h"
#include "procmem/socket_name.h"

struct net_namespace {
	uint64_t device, inode; /* which one it is */
	struct socket_list sockets;
};

/* What arguments refer to: of the whole tree, each kind read when it is first needed, and once. */
struct wait_scene {
	const struct tree *tree; /* borrowed */

	/* Private. */
	struct net_namespace *namespaces; /* owned */
	uint32_t nr_namespaces, max_namespaces;
	struct pipe_ends pipes;
	bool has_pipes;
	char *locks; /* owned; /proc/locks, or NULL */
	bool has_locks;
};

/* Begin with nothing read. The tree is borrowed until wait_scene_done(). */
void wait_scene_init(struct wait_scene *scene, const struct tree *tree);
void wait_scene_done(struct wait_scene *scene);

/*
 * Append a phrase such as "waits in recvfrom on socket 127.0.0.1:1 → 127.0.0.1:2" for a thread of
 * the tree's process i; nothing if it is not known. What arguments refer to is read later than the
 * call: the thread may have moved on, and then that is left out or outdated. *ret_call is the
 * call's name, static, or NULL; *ret_time_bytes is the length of the end that says how long it
 * still waits, or 0.
 */
void wait_text_append(struct text *text, struct wait_scene *scene, size_t i,
		      const struct looked_thread *thread, const char **ret_call,
		      size_t *ret_time_bytes);
