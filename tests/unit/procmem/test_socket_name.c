/* SPDX-License-Identifier: MIT */
#include "procmem/socket_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define TCP_HEAD \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define TCP_REST " 00000000:00000000 00:00000000 00000000     0        0 "

/* Lines as Linux 6.1 writes them, and malformed ones; the socket is always 4711. */
Test(socket_name, finds_both_ends)
{
	static const struct {
		const char *text;
		int err;
		const char *name;
	} cases[] = {
		{TCP_HEAD "   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "4711 1 0 20\n", 0,
		 "socket 127.0.0.1:40000 → 127.0.0.1:5432"},
		{TCP_HEAD "   0: 0100007F:9C40 0100007F:1538 02" TCP_REST "4711 1\n", 0,
		 "socket 127.0.0.1:40000 → 127.0.0.1:5432, not connected yet"},
		{TCP_HEAD "   0: 0100007F:1F90 00000000:0000 0A" TCP_REST "471 1\n"
			  "   1: 0100007F:1F91 00000000:0000 0A" TCP_REST "4711 1\n",
		 0, "socket listening on 127.0.0.1:8081"},
		{"   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 07" TCP_REST
		 "4711",
		 0, "socket [::1]:80"},
		{"", -ENOENT, NULL},
		{"\n\n\n", -ENOENT, NULL},
		{TCP_HEAD, -ENOENT, NULL},
		{"   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "47110 1\n", -ENOENT, NULL},
		{"   0: 0100007F:9C40 0100007F:1538 01" TCP_REST "4711x 1\n", -ENOENT, NULL},
		{"   0: 0100007F:9C40 0100007F 01" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"   0: 0100007F:9C40 0100007G:1538 01" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"   0: 0100007F0:9C40 0100007F:1538 01" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"   0: :9C40 0100007F:1538 01" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"   0: 0100007F:9C4 0100007F:1538 01" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"   0: 0100007F:9C40 0100007F:1538 x" TCP_REST "4711 1\n", -ENOENT, NULL},
		{"0 1 2 3 4 5 6 7 8 4711", -ENOENT, NULL},
		{"0 1 2 3 4 5 6 7 8 99999999999999999999999", -ENOENT, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[SOCKET_NAME_MAX_BYTES] = "";

		cr_expect(eq(int, socket_name_find_inet(cases[i].text, 4711, name), cases[i].err),
			  "case %zu", i);
		if (cases[i].name)
			cr_expect(eq(str, name, (char *)cases[i].name), "case %zu", i);
	}
}

Test(socket_name, finds_unix_sockets)
{
	static const struct {
		const char *text;
		int err;
		const char *name;
	} cases[] = {
		{"Num       RefCount Protocol Flags    Type St Inode Path\n"
		 "0000000000000000: 00000003 00000000 00000000 0001 03 4711\n",
		 0, "unix socket"},
		{"0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/a b\nx", 0,
		 "unix socket listening on /run/a b"},
		{"0000000000000000: 00000002 00000000 00000000 0001 03 4711 @abstract", 0,
		 "unix socket @abstract"},
		{"0000000000000000: 00000002 00000000 0000000 0001 03 4711 /x\n", -ENOENT, NULL},
		{"0000000000000000: 00000002 00000000 00000000 0001 03 /4711 4711\n", -ENOENT,
		 NULL},
		{"", -ENOENT, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[SOCKET_NAME_MAX_BYTES] = "";

		cr_expect(eq(int, socket_name_find_unix(cases[i].text, 4711, name), cases[i].err),
			  "case %zu", i);
		if (cases[i].name)
			cr_expect(eq(str, name, (char *)cases[i].name), "case %zu", i);
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
	cr_assert(zero(int, socket_name_find_unix(text, 4711, name)));
	cr_expect(eq(sz, strlen(name), sizeof(name) - 1));
}
