/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "cmd/print.h"

static const char help[] =
	"usage: pysample jit [OPTION]… PID|FILE\n"
	"\n"
	"Lists the code that a process has made while it runs, by address: of each function\n"
	"where it is, how long it is, since when, which source tells of it, and its name. The\n"
	"process need not be Python, and is not stopped. Sources are\n"
	"  jitdump   the files jit-PID.dump that it has mapped (python3 -X perf_jit, V8, the\n"
	"            JVM with its agent, LLVM); they also tell lines and how to unwind\n"
	"  gdb       the list for debuggers in its memory (CPython 3.15's JIT, numba, LLVM)\n"
	"  libunwind the list for libunwind in its memory: what calls _U_dyn_register\n"
	"  perf map  /tmp/perf-PID.map (python3 -X perf, node --perf-basic-prof)\n"
	"  memory    trampolines of CPython that are in no file yet; not with --watch\n"
	"  executors what the JIT of CPython 3.14 has made, without names; not with --watch\n"
	"and those of the processes that it was forked from, up to the fork. FILE is a jitdump\n"
	"or a perf map; ./1234 if its name is a number.\n"
	"\n"
	"      --watch      print each function when it appears, until the process ends or\n"
	"                   Ctrl-C\n"
	"      --json       one JSON object; with --watch one for each function, a line each\n"
	"      --verify     check the jitdumps: what is wrong at which offset, and how many\n"
	"                   records of each kind there are\n"
	"      --dump ADDR  write the function at that address to the file of -o as an ELF\n"
	"                   object that objdump -dl, readelf and gdb read: its code, symbol,\n"
	"                   lines and unwind information, as far as they are known\n"
	"  -o, --output FILE  where --dump writes\n"
	"  -h, --help       this text\n"
	"\n"
	"Exit status: 0 printed, 1 error, or --verify found damage, 2 usage, 4 permission\n"
	"denied, 5 no source was found, nothing to check, or no function at ADDR.\n"
	"\n"
	"Examples:\n"
	"  pysample jit $(pgrep -n python3)\n"
	"  pysample jit --verify /tmp/jit-1234.dump\n"
	"  pysample jit --dump 0x7f3c60a01200 -o f.o 1234 && objdump -dl f.o\n";

enum { OPTION_DUMP = 256, OPTION_JSON, OPTION_VERIFY, OPTION_WATCH };

/* An address in hexadecimal, "0x" before it or not. */
static bool parse_addr(const char *text, remote_addr *ret_addr)
{
	char *end;

	errno = 0;
	*ret_addr = strtoull(text, &end, 16);
	if (isxdigit((unsigned char)*text) && !*end && !errno)
		return true;
	print_error("--dump takes an address in hexadecimal, not '%s'", text);
	return false;
}

/* One task only; false after an error was printed. */
static bool set_task(struct jit_options *options, enum jit_task task)
{
	if (options->task != JIT_TASK_LIST && options->task != task) {
		print_error("only one of --watch, --verify and --dump can be done at a time");
		return false;
	}
	options->task = task;
	return true;
}

/* False after an error was printed, or for what getopt_long() did not take. */
static bool take_option(int option, struct jit_options *options)
{
	switch (option) {
	case OPTION_DUMP:
		return set_task(options, JIT_TASK_DUMP) && parse_addr(optarg, &options->dump_addr);
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_VERIFY:
		return set_task(options, JIT_TASK_VERIFY);
	case OPTION_WATCH:
		return set_task(options, JIT_TASK_WATCH);
	case 'o':
		options->output_path = optarg;
		return true;
	default:
		return false;
	}
}

/* What was said as a whole. False after an error was printed. */
static bool check_options(const struct jit_options *options)
{
	const bool is_dump = options->task == JIT_TASK_DUMP;

	if (is_dump && !options->output_path)
		print_error("--dump needs a file to write to: -o FILE");
	else if (!is_dump && options->output_path)
		print_error("-o is for --dump; what is listed goes to stdout");
	else if (options->json && is_dump)
		print_error("--dump writes an ELF object, no JSON");
	else
		return true;
	return false;
}

/* The process or file that must be the only argument left. False after an error was printed. */
static bool parse_target(int argc, char **argv, struct jit_options *options)
{
	if (argc - optind != 1) {
		print_error(argc == optind ? "a process id or a file is missing"
					   : "one process or file at a time");
		return false;
	}
	if (!parse_pid(argv[optind], &options->pid))
		options->path = argv[optind];
	return true;
}

enum exit_status jit_options_parse(int argc, char **argv, struct jit_options *ret_options,
				   bool *ret_done)
{
	static const struct option long_options[] = {
		{"dump", required_argument, NULL, OPTION_DUMP},
		{"json", no_argument, NULL, OPTION_JSON},
		{"output", required_argument, NULL, 'o'},
		{"verify", no_argument, NULL, OPTION_VERIFY},
		{"watch", no_argument, NULL, OPTION_WATCH},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static const char short_options[] = ":ho:";
	int option;

	*ret_options = (struct jit_options){.task = JIT_TASK_LIST};
	*ret_done = false;
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			*ret_done = true;
			return print_finish(EXIT_OK);
		}
		if (option == '?' || option == ':')
			print_option_error(option, short_options, argv);
		if (!take_option(option, ret_options))
			return EXIT_USAGE;
	}
	if (!check_options(ret_options) || !parse_target(argc, argv, ret_options))
		return EXIT_USAGE;
	return EXIT_OK;
}
