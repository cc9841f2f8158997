/* SPDX-License-Identifier: MIT */
/*
 * Names of sockets: the addresses of both ends, as the kernel lists them for a network namespace.
 * Source: proc_pid_net(5); net/ipv4/tcp_ipv4.c (get_tcp4_sock()), net/unix/af_unix.c
 * (unix_seq_show()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/process.h"

/* Two IPv6 addresses with ports, or a path, which is cut. */
#define SOCKET_NAME_MAX_BYTES 192

/* TCP and UDP, each for IPv4 and IPv6, and unix. */
enum { SOCKET_LIST_MAX_TEXTS = 5 };

struct socket_row {
	uint64_t inode;
	const char *line; /* borrowed from a text of the list */
	bool is_unix;
};

/* The sockets of a network namespace. Empty when all zero. */
struct socket_list {
	char *texts[SOCKET_LIST_MAX_TEXTS]; /* owned, as the kernel wrote them */
	size_t nr_texts;
	struct socket_row *rows; /* owned; ascending by inode */
	uint32_t nr_rows, max_rows;
};

/*
 * Read the sockets of a process's network namespace. Lists that cannot be read are left out.
 * Returns 0 or -ENOMEM; socket_list_done() must follow in any case.
 */
int socket_list_read(struct socket_list *list, const struct process *process);
void socket_list_done(struct socket_list *list);

/*
 * Add a text, allocated, which the list then owns: that of net/tcp, tcp6, udp or udp6, or else of
 * net/unix. A list takes SOCKET_LIST_MAX_TEXTS. Returns 0 or -ENOMEM.
 */
int socket_list_add(struct socket_list *list, char *text, bool is_unix);

/*
 * Make the name of the socket with that inode number: "socket 127.0.0.1:40000 → 127.0.0.1:5432",
 * "socket listening on [::]:80", "unix socket /run/x"; "socket:[4711]" if it is not in the list, or
 * its line is malformed. Bytes of a path are not escaped.
 */
void socket_list_name(const struct socket_list *list, uint64_t inode,
		      char name[SOCKET_NAME_MAX_BYTES]);
