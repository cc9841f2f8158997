/* SPDX-License-Identifier: MIT */
/*
 * Names of sockets: the addresses of both ends, as the kernel lists them for the network namespace
 * of a process. Source: proc_pid_net(5); net/ipv4/tcp_ipv4.c (get_tcp4_sock()), net/unix/af_unix.c
 * (unix_seq_show()).
 */
#pragma once

#include <stdint.h>

#include "procmem/process.h"

/* Two IPv6 addresses with ports, or a path, which is cut. */
#define SOCKET_NAME_MAX_BYTES 192

/*
 * Make the name of the socket of a process with that inode number: "socket 127.0.0.1:40000 →
 * 127.0.0.1:5432", "socket listening on [::]:80", "unix socket /run/x", "socket:[4711]" if it is in
 * no list. Bytes of a path are not escaped.
 */
void socket_name_read(const struct process *process, uint64_t inode,
		      char name[SOCKET_NAME_MAX_BYTES]);

/*
 * Find the socket in the text of a list: net/tcp, tcp6, udp or udp6; or net/unix. Returns 0, or
 * -ENOENT (it is not there, or its line is malformed).
 */
int socket_name_find_inet(const char *text, uint64_t inode, char name[SOCKET_NAME_MAX_BYTES]);
int socket_name_find_unix(const char *text, uint64_t inode, char name[SOCKET_NAME_MAX_BYTES]);
