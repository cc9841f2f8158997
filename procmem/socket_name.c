/* SPDX-License-Identifier: MIT */
#include "procmem/socket_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Limit on a list: 400,000 connections. In a longer one the socket is not searched. */
#define LIST_MAX_BYTES ((size_t)64 << 20)

/* Fields of a line of tcp or udp, and of unix, from 0. */
enum { INET_LOCAL = 1, INET_REMOTE = 2, INET_STATE = 3, INET_INODE = 9 };
enum { UNIX_FLAGS = 3, UNIX_INODE = 6, UNIX_PATH = 7 };

/* States of include/net/tcp_states.h. */
enum { STATE_SYN_SENT = 2, STATE_LISTEN = 10 };

/* __SO_ACCEPTCON of include/linux/net.h. */
enum { UNIX_ACCEPTS = 1 << 16 };

/* An address and its port, in brackets if it is IPv6. */
enum { ADDRESS_MAX_BYTES = INET6_ADDRSTRLEN + sizeof("[]:65535") };

/* Returns field i of a line, or NULL if the line is shorter. */
static const char *field(const char *line, int i)
{
	line += strspn(line, " ");
	for (; i > 0; i--) {
		line += strcspn(line, " \n");
		line += strspn(line, " ");
	}
	return *line && *line != '\n' ? line : NULL;
}

/* Returns the line of a socket, by the index of the inode's field; NULL if there is none. */
static const char *find_line(const char *text, int inode_index, uint64_t inode)
{
	for (const char *line = text; *line;) {
		const char *number = field(line, inode_index);
		char *end;

		if (number && isdigit((unsigned char)*number) &&
		    strtoull(number, &end, 10) == inode && (*end == ' ' || *end == '\n' || !*end))
			return line;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return NULL;
}

/* Parse nr hexadecimal digits, at most 8. Returns false if there are fewer. */
static bool parse_hex(const char **text, int nr, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (int i = 0; i < nr; i++) {
		const char digit = (*text)[i];

		if (!isxdigit((unsigned char)digit))
			return false;
		number = number << 4 |
			 (uint32_t)(isdigit((unsigned char)digit) ? digit - '0'
								  : (digit | 0x20) - 'a' + 10);
	}
	*text += nr;
	*ret_number = number;
	return true;
}

/* Format "0100007F:1F90" or its form for IPv6: words of 32 bits, as in memory. */
static bool format_address(const char *text, char address[ADDRESS_MAX_BYTES], bool *ret_is_any)
{
	const size_t nr_digits = text ? strspn(text, "0123456789abcdefABCDEF") : 0;
	const bool is_v6 = nr_digits == 32;
	char name[INET6_ADDRSTRLEN];
	uint32_t words[4];
	uint32_t port;

	if (nr_digits != 8 && !is_v6)
		return false;
	for (size_t i = 0; i < nr_digits / 8; i++)
		if (!parse_hex(&text, 8, &words[i]))
			return false;
	if (*text++ != ':' || !parse_hex(&text, 4, &port) ||
	    !inet_ntop(is_v6 ? AF_INET6 : AF_INET, words, name, sizeof(name)))
		return false;
	(void)snprintf(address, ADDRESS_MAX_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", name, port);
	*ret_is_any = !port;
	return true;
}

int socket_name_find_inet(const char *text, uint64_t inode, char name[SOCKET_NAME_MAX_BYTES])
{
	const char *line = find_line(text, INET_INODE, inode);
	const char *state_text = line ? field(line, INET_STATE) : NULL;
	char local[ADDRESS_MAX_BYTES], remote[ADDRESS_MAX_BYTES];
	bool is_unbound, is_unconnected;
	uint32_t state;

	if (!state_text || !parse_hex(&state_text, 2, &state) ||
	    !format_address(field(line, INET_LOCAL), local, &is_unbound) ||
	    !format_address(field(line, INET_REMOTE), remote, &is_unconnected))
		return -ENOENT;
	if (state == STATE_LISTEN)
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket listening on %s", local);
	else if (is_unconnected)
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket %s", local);
	else
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket %s → %s%s", local, remote,
			       state == STATE_SYN_SENT ? ", not connected yet" : "");
	return 0;
}

int socket_name_find_unix(const char *text, uint64_t inode, char name[SOCKET_NAME_MAX_BYTES])
{
	const char *line = find_line(text, UNIX_INODE, inode);
	const char *flags_text = line ? field(line, UNIX_FLAGS) : NULL;
	const char *path = line ? field(line, UNIX_PATH) : NULL;
	uint32_t flags;

	if (!flags_text || !parse_hex(&flags_text, 8, &flags))
		return -ENOENT;
	(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "unix socket%s%s%.*s",
		       flags & UNIX_ACCEPTS ? " listening on" : "", path ? " " : "",
		       path ? (int)strcspn(path, "\n") : 0, path ? path : "");
	return 0;
}

void socket_name_read(const struct process *process, uint64_t inode,
		      char name[SOCKET_NAME_MAX_BYTES])
{
	static const struct {
		const char *file;
		int (*find)(const char *, uint64_t, char[SOCKET_NAME_MAX_BYTES]);
	} lists[] = {
		{"net/tcp", socket_name_find_inet},  {"net/tcp6", socket_name_find_inet},
		{"net/unix", socket_name_find_unix}, {"net/udp", socket_name_find_inet},
		{"net/udp6", socket_name_find_inet},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cleanup_free char *text = NULL;
		size_t size;

		if (process_read_whole_file(process, lists[i].file, LIST_MAX_BYTES, &text, &size) ==
			    0 &&
		    lists[i].find(text, inode, name) == 0)
			return;
	}
	(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket:[%" PRIu64 "]", inode);
}
