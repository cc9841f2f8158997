/* SPDX-License-Identifier: MIT */
#include "procmem/socket_name.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/* Limit on a list: 400,000 connections. A longer one is not read. */
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

/* Make a name from a line of tcp or udp. Returns false if it is malformed. */
static bool name_inet(const char *line, char name[SOCKET_NAME_MAX_BYTES])
{
	const char *state_text = field(line, INET_STATE);
	char local[ADDRESS_MAX_BYTES], remote[ADDRESS_MAX_BYTES];
	bool is_unbound, is_unconnected;
	uint32_t state;

	if (!state_text || !parse_hex(&state_text, 2, &state) ||
	    !format_address(field(line, INET_LOCAL), local, &is_unbound) ||
	    !format_address(field(line, INET_REMOTE), remote, &is_unconnected))
		return false;
	if (state == STATE_LISTEN)
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket listening on %s", local);
	else if (is_unconnected)
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket %s", local);
	else
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket %s → %s%s", local, remote,
			       state == STATE_SYN_SENT ? ", not connected yet" : "");
	return true;
}

/* Make a name from a line of unix. Returns false if it is malformed. */
static bool name_unix(const char *line, char name[SOCKET_NAME_MAX_BYTES])
{
	const char *flags_text = field(line, UNIX_FLAGS);
	const char *path = field(line, UNIX_PATH);
	uint32_t flags;

	if (!flags_text || !parse_hex(&flags_text, 8, &flags))
		return false;
	(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "unix socket%s%s%.*s",
		       flags & UNIX_ACCEPTS ? " listening on" : "", path ? " " : "",
		       path ? (int)strcspn(path, "\n") : 0, path ? path : "");
	return true;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct socket_row *one = a, *two = b;

	return (one->inode > two->inode) - (one->inode < two->inode);
}

/* Parse the inode of a line. Returns 0 if there is none, as of a connection that was closed. */
static uint64_t inode_of(const char *line, bool is_unix)
{
	const char *number = field(line, is_unix ? UNIX_INODE : INET_INODE);
	uint64_t inode;
	char *end;

	if (!number || !isdigit((unsigned char)*number))
		return 0;
	errno = 0;
	inode = strtoull(number, &end, 10);
	return !errno && (*end == ' ' || *end == '\n' || !*end) ? inode : 0;
}

int socket_list_add(struct socket_list *list, char *text, bool is_unix)
{
	assert(list->nr_texts < SOCKET_LIST_MAX_TEXTS);
	list->texts[list->nr_texts++] = text;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const uint64_t inode = inode_of(line, is_unix);
		struct socket_row *rows;

		if (!inode)
			continue;
		rows = array_reserve(list->rows, list->nr_rows + 1, &list->max_rows, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		list->rows = rows;
		rows[list->nr_rows++] = (struct socket_row){inode, line, is_unix};
	}
	if (list->nr_rows)
		qsort(list->rows, list->nr_rows, sizeof(*list->rows), compare_inodes);
	return 0;
}

int socket_list_read(struct socket_list *list, const struct process *process)
{
	static const char *const files[SOCKET_LIST_MAX_TEXTS] = {
		"net/tcp", "net/tcp6", "net/udp", "net/udp6", "net/unix",
	};

	for (size_t i = 0; i < SOCKET_LIST_MAX_TEXTS; i++) {
		char *text = NULL;
		size_t size;
		int err = process_read_whole_file(process, files[i], LIST_MAX_BYTES, &text, &size);

		if (!err)
			err = socket_list_add(list, text, strcmp(files[i], "net/unix") == 0);
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}

void socket_list_done(struct socket_list *list)
{
	for (size_t i = 0; i < list->nr_texts; i++)
		free(list->texts[i]);
	free(list->rows);
	*list = (struct socket_list){.rows = NULL};
}

void socket_list_name(const struct socket_list *list, uint64_t inode,
		      char name[SOCKET_NAME_MAX_BYTES])
{
	const struct socket_row wanted = {.inode = inode};
	const struct socket_row *row = list->nr_rows ? bsearch(&wanted, list->rows, list->nr_rows,
							       sizeof(wanted), compare_inodes)
						     : NULL;

	if (!row || !(row->is_unix ? name_unix(row->line, name) : name_inet(row->line, name)))
		(void)snprintf(name, SOCKET_NAME_MAX_BYTES, "socket:[%" PRIu64 "]", inode);
}
