/* SPDX-License-Identifier: MIT */
#include "procmem/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One word for every 32 capabilities. */
enum { NR_WORDS = _LINUX_CAPABILITY_U32S_3 };

static const struct __user_cap_header_struct own = {.version = _LINUX_CAPABILITY_VERSION_3};

/* The header is copied because the kernel writes to it if it does not know the version. */
static int read_own(struct __user_cap_data_struct ret_words[NR_WORDS])
{
	struct __user_cap_header_struct header = own;

	return syscall(SYS_capget, &header, ret_words) < 0 ? -errno : 0;
}

uint64_t capabilities_effective(void)
{
	struct __user_cap_data_struct words[NR_WORDS];

	if (read_own(words))
		return UINT64_MAX;
	return (uint64_t)words[1].effective << 32 | words[0].effective;
}

int capabilities_keep(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct header = own;
	struct __user_cap_data_struct words[NR_WORDS];
	int err = read_own(words);

	if (err)
		return err;
	for (unsigned int i = 0; i < NR_WORDS; i++) {
		words[i].permitted &= (uint32_t)(permitted >> 32 * i);
		words[i].effective = words[i].permitted & (uint32_t)(effective >> 32 * i);
		words[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, words) < 0 ? -errno : 0;
}

void capabilities_set_no_new_privs(void)
{
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL);
}
