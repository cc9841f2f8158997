/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/clock.h"
#include "procmem/core/core_stack.h"
#include "procmem/core/unpack.h"
#include "procmem/tree/process_name.h"

/* Room for "core file " and a path. */
enum { NAME_MAX_BYTES = PATH_MAX + 16 };

/* Returns when the open file was last written (CLOCK_REALTIME); 0 if that is unknown. */
static uint64_t written_ns(int fd)
{
	struct stat status;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_mtim.tv_sec < 0)
		return 0;
	return timespec_ns(status.st_mtim);
}

/* Open the file or stdin, unpack it, and open the core in it. */
static enum exit_status open_core(struct core_target *target, struct message *reterr)
{
	struct message reason = {0};
	struct unpacked unpacked;
	int fd = strcmp(target->path, "-") == 0
			 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			 : open(target->path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	if (err) {
		message_set(reterr, "%s could not be opened: %s", target->path, strerror(-err));
		return err == -EACCES || err == -EPERM ? EXIT_PERMISSION : EXIT_ERROR;
	}
	target->written_ns = written_ns(fd);
	err = unpack(fd, &unpacked, &reason);
	if (!err) {
		target->unpack_problem = unpacked.problem;
		err = core_open(unpacked.fd, &target->core, &reason);
	}
	if (err)
		message_set(reterr, "%s: %s", target->path, reason.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* Whether the core has any private memory of its process, such as the heap. */
static bool has_private_memory(const struct core *core, struct remote_memory *memory)
{
	uint8_t byte;

	for (size_t i = 0; i < core->maps.nr_mappings; i++) {
		const struct mapping *mapping = &core->maps.mappings[i];

		if (mapping->writable && !mapping->inode &&
		    remote_memory_read(memory, mapping->start, &byte, sizeof(byte)) == 0)
			return true;
	}
	return false;
}

/* Set the message and return the exit status after no interpreter was found. */
static enum exit_status explain(const struct core_target *target, int err, struct message *reterr)
{
	if (err == -ENOMEM) {
		message_set(reterr, "out of memory");
		return EXIT_ERROR;
	}
	if (!has_private_memory(target->core, core_memory(target->core)))
		message_set(
			reterr,
			"%s has no memory of its process except mapped files: it is truncated, or "
			"coredump_filter excluded anonymous memory (see core(5))",
			target->path);
	else if (!reterr->text[0])
		message_set(reterr, "no CPython interpreter was found in core file %s",
			    target->path);
	/* The interpreter may be in the part that was not unpacked. */
	if (target->unpack_problem.text[0]) {
		const struct message found = *reterr;

		message_set(reterr, "%s; %s", found.text, target->unpack_problem.text);
	}
	return EXIT_NOT_PYTHON;
}

/*
 * Make the short name, from the interpreter's list of arguments or from psinfo. A list that begins
 * with the script is preceded by the program.
 */
static int make_name(struct core_target *target, bool is_from_interpreter)
{
	const struct sys_info *sys = &target->sys_info;
	const struct mapping *executable = core_executable(target->core);
	const char *program = executable ? executable->path : sys->executable;
	char name[PROCESS_NAME_MAX_BYTES];
	struct text list = {0};
	int err;

	if (is_from_interpreter) {
		if (!sys->has_original && program)
			text_append(&list, program, strlen(program) + 1);
		for (size_t i = 0; i < sys->nr_arguments; i++)
			text_append(&list, sys->arguments[i], strlen(sys->arguments[i]) + 1);
	}
	if (!list.length) {
		text_puts(&list, target->core->notes.psinfo.arguments);
		for (size_t i = 0; i < list.length; i++)
			if (list.bytes[i] == ' ')
				list.bytes[i] = '\0';
	}
	process_name_format(text_string(&list), list.length, name);
	err = list.error;
	text_done(&list);
	text_puts(&target->command_line, name);
	return err ? err : target->command_line.error;
}

/*
 * Make the command line, from all arguments if the interpreter has them. Before 3.10 it has only
 * those of the script, or none in some programs that embed it; then the arguments in psinfo are
 * better, unless the kernel cut them off.
 */
static int make_command_line(struct core_target *target)
{
	const struct sys_info *sys = &target->sys_info;
	const char *noted = target->core->notes.psinfo.arguments;
	const size_t noted_bytes = strlen(noted);
	const bool is_whole = noted_bytes > 0 && noted_bytes < CORE_ARGUMENTS_MAX_BYTES - 2;
	const bool is_from_interpreter = sys->arguments && (sys->has_original || !is_whole);
	struct text *text = &target->command_line;

	if (!target->full_command)
		return make_name(target, is_from_interpreter);
	if (is_from_interpreter)
		for (size_t i = 0; i < sys->nr_arguments; i++) {
			text_puts(text, i ? " " : "");
			text_puts(text, sys->arguments[i]);
		}
	if (!text->length)
		text_puts(text, noted);
	while (text->length && text->bytes[text->length - 1] == ' ')
		text_cut(text, text->length - 1);
	return text->error;
}

/*
 * Search the core, and read what the interpreter knows of itself. Returns errors of
 * runtime_find().
 */
static int find_interpreter(struct core_target *target, struct message *reterr)
{
	const struct mapping *executable = core_executable(target->core);
	char name[NAME_MAX_BYTES];
	const struct program program = {
		.name = name,
		.exe_path = executable ? executable->path : "",
		.maps = &target->core->maps,
		.memory = core_memory(target->core),
		.images = &target->files->source,
	};
	int err;

	(void)snprintf(name, sizeof(name), "core file %s", target->path);
	err = runtime_find(&program, NULL, &target->runtime, reterr);
	if (err)
		return err;
	version_format(target->runtime.build.version_hex, target->version);
	err = type_names_init(&target->names, program.memory, &target->runtime.build,
			      target->runtime.addr);
	if (!err)
		err = sys_info_read(&target->names.memory, &target->runtime.build,
				    target->runtime.addr, &target->sys_info);
	return err ? err : make_command_line(target);
}

enum exit_status core_target_open(const char *path, const struct core_file_places *places,
				  bool full_command, struct core_target *ret_target,
				  struct message *reterr)
{
	struct core_target *target = ret_target;
	enum exit_status status;
	int err;

	*target =
		(struct core_target){.path = path, .places = places, .full_command = full_command};
	status = open_core(target, reterr);
	if (status != EXIT_OK)
		return status;
	err = core_files_open(target->core, places, &target->files, reterr);
	if (err == -ENOMEM)
		return explain(target, err, reterr);
	if (err)
		return EXIT_ERROR;
	err = find_interpreter(target, reterr);
	target->was_raised_again =
		!err && core_fault_find(target->core, &target->files->source, &target->fault);
	return err ? explain(target, err, reterr) : EXIT_OK;
}

/* Returns what else is known of the cause of death, or NULL. */
static const char *find_cause(const struct core_target *target)
{
	const struct core_notes *notes = &target->core->notes;
	const struct core_fault *fault = &target->fault;
	const bool was_full =
		target->was_raised_again
			? core_stack_overflowed(target->core, &fault->death, fault->sp_addr)
			: notes->nr_threads && core_stack_overflowed(target->core, &notes->death,
								     notes->threads[0].sp_addr);

	return was_full ? "The thread's C stack is full: the recursion is too deep or endless."
			: NULL;
}

const struct core_file *core_target_executable(const struct core_target *target)
{
	const struct mapping *mapping = core_executable(target->core);

	return mapping ? core_files_find(target->files, mapping) : NULL;
}

void core_target_describe(const struct core_target *target, struct post_mortem *ret_post_mortem)
{
	const struct core *core = target->core;
	const struct core_death *death =
		target->was_raised_again ? &target->fault.death : &core->notes.death;
	const struct mapping *executable = core_executable(core);

	*ret_post_mortem = (struct post_mortem){
		.core_path = target->path,
		.executable = executable ? executable->path : target->sys_info.executable,
		.arguments = target->full_command ? (const char *const *)target->sys_info.arguments
						  : NULL,
		.nr_arguments = target->full_command ? target->sys_info.nr_arguments : 0,
		.signal = death->signal,
		.code = death->code,
		.has_addr = death->has_addr,
		.has_sender = death->has_sender,
		.addr = death->addr,
		.sender_pid = death->sender_pid,
		.sender_uid = death->sender_uid,
		.sent_by_itself = death->has_sender && core->notes.psinfo.is_known &&
				  death->sender_pid == core->notes.psinfo.pid,
		.raised_again = target->was_raised_again,
		.finding = find_cause(target),
		.core_bytes = core->file_bytes,
		.truncated_bytes = core->missing_bytes,
	};
}

int core_target_sampler(struct core_target *target, const struct sampler_extras *extras,
			struct sampler **ret_sampler)
{
	int err = sampler_create(NULL, &target->names.memory, &target->runtime.build,
				 target->runtime.addr, ret_sampler);

	if (!err)
		sampler_set_extras(*ret_sampler, extras);
	return err;
}

enum exit_status core_target_explain(const struct core_target *target, int err,
				     struct message *reterr)
{
	if (err == -ENOMEM)
		message_set(reterr, "out of memory");
	else
		message_set(reterr, "the threads in %s could not be read: %s", target->path,
			    strerror(-err));
	return EXIT_ERROR;
}

void core_target_close(struct core_target *target)
{
	text_done(&target->command_line);
	sys_info_done(&target->sys_info);
	type_names_done(&target->names);
	core_files_close(target->files);
	core_close(target->core);
}
