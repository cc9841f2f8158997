/* SPDX-License-Identifier: MIT */
#include "procmem/socket_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define TCP_HEAD \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define TCP_REST " 00000000:00000000 00:00000000 00000000     0        0 "

/* Make the name of socket 4711 from the only text of a list. */
static void find(const char *text, bool is_unix, char name[SOCKET_NAME_MAX_BYTES])
{
	struct socket_list list = {.rows = NULL};
	char *copy = strdup(text);

	cr_assert(ne(ptr, copy, NULL));
	cr_assert(zero(int, socket_list_add(&list, copy, is_unix)));
	socket_list_name(&list, 4711, name);
	socket_list_done(&list);
}

/* Lines as Linux 6.1 writes them, and malformed ones; the socket is always 4711. */
Test(socket_name, finds_both_ends)
{
	static const struct {
		const char *text;
		const char *name; /* NULL: it has none */
	} cases[] = {
		{TCP_HEAD "   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "4711 1 0 20\n",
		 "socket 127.0.0.1:40000 → 127.0.0.1:5432"},
		{TCP_HEAD "   0: 0100007F:9C40 0100007F:1538 02" TCP_REST "4711 1\n",
		 "socket 127.0.0.1:40000 → 127.0.0.1:5432, not connected yet"},
		{TCP_HEAD "   0: 0100007F:1F90 00000000:0000 0A" TCP_REST "471 1\n"
			  "   1: 0100007F:1F91 00000000:0000 0A" TCP_REST "4711 1\n",
		 "socket listening on 127.0.0.1:8081"},
		{"   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 07" TCP_REST
		 "4711",
		 "socket [::1]:80"},
		{"", NULL},
		{"\n\n\n", NULL},
		{TCP_HEAD, NULL},
		{"   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "47110 1\n", NULL},
		{"   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "4711x 1\n", NULL},
		{"   0: 0100007F:9C40 0100007F 01" TCP_REST "4711 1\n", NULL},
		{"   0: 0100007F:9C40 0100007G:1538 01" TCP_REST "4711 1\n", NULL},
		{"   0: 0100007F0:9C40 0100007F:1538 01" TCP_REST "4711 1\n", NULL},
		{"   0: :9C40 0100007F:1538 01" TCP_REST "4711 1\n", NULL},
		{"   0: 0100007F:9C4 0100007F:1538 01" TCP_REST "4711 1\n", NULL},
		{"   0: 0100007F:9C40 0100007F:1538 x" TCP_REST "4711 1\n", NULL},
		{"0 1 2 3 4 5 6 7 8 4711", NULL},
		{"0 1 2 3 4 5 6 7 8 99999999999999999999999", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[SOCKET_NAME_MAX_BYTES] = "";

		find(cases[i].text, false, name);
		cr_expect(eq(str, name, (char *)(cases[i].name ? cases[i].name : "socket:[4711]")),
			  "case %zu", i);
	}
}

Test(socket_name, finds_unix_sockets)
{
	static const struct {
		const char *text;
		const char *name; /* NULL: it has none */
	} cases[] = {
		{"Num       RefCount Protocol Flags    Type St Inode Path\n"
		 "0000000000000000: 00000003 00000000 00000000 0001 03 4711\n",
		 "unix socket"},
		{"0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/a b\nx",
		 "unix socket listening on /run/a b"},
		{"0000000000000000: 00000002 00000000 00000000 0001 03 4711 @abstract",
		 "unix socket @abstract"},
		{"0000000000000000: 00000002 00000000 0000000 0001 03 4711 /x\n", NULL},
		{"0000000000000000: 00000002 00000000 00000000 0001 03 /4711 4711\n", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[SOCKET_NAME_MAX_BYTES] = "";

		find(cases[i].text, true, name);
		cr_expect(eq(str, name, (char *)(cases[i].name ? cases[i].name : "socket:[4711]")),
			  "case %zu", i);
	}
}

/* A path of any length is cut. */
Test(socket_name, cuts_paths)
{
	char text[2048] = "0: 00000002 00000000 00000000 0001 03 4711 ";
	char name[SOCKET_NAME_MAX_BYTES];
	const size_t head = strlen(text);

	memset(text + head, 'p', sizeof(text) - head - 1);
	text[sizeof(text) - 1] = '\0';
	find(text, true, name);
	cr_expect(eq(sz, strlen(name), sizeof(name) - 1));
}
