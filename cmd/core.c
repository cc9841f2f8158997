/* SPDX-License-Identifier: MIT */
/* pysample core: the stacks in a core file. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/core_target.h"
#include "cmd/core_threads.h"
#include "cmd/options.h"
#include "cmd/output_file.h"
#include "cmd/print.h"
#include "cmd/tasks.h"
#include "output/dump.h"
#include "sampler/sampler.h"

static const char help[] =
	"usage: pysample core [OPTION]… CORE\n"
	"\n"
	"Prints why a process died and the stack of each of its Python threads, most recent\n"
	"call last, from a core file: one that the kernel wrote, or gdb's gcore; from 3.14 on\n"
	"also the tasks of asyncio: what each awaits, and which tasks await it. The thread\n"
	"that crashed comes first. Nothing is executed, and the program itself need not be\n"
	"there.\n"
	"\n"
	"      --json         one JSON object, frames outermost first\n"
	"      --locals       also the arguments and local variables of each frame\n"
	"      --max-value N  cut their values after N characters (default: 100); implies\n"
	"                     --locals\n"
	"  -v, --verbose      say how the interpreter was found\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 printed, 1 error, 2 usage, 3 no Python in it or an unknown version,\n"
	"4 permission denied.\n"
	"\n"
	"Examples:\n"
	"  pysample core core.1234\n"
	"  pysample core --json core.1234 | jq '.threads[] | select(.crashed)'\n";

struct core_options {
	const char *path;
	bool json;
	bool verbose;
	uint32_t value_max_chars; /* 0: no variables */
};

enum { OPTION_JSON = 256, OPTION_LOCALS, OPTION_MAX_VALUE };

/* The arguments behind the options. False after an error was printed. */
static bool take_arguments(int argc, char **argv, struct core_options *options)
{
	if (optind + 1 != argc) {
		print_error("which core file? 'pysample core --help' has examples");
		return false;
	}
	options->path = argv[optind];
	return true;
}

/* EXIT_OK, or another one after an error was printed; *ret_done if --help was all to be done. */
static enum exit_status parse_options(int argc, char **argv, struct core_options *options,
				      bool *ret_done)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, OPTION_JSON},
		{"locals", no_argument, NULL, OPTION_LOCALS},
		{"max-value", required_argument, NULL, OPTION_MAX_VALUE},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static const char short_options[] = ":vh";
	int option;

	*ret_done = false;
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_JSON:
			options->json = true;
			break;
		case OPTION_LOCALS:
			if (!options->value_max_chars)
				options->value_max_chars = VALUE_USUAL_CHARS;
			break;
		case OPTION_MAX_VALUE:
			if (!parse_value_chars(optarg, &options->value_max_chars))
				return EXIT_USAGE;
			break;
		case 'v':
			options->verbose = true;
			break;
		case 'h':
			(void)fputs(help, stdout);
			*ret_done = true;
			return print_finish(EXIT_OK);
		default:
			print_option_error(option, short_options, argv);
			return EXIT_USAGE;
		}
	}
	return take_arguments(argc, argv, options) ? EXIT_OK : EXIT_USAGE;
}

static void print_found(const struct core_target *target)
{
	const struct runtime *runtime = &target->runtime;

	print_note("_PyRuntime at 0x%llx by %s in %s", (unsigned long long)runtime->addr,
		   runtime->found_by, runtime->image_path);
}

/* Say what is missing of the core. */
static void find_problems(const struct core_target *target, const struct core_threads *threads,
			  struct problems *problems)
{
	const struct core *core = target->core;

	if (core->missing_bytes)
		problems_add(problems, "core truncated: %llu of %llu bytes",
			     (unsigned long long)core->file_bytes,
			     (unsigned long long)core->file_bytes + core->missing_bytes);
	if (core->notes.is_cut)
		problems_add(problems, "the notes are cut off: threads may be missing");
	if (threads->nr_without_stack)
		problems_add(
			problems,
			"the C stack of %zu of %zu threads is missing from the core: it is cut "
			"off, or made by a gdb before 18, which writes zeros for the stacks "
			"of glibc 2.42",
			threads->nr_without_stack, threads->nr_samples);
	if (threads->nr_bridged)
		problems_add(problems, "%zu of %zu stacks lack links between their frames",
			     threads->nr_bridged, threads->nr_samples);
	if (threads->list_err)
		problems_add(problems, "the list of threads is damaged: some may be missing");
	if (threads->nr_broken)
		problems_add(problems, "%zu of %zu stacks could not be followed to the bottom",
			     threads->nr_broken, threads->nr_samples);
}

static enum exit_status write_dump(const struct core_options *options,
				   const struct core_target *target,
				   const struct core_threads *threads, struct dump *dump,
				   struct message *reterr)
{
	const struct core *core = target->core;
	const struct core_death *death = &core->notes.death;
	const struct mapping *executable = core_executable(core);
	struct problems problems = {0};
	const struct post_mortem post_mortem = {
		.core_path = target->path,
		.executable = executable ? executable->path : NULL,
		.signal = death->signal,
		.code = death->code,
		.has_addr = death->has_addr,
		.has_sender = death->has_sender,
		.addr = death->addr,
		.sender_pid = death->sender_pid,
		.sender_uid = death->sender_uid,
		.core_bytes = core->file_bytes,
		.truncated_bytes = core->missing_bytes,
		.nr_native_threads = core->notes.nr_threads - threads->nr_python,
		.problems = &problems,
	};
	const struct run_info info = {
		.command_line = core->notes.psinfo.arguments,
		.pid = core->notes.psinfo.pid,
		.python = target->version,
	};
	struct output_file output;
	int err = output_file_open(NULL, &output, reterr);

	find_problems(target, threads, &problems);
	dump_set_post_mortem(dump, &post_mortem);
	if (!err)
		err = output_file_begin(&output, reterr);
	if (!err)
		err = output_file_finish(&output,
					 options->json
						 ? dump_write_json(dump, &info, output.stream)
						 : dump_write_text(dump, &info, output.stream),
					 reterr);
	dump_set_post_mortem(dump, NULL);
	problems_done(&problems);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* The status and the sentence for an error of the sampler. */
static enum exit_status explain(const struct core_target *target, int err, struct message *reterr)
{
	if (err == -ENOMEM)
		message_set(reterr, "out of memory");
	else
		message_set(reterr, "the threads in %s could not be read: %s", target->path,
			    strerror(-err));
	return EXIT_ERROR;
}

static enum exit_status dump_core(const struct core_options *options, struct core_target *target,
				  struct message *reterr)
{
	const struct sampler_looks looks = {
		.details = true,
		.still = true,
		.value_max_chars = options->value_max_chars,
	};
	struct sampler *sampler = NULL;
	struct core_threads threads = {0};
	struct dump *dump = dump_create();
	enum exit_status status;
	int err = -ENOMEM;

	if (dump)
		err = core_threads_init(&threads, target->core, dump_sink(dump));
	if (!err)
		err = sampler_create(NULL, &target->names.memory, &target->runtime.build,
				     target->runtime.addr, &sampler);
	if (dump && looks.value_max_chars)
		dump_want_variables(dump);
	if (!err) {
		sampler_set_looks(sampler, &looks);
		err = sampler_dump(sampler, &threads.sink);
		threads.list_err = sampler_list_error(sampler);
	}
	if (!err)
		err = tasks_dump(sampler, &target->core->maps, &threads.sink, dump);
	status = err ? explain(target, err, reterr)
		     : write_dump(options, target, &threads, dump, reterr);
	dump_destroy(dump);
	sampler_destroy(sampler);
	core_threads_done(&threads);
	return status;
}

enum exit_status command_core(int argc, char **argv)
{
	struct core_options options = {0};
	struct message message = {0};
	struct core_target target;
	bool done;
	enum exit_status status = parse_options(argc, argv, &options, &done);

	if (status != EXIT_OK || done)
		return status;
	status = core_target_open(options.path, &target, &message);
	if (status == EXIT_OK && options.verbose)
		print_found(&target);
	if (status == EXIT_OK)
		status = dump_core(&options, &target, &message);
	if (status != EXIT_OK)
		print_error("%s", message.text);
	core_target_close(&target);
	return status;
}
