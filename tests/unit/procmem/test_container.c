/* SPDX-License-Identifier: MIT */
#include "procmem/tree/container.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "4f1c0e9b2a33000000000000000000000000000000000000000000000000abcd"

Test(container, is_the_innermost_that_the_path_names)
{
	static const struct {
		const char *cgroups, *id;
	} rows[] = {
		{"0::/system.slice/docker-" DIGITS ".scope\n", "4f1c0e9b2a33"},
		{"12:cpu,cpuacct:/docker/" DIGITS "\n11:pids:/\n", "4f1c0e9b2a33"},
		{"11:pids:/\n12:cpu,cpuacct:/docker/" DIGITS "/init", "4f1c0e9b2a33"},
		{"0::/user.slice/libpod-" DIGITS ".scope/container\n", "4f1c0e9b2a33"},
		{"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" DIGITS ".scope\n",
		 "4f1c0e9b2a33"},
		{"0::/kubepods/besteffort/pod1/" DIGITS "\n", "4f1c0e9b2a33"},
		{"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" DIGITS
		 "\n",
		 "4f1c0e9b2a33"},
		{"0::/crio-" DIGITS "\n", "4f1c0e9b2a33"},
		{"0::/lxc/web1/system.slice\n", "web1"},
		{"0::/lxc.payload/web1\n", "web1"},
		{"0::/lxc.payload.web1/init.scope\n", "web1"},
		{"0::/machine.slice/machine-web1.scope\n", "web1"},
		{"0::/lxc/web1/docker/" DIGITS "\n", "4f1c0e9b2a33"},
		{"0::/user.slice/user-0.slice/session-1.scope\n", ""},
		{"0::/x" DIGITS "\n", ""},
		{"0::/" DIGITS "g\n", ""},
		{"0::/machine-.scope\n", ""},
		{"0::/lxc/\n", ""},
		{"0::/lxc.payload.a\x1b[1m\n", "a?[1m"},
		{"0::/lxc/01234567890123456789012345678901234567\n",
		 "01234567890123456789012345678901"},
		{"0::/\n", ""},
		{"no path", ""},
		{"\n\n", ""},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char id[CONTAINER_ID_MAX_BYTES];
		char *text = strdup(rows[i].cgroups);

		cr_assert(ne(ptr, text, NULL));
		container_parse(text, id);
		cr_expect(eq(str, id, (char *)rows[i].id), "%s", rows[i].cgroups);
		free(text);
	}
}
