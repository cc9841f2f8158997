/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_rights.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "cmd/print.h"
#include "output/text/text.h"
#include "procmem/capabilities.h"
#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/* Needed for writing where others own the folder or the file that is replaced. */
#define WRITING (CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_FOWNER))

/* Capabilities that were split off CAP_SYS_ADMIN, which still includes them. */
#define SPLIT_OFF \
	(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_BPF) | CAPABILITY(CAP_CHECKPOINT_RESTORE))

/* Whether every use of a BPF program needs CAP_BPF, as before Linux 5.19. */
static bool bpf_needs_capability(void)
{
	struct utsname name;
	unsigned long major, minor;
	char *end;

	if (uname(&name) != 0)
		return true;
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major < 5 || (major == 5 && minor < 19);
}

/*
 * Whether perf_event_open takes CAP_SYS_ADMIN, whatever CAP_PERFMON permits: kernels of Debian and
 * Ubuntu define a kernel.perf_event_paranoid above 2, which is Debian's default. Others have no
 * such value unless somebody has set it.
 */
static bool events_need_admin(void)
{
	cleanup_close const int fd =
		procfile_open(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid");
	char text[16];

	return fd >= 0 && procfile_read(fd, text, sizeof(text)) > 0 && strtol(text, NULL, 10) > 2;
}

/*
 * Returns the capabilities that reading needs: for the memory, the files that the target maps, and
 * the events of threads that come later.
 */
static uint64_t rights_to_read(const struct session *session)
{
	const struct engine_options *engine = &session->options.engine;
	uint64_t rights = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH) |
			  CAPABILITY(CAP_CHECKPOINT_RESTORE) | CAPABILITY(CAP_PERFMON) |
			  CAPABILITY(CAP_IPC_LOCK);

	/* A process that comes later may have another layout, which needs a program of its own. */
	if (session->tree || (session->root.engine.interrupts && bpf_needs_capability()))
		rights |= CAPABILITY(CAP_BPF);
	/* Such a program for a process that comes later must find the kernel's tick. */
	if (session->tree && engine->is_named && engine->kind == ENGINE_TICK)
		rights |= CAPABILITY(CAP_SYSLOG);
	/*
	 * CAP_SYS_ADMIN replaces those that we do not have, or that kernels before 5.8 and 5.9
	 * lack.
	 */
	if ((rights & SPLIT_OFF & ~capabilities_effective()) || events_need_admin())
		rights |= CAPABILITY(CAP_SYS_ADMIN);
	/* For the kernel stacks of waiting threads, and for kernel symbols after an exec. */
	if (engine->kernel_frames)
		rights |= CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYSLOG);
	/* Our child gets our signals, whatever user it runs as. */
	if (session->is_child)
		rights |= CAPABILITY(CAP_KILL);
	return rights;
}

static void print_kept(uint64_t rights)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{CAP_SYS_PTRACE, "sys_ptrace"},
		{CAP_DAC_READ_SEARCH, "dac_read_search"},
		{CAP_CHECKPOINT_RESTORE, "checkpoint_restore"},
		{CAP_PERFMON, "perfmon"},
		{CAP_IPC_LOCK, "ipc_lock"},
		{CAP_BPF, "bpf"},
		{CAP_SYS_ADMIN, "sys_admin"},
		{CAP_SYSLOG, "syslog"},
		{CAP_KILL, "kill"},
		{CAP_DAC_OVERRIDE, "dac_override"},
		{CAP_CHOWN, "chown"},
		{CAP_FOWNER, "fowner"},
	};
	struct text line = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!(rights & CAPABILITY(names[i].number)))
			continue;
		text_puts(&line, line.length ? ", " : "");
		text_puts(&line, names[i].name);
	}
	if (!line.error)
		print_note("capabilities kept: %s", text_string(&line));
	text_done(&line);
}

void session_drop_rights(struct session *session)
{
	uint64_t needed;

	if (!(capabilities_effective() & CAPABILITY(CAP_SYS_PTRACE)))
		return;
	needed = rights_to_read(session);
	/* Check who owns the outputs while the right to write to everything is not in effect. */
	if (capabilities_keep(needed, needed | WRITING))
		return;
	if (outputs_are_ours(&session->options.outputs) &&
	    output_file_is_ours(&session->stats_output))
		(void)capabilities_keep(needed, needed);
	else
		(void)capabilities_keep(needed | WRITING, needed | WRITING);
	capabilities_set_no_new_privs();
	session->bpf.has_fewer_rights = true;
	if (session->options.verbose)
		print_kept(capabilities_effective());
}
