/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_target.h"

#include <errno.h>
#include <string.h>

#include "procmem/permission.h"
#include "procmem/sysroot.h"

static enum exit_status open_process(pid_t pid, struct jit_target *target, struct message *reterr)
{
	int err = process_open(pid, &target->process, reterr);

	if (err)
		return err == -EPERM ? EXIT_PERMISSION : EXIT_ERROR;
	live_memory_init(&target->live, &target->process);
	target->sources = jit_sources_create(&target->process, &target->live.memory);
	if (target->sources)
		return EXIT_OK;
	message_set(reterr, "out of memory");
	return EXIT_ERROR;
}

static enum exit_status open_file(const char *path, struct jit_target *target,
				  struct message *reterr)
{
	const int fd = sysroot_open_named(path);
	int err;

	if (fd < 0) {
		message_set(reterr, "cannot open %s: %s", path,
			    fd == -ENOENT ? "there is no such regular file" : strerror(-fd));
		return fd == -EPERM ? EXIT_PERMISSION : EXIT_ERROR;
	}
	target->sources = jit_sources_create(NULL, NULL);
	err = target->sources ? jit_sources_add_file(target->sources, fd, path) : -ENOMEM;
	if (!err)
		return EXIT_OK;
	message_set(reterr, "out of memory");
	return EXIT_ERROR;
}

enum exit_status jit_target_open(const struct jit_options *options, struct jit_target *ret_target,
				 struct message *reterr)
{
	*ret_target = (struct jit_target){.process = PROCESS_CLOSED};
	return options->path ? open_file(options->path, ret_target, reterr)
			     : open_process(options->pid, ret_target, reterr);
}

void jit_target_close(struct jit_target *target)
{
	jit_sources_destroy(target->sources);
	process_close(&target->process);
}

bool jit_target_has_ended(const struct jit_target *target)
{
	pid_t tid;

	return jit_target_is_process(target) && process_live_thread(&target->process, &tid) != 0;
}

/*
 * Check the only file, which was named by the user: what is a note for other files is an error
 * here.
 */
static enum exit_status check_file(const struct jit_sources *sources, struct message *reterr)
{
	uint32_t nr_files, nr_codes;
	const struct jit_file *file = jit_sources_files(sources, &nr_files);

	(void)jit_map_codes(jit_sources_map(sources), &nr_codes);
	if (file->error)
		message_set(reterr, "cannot read %s: %s", file->path,
			    jit_target_error_text(file->error));
	else if (file->perf_map && !nr_codes && perf_map_nr_bad_lines(file->perf_map))
		message_set(
			reterr,
			"%s is neither a jitdump nor a perf map: it has neither a jitdump header "
			"nor a perf map line",
			file->path);
	else
		return EXIT_OK;
	return EXIT_ERROR;
}

/* Set the message for an error of reading the process, and return the status. */
static enum exit_status explain(const struct jit_target *target, int err, struct message *reterr)
{
	if (err == -EPERM) {
		permission_explain(&target->process, reterr);
		return EXIT_PERMISSION;
	}
	if (err == -ESRCH) {
		message_set(reterr, "process %d has ended", target->process.pid);
		return EXIT_NO_SAMPLE;
	}
	message_set(reterr, "cannot read process %d: %s", target->process.pid, strerror(-err));
	return EXIT_ERROR;
}

enum exit_status jit_target_refresh(struct jit_target *target, bool is_final,
				    struct message *reterr)
{
	int err = jit_sources_refresh(target->sources, is_final);

	if (!err && !jit_target_is_process(target))
		return check_file(target->sources, reterr);
	if (!err || (err == -ESRCH && is_final))
		return EXIT_OK;
	return explain(target, err, reterr);
}

enum exit_status jit_target_add_trampolines(struct jit_target *target, struct message *reterr)
{
	int err = jit_target_is_process(target) ? jit_sources_add_trampolines(target->sources) : 0;

	return err ? explain(target, err, reterr) : EXIT_OK;
}

const char *jit_target_error_text(int error)
{
	switch (error) {
	case -EPERM:
		return "it belongs to another user than the process, or is not a regular file";
	case -EBADMSG:
		return "it is not a jitdump";
	case -ENOTSUP:
		return "it is a jitdump of an unknown version";
	case -E2BIG:
		return "it has more bytes outside records, or more lines, than any real jitdump";
	default:
		return strerror(-error);
	}
}
