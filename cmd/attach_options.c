/* SPDX-License-Identifier: MIT */
#include "cmd/attach_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/options.h"
#include "cmd/print.h"

#define DEFAULT_RATE_HZ 1000.0

static const char help[] =
	"usage: pysample attach [OPTION]… PID\n"
	"\n"
	"Samples every thread of every interpreter of a running CPython process until it\n"
	"ends, the duration is over, or Ctrl-C; then writes the profile. The process is\n"
	"never stopped, and nothing is written to it but one word of 3.15 (--read-only).\n"
	"If it replaces its program by one with CPython (exec), sampling goes on into the\n"
	"same profile.\n"
	"\n"
	"  -r, --rate HZ          samples a second: 100, 1khz, 20k, max (default: 1khz)\n"
	"      --jitter           each sample anywhere in its interval, so that a program\n"
	"                         with a rhythm of its own is seen as it is (default)\n"
	"      --no-jitter        samples evenly spaced\n"
	"  -d, --duration TIME    10, 2.5, 500ms, 90s, 5m, 1h (default: until the process\n"
	"                         ends)\n"
	"  -o, --output FILE      where to write; - is stdout (default: stdout)\n"
	"  -f, --format NAME      collapsed: a line per stack, for flamegraph.pl, inferno,\n"
	"                         speedscope; summary: a table of functions. Default: from\n"
	"                         the suffix of FILE (.collapsed, .folded, .txt; .summary),\n"
	"                         else summary on a terminal and collapsed in a file or pipe\n"
	"      --mode NAME        wall: all samples, by the time that passed (default); cpu: by\n"
	"                         the CPU time that a thread used since its last sample; gil:\n"
	"                         only samples that hold the GIL; exception: only samples that\n"
	"                         handle an exception\n"
	"      --cpu              measure CPU times in the other modes, too\n"
	"      --gc, --no-gc      a frame <GC> where garbage is collected, or none (default:\n"
	"                         --gc)\n"
	"  -t, --threads          a root frame per thread\n"
	"      --functions        a row per function, with the line it begins at (default)\n"
	"      --lines            a row per line that was executing\n"
	"      --stats-json FILE  the counters of the run as one JSON object\n"
	"      --wait TIME        how long to wait for a process that has no interpreter yet\n"
	"                         (default: 500ms, if it was started just now or has loaded\n"
	"                         CPython; with --wait any process); 0: not at all\n"
	"      --read-only        never write to the process: on 3.15 deep stacks are sampled\n"
	"                         faster with one word of it that is there for profilers\n"
	"  -q, --quiet            nothing on stderr but errors\n"
	"  -v, --verbose          say what was found and what sampling cost\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit status: 0 profile written, 1 error, 2 usage, 3 not a Python process or an\n"
	"unknown version, 4 permission denied, 5 no sample could be taken, or none is of\n"
	"the --mode.\n"
	"\n"
	"Examples:\n"
	"  pysample attach -d 10 1234                     a table of the hottest functions\n"
	"  pysample attach -d 10 1234 | flamegraph.pl > out.svg\n"
	"  pysample attach -r 10k -d 5 -t -o out.collapsed 1234\n";

static bool parse_format(const char *name, enum format *ret_format)
{
	if (strcmp(name, "collapsed") == 0)
		*ret_format = FORMAT_COLLAPSED;
	else if (strcmp(name, "summary") == 0)
		*ret_format = FORMAT_SUMMARY;
	else
		return false;
	return true;
}

/* The format of a file that none was given for. False if its suffix tells another one. */
static bool format_from_path(const char *path, enum format *ret_format)
{
	static const struct {
		const char *suffix;
		enum format format;
	} suffixes[] = {
		{".collapsed", FORMAT_COLLAPSED},
		{".folded", FORMAT_COLLAPSED},
		{".summary", FORMAT_SUMMARY},
		{".txt", FORMAT_COLLAPSED},
	};
	const char *name = strrchr(path, '/');
	const char *suffix = strrchr(name ? name : path, '.');
	struct stat status;

	for (size_t i = 0; suffix && i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (strcmp(suffix, suffixes[i].suffix) == 0) {
			*ret_format = suffixes[i].format;
			return true;
		}
	*ret_format = FORMAT_COLLAPSED;
	return !suffix || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

/* Choose the format where -f did not; false after an error was printed. */
static bool choose_format(struct attach_options *options)
{
	bool to_stdout = !options->output_path || strcmp(options->output_path, "-") == 0;

	if (options->format != FORMAT_AUTO)
		return true;
	if (to_stdout) {
		options->format = isatty(STDOUT_FILENO) ? FORMAT_SUMMARY : FORMAT_COLLAPSED;
		return true;
	}
	if (format_from_path(options->output_path, &options->format))
		return true;
	print_error("the name %s does not tell a format: add -f collapsed or -f summary",
		    options->output_path);
	return false;
}

enum {
	OPTION_LINES = 256,
	OPTION_FUNCTIONS,
	OPTION_JITTER,
	OPTION_NO_JITTER,
	OPTION_STATS_JSON,
	OPTION_WAIT,
	OPTION_MODE,
	OPTION_CPU,
	OPTION_GC,
	OPTION_NO_GC,
	OPTION_READ_ONLY,
};

static const struct option long_options[] = {
	{"rate", required_argument, NULL, 'r'},
	{"jitter", no_argument, NULL, OPTION_JITTER},
	{"no-jitter", no_argument, NULL, OPTION_NO_JITTER},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"cpu", no_argument, NULL, OPTION_CPU},
	{"gc", no_argument, NULL, OPTION_GC},
	{"no-gc", no_argument, NULL, OPTION_NO_GC},
	{"threads", no_argument, NULL, 't'},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"functions", no_argument, NULL, OPTION_FUNCTIONS},
	{"stats-json", required_argument, NULL, OPTION_STATS_JSON},
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"read-only", no_argument, NULL, OPTION_READ_ONLY},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char short_options[] = ":r:d:o:f:tqvh";

/* Apply an option that takes no value; false if there is no such one. */
static bool apply_flag(struct attach_options *options, int option)
{
	switch (option) {
	case 't':
		options->profile.by_thread = true;
		return true;
	case OPTION_LINES:
	case OPTION_FUNCTIONS:
		options->profile.by_line = option == OPTION_LINES;
		return true;
	case OPTION_JITTER:
	case OPTION_NO_JITTER:
		options->jitter = option == OPTION_JITTER;
		return true;
	case OPTION_CPU:
		options->looks.cpu = true;
		return true;
	case OPTION_GC:
	case OPTION_NO_GC:
		options->looks.gc = option == OPTION_GC;
		return true;
	case OPTION_READ_ONLY:
		options->read_only = true;
		return true;
	case 'q':
		options->quiet = true;
		return true;
	case 'v':
		options->verbose = true;
		return true;
	default:
		return false;
	}
}

/* Apply one option; false after an error was printed, or if there is no such option. */
static bool apply_option(struct attach_options *options, int option, const char *value)
{
	switch (option) {
	case 'r':
		if (parse_rate(value, &options->rate_hz))
			return true;
		print_error("'%s' is not a rate: write 100, 1khz, 20k or max (0.01 Hz to 1 MHz)",
			    value);
		return false;
	case 'd':
		if (parse_duration(value, &options->duration_ns))
			return true;
		print_error("'%s' is not a duration: write 10, 2.5, 500ms, 90s, 5m or 1h", value);
		return false;
	case 'f':
		if (parse_format(value, &options->format))
			return true;
		print_error("there is no format '%s': write collapsed or summary", value);
		return false;
	case OPTION_MODE:
		if (profile_mode_parse(value, &options->profile.mode))
			return true;
		print_error("there is no mode '%s': write wall, cpu, gil or exception", value);
		return false;
	case 'o':
		options->output_path = value;
		return true;
	case OPTION_STATS_JSON:
		options->stats_path = value;
		return true;
	case OPTION_WAIT:
		return target_parse_wait(value, &options->wait);
	default:
		return apply_flag(options, option);
	}
}

enum exit_status attach_options_parse(int argc, char **argv, struct attach_options *options,
				      bool *ret_done)
{
	int option;

	*options = (struct attach_options){
		.rate_hz = DEFAULT_RATE_HZ,
		.jitter = true,
		.wait = TARGET_WAIT_DEFAULT,
		.looks = {.gc = true},
	};
	*ret_done = false;
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			*ret_done = true;
			return print_finish(EXIT_OK);
		}
		if (option == '?' || option == ':')
			print_option_error(option, short_options, argv);
		if (!apply_option(options, option, optarg))
			return EXIT_USAGE;
	}
	if (!parse_only_pid(argc, argv, optind, &options->pid) || !choose_format(options))
		return EXIT_USAGE;
	options->looks.cpu |= options->profile.mode == PROFILE_CPU;
	options->looks.exceptions = options->profile.mode == PROFILE_EXCEPTION;
	options->looks.states =
		options->profile.mode == PROFILE_GIL || options->profile.mode == PROFILE_EXCEPTION;
	return EXIT_OK;
}
