/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_options.h"

#include <elf.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/options.h"
#include "cmd/print.h"
#include "procmem/cleanup.h"
#include "procmem/sysroot.h"

#define SUMMARY_MAX_ROWS 30

static const char help[] =
	"usage: pysample core [OPTION]… CORE… [EXE]\n"
	"\n"
	"Prints why a process died and the stack of each of its Python threads, most recent\n"
	"call last, from a core file: one that the kernel wrote, or gdb's gcore; packed (.zst,\n"
	".gz, .xz, .lz4) or not; - is stdin. From 3.14 on also the tasks of asyncio: what each\n"
	"awaits, and which tasks await it. The thread that crashed comes first. Nothing is\n"
	"executed, and the program itself need not be there; EXE is that program, if it is\n"
	"not where it was.\n"
	"\n"
	"Of several cores it prints where they died: each distinct stack once, the most\n"
	"frequent first.\n"
	"\n"
	"      --json         one JSON object for each core, frames outermost first\n"
	"      --locals       also the arguments and local variables of each frame\n"
	"      --max-value N  cut their values after N characters (default: 100); implies\n"
	"                     --locals\n"
	"      --native[=all] also the C frames, where they belong between those of Python; all:\n"
	"                     of the threads that Python does not know, too\n"
	"      --modules      also the programs and libraries: where they were loaded, their\n"
	"                     build IDs, and which file was used, or why none\n"
	"      --sysroot DIR  where programs and libraries of the process are, as in its root;\n"
	"                     they are used unless the core says that they are others\n"
	"      --lib-path DIR:DIR  folders to look for them in by their names\n"
	"  -v, --verbose      say how the interpreter was found\n"
	"  -h, --help         this text\n"
	"\n"
	"A profile of one or many cores, each thread of each core as one sample:\n"
	"  -o, --output FILE  where to write; - is stdout; several are allowed\n"
	"  -f, --format NAME  of the -o that it stands next to, or of stdout; default: from the\n"
	"                     suffix of FILE\n"
	"      --crashed      of each core only the thread that crashed\n"
	"  -t, --threads      a root frame per thread\n"
	"      --plumbing     with --native: also frames of the C functions that are the same in\n"
	"                     every program, from _start to Py_RunMain and around each call\n"
	"      --lines        a row per line that was executing, instead of one per function\n"
	"      --no-source    no source lines in the formats that show them\n";

static const char examples[] =
	"\n"
	"Exit status: 0 printed, 1 error, 2 usage, 3 no Python in it or an unknown version,\n"
	"4 permission denied, 5 no thread crashed (--crashed). Of several cores 0 if one could be\n"
	"read; what is wrong with others is said.\n"
	"\n"
	"Examples:\n"
	"  pysample core core.1234\n"
	"  pysample core --native core.1234\n"
	"  pysample core --json core.1234 | jq '.threads[] | select(.crashed)'\n"
	"  coredumpctl dump 1234 | pysample core -\n"
	"  pysample core /var/lib/systemd/coredump/core.shop.*        where do they die?\n"
	"  pysample core --crashed --native /var/lib/systemd/coredump/* -o crashes.html\n";

enum {
	OPTION_JSON = 256,
	OPTION_LOCALS,
	OPTION_MAX_VALUE,
	OPTION_MODULES,
	OPTION_NATIVE,
	OPTION_SYSROOT,
	OPTION_LIB_PATH,
	OPTION_CRASHED,
	OPTION_PLUMBING,
	OPTION_LINES,
	OPTION_NO_SOURCE,
};

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"locals", no_argument, NULL, OPTION_LOCALS},
	{"max-value", required_argument, NULL, OPTION_MAX_VALUE},
	{"modules", no_argument, NULL, OPTION_MODULES},
	{"native", optional_argument, NULL, OPTION_NATIVE},
	{"sysroot", required_argument, NULL, OPTION_SYSROOT},
	{"lib-path", required_argument, NULL, OPTION_LIB_PATH},
	{"verbose", no_argument, NULL, 'v'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"crashed", no_argument, NULL, OPTION_CRASHED},
	{"threads", no_argument, NULL, 't'},
	{"plumbing", no_argument, NULL, OPTION_PLUMBING},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"no-source", no_argument, NULL, OPTION_NO_SOURCE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char short_options[] = ":o:f:tvh";

/* Of which threads; false after an error was printed. */
static bool take_native(struct core_options *options, const char *threads)
{
	if (threads && strcmp(threads, "all") != 0) {
		print_error("--native is for the threads of Python, --native=all for all");
		return false;
	}
	options->dump.native = threads ? CORE_NATIVE_ALL : CORE_NATIVE_PYTHON;
	return true;
}

/* Apply one option; false after an error was printed, or if there is no such option. */
static bool apply_option(struct core_options *options, int option, const char *value)
{
	switch (option) {
	case 'o':
		return outputs_take_path(&options->outputs, value);
	case 'f':
		return outputs_take_format(&options->outputs, value);
	case 't':
		options->profile.by_thread = true;
		return true;
	case 'v':
		options->verbose = true;
		return true;
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_LOCALS:
		if (!options->dump.value_max_chars)
			options->dump.value_max_chars = VALUE_USUAL_CHARS;
		return true;
	case OPTION_MAX_VALUE:
		return parse_value_chars(value, &options->dump.value_max_chars);
	case OPTION_MODULES:
		options->dump.modules = true;
		return true;
	case OPTION_NATIVE:
		return take_native(options, value);
	case OPTION_SYSROOT:
		options->places.sysroot = value;
		return true;
	case OPTION_LIB_PATH:
		options->places.folders = value;
		return true;
	case OPTION_CRASHED:
		options->crashed_only = true;
		return true;
	case OPTION_PLUMBING:
		options->profile.keep_plumbing = true;
		return true;
	case OPTION_LINES:
		options->profile.by_line = true;
		return true;
	case OPTION_NO_SOURCE:
		options->layout.no_source = true;
		return true;
	default:
		return false;
	}
}

/* Whether there is an ELF file at path that is a program or a library, and no core. */
static bool is_program(const char *path)
{
	/* A core may come through a FIFO: who writes to it must not see it opened and closed. */
	cleanup_close int fd = sysroot_open_named(path);
	Elf64_Ehdr header;

	return fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

/* Take the cores, and the program behind them if there is one. */
static void take_arguments(int argc, char **argv, struct core_options *options)
{
	if (argc - optind > 1 && is_program(argv[argc - 1]))
		options->places.executable = argv[--argc];
	for (int i = optind; i < argc; i++)
		options->paths[options->nr_paths++] = argv[i];
}

static bool shows_groups(const struct core_options *options)
{
	return options->nr_paths > 1 && !options->json && !options->wants_profile;
}

/* Whether stdin is asked for more often than it can be read. */
static bool reads_stdin_twice(const struct core_options *options)
{
	size_t nr = 0;

	for (size_t i = 0; i < options->nr_paths; i++)
		nr += strcmp(options->paths[i], "-") == 0;
	return nr > 1 || (nr && options->outputs.nr > 1);
}

/* Whether the options go together; false after an error was printed. */
static bool check(struct core_options *options)
{
	const char *error = NULL;

	options->wants_profile = options->outputs.nr || options->outputs.next;
	if (!options->nr_paths)
		error = "which core file? 'pysample core --help' has examples";
	else if (options->wants_profile && options->json)
		error = "--json is for the threads of each core: -f jsonl is for profiles";
	else if (!options->wants_profile &&
		 (options->crashed_only || options->profile.by_thread || options->profile.by_line ||
		  options->profile.keep_plumbing))
		error = "--crashed, --threads, --lines and --plumbing are for profiles: add -o or "
			"-f";
	else if (options->profile.keep_plumbing && !options->dump.native)
		error = "--plumbing is for stacks with C frames: give --native, too";
	else if (shows_groups(options) && (options->dump.value_max_chars || options->dump.modules))
		error = "of several cores it is shown where they died: --locals and --modules are "
			"for one, or with --json for each";
	else if (reads_stdin_twice(options))
		error = "stdin can be read once: name - once, with one output";
	if (error)
		print_error("%s", error);
	return !error;
}

static enum exit_status complete(struct core_options *options)
{
	if (!check(options))
		return EXIT_USAGE;
	if (options->wants_profile &&
	    (!outputs_choose(&options->outputs) || !outputs_can_count(&options->outputs)))
		return EXIT_USAGE;
	return EXIT_OK;
}

static enum exit_status print_help(void)
{
	(void)fputs(help, stdout);
	(void)fputs("\nFormats, and the suffixes that choose them:\n", stdout);
	outputs_print_formats(stdout);
	(void)fputs(examples, stdout);
	return print_finish(EXIT_OK);
}

enum exit_status core_options_parse(int argc, char **argv, struct core_options *options,
				    bool *ret_done)
{
	int option;

	*ret_done = false;
	*options = (struct core_options){
		.paths = calloc((size_t)argc + 1, sizeof(*options->paths)),
		.profile = {.mode = PROFILE_COUNT},
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};
	if (!options->paths) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (option == 'h') {
			*ret_done = true;
			return print_help();
		}
		if (option == '?' || option == ':')
			print_option_error(option, short_options, argv);
		if (!apply_option(options, option, optarg))
			return EXIT_USAGE;
	}
	take_arguments(argc, argv, options);
	return complete(options);
}

void core_options_done(struct core_options *options)
{
	outputs_discard(&options->outputs);
	free(options->paths);
}
