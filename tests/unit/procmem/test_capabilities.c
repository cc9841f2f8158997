/* SPDX-License-Identifier: MIT */
#include "procmem/capabilities.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include "procmem/procfile.h"

/* A capability set of the calling thread, as in /proc. */
static uint64_t read_set(const char *name)
{
	const int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	char text[4096];
	uint64_t set = 0;

	cr_assert(ge(int, fd, 0));
	cr_assert(lt(i64, 0, procfile_read(fd, text, sizeof(text))));
	(void)close(fd);
	cr_assert(procfile_number(text, name, 0, 16, &set));
	return set;
}

Test(capabilities, effective_capabilities_are_reported)
{
	cr_expect(eq(u64, capabilities_effective(), read_set("CapEff")));
}

Test(capabilities, only_kept_capabilities_remain)
{
	const uint64_t before = read_set("CapPrm");
	const uint64_t permitted = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_CHOWN) |
				   CAPABILITY(CAP_CHECKPOINT_RESTORE);
	const uint64_t effective = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_CHECKPOINT_RESTORE);

	cr_assert(zero(int, capabilities_keep(effective, permitted)));
	cr_expect(eq(u64, read_set("CapPrm"), before & permitted));
	cr_expect(eq(u64, read_set("CapEff"), before & effective));
	cr_expect(zero(u64, read_set("CapInh")));
	cr_expect(eq(u64, capabilities_effective(), before & effective));
}

Test(capabilities, permitted_capabilities_become_effective_again)
{
	const uint64_t both = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_CHOWN);
	const uint64_t before = read_set("CapPrm");

	cr_assert(zero(int, capabilities_keep(CAPABILITY(CAP_SYS_PTRACE), both)));
	cr_assert(zero(int, capabilities_keep(both, both)));
	cr_expect(eq(u64, read_set("CapEff"), before & both));
}

Test(capabilities, dropped_capabilities_cannot_be_regained)
{
	cr_assert(zero(int, capabilities_keep(0, 0)));
	cr_assert(zero(int, capabilities_keep(UINT64_MAX, UINT64_MAX)));
	cr_expect(zero(u64, read_set("CapEff")));
	cr_expect(zero(u64, read_set("CapPrm")));
}

Test(capabilities, no_new_privs_is_set)
{
	capabilities_set_no_new_privs();
	cr_expect(eq(u64, read_set("NoNewPrivs"), 1));
}
