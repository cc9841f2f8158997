/* SPDX-License-Identifier: MIT */
/* pysample attach: samples a running process. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/output_file.h"
#include "cmd/print.h"
#include "cmd/target.h"
#include "output/collapsed.h"
#include "output/loss.h"
#include "output/profile.h"
#include "output/run_info.h"
#include "output/stats.h"
#include "output/summary.h"
#include "procmem/cleanup.h"
#include "procmem/procfile.h"
#include "sampler/sampler.h"

#define DEFAULT_RATE_HZ	 1000.0
#define SUMMARY_MAX_ROWS 30

/* So many trimmed samples, in percent, shift a profile enough to be told without -v. */
#define WORTH_A_NOTE 1.0

/* Set by SIGINT, SIGTERM and SIGHUP: finish the profile and write it. */
static volatile sig_atomic_t stop_requested;

enum format { FORMAT_AUTO, FORMAT_COLLAPSED, FORMAT_SUMMARY };

struct attach_options {
	pid_t pid;
	double rate_hz;
	uint64_t duration_ns;
	const char *output_path;
	const char *stats_path;
	enum format format;
	struct profile_options profile;
	bool quiet;
	bool verbose;
};

static const char help[] =
	"usage: pysample attach [OPTION]… PID\n"
	"\n"
	"Samples every thread of every interpreter of a running CPython process until it\n"
	"ends, the duration is over, or Ctrl-C; then writes the profile. The process is\n"
	"never stopped and nothing is written to it.\n"
	"\n"
	"  -r, --rate HZ          samples a second: 100, 1khz, 20k, max (default: 1khz)\n"
	"  -d, --duration TIME    10, 2.5, 500ms, 90s, 5m, 1h (default: until the process\n"
	"                         ends)\n"
	"  -o, --output FILE      where to write; - is stdout (default: stdout)\n"
	"  -f, --format NAME      collapsed: a line per stack, for flamegraph.pl, inferno,\n"
	"                         speedscope; summary: a table of functions. Default: from\n"
	"                         the suffix of FILE (.collapsed, .folded, .txt; .summary),\n"
	"                         else summary on a terminal and collapsed in a file or pipe\n"
	"  -t, --threads          a root frame per thread\n"
	"      --functions        a row per function, with the line it begins at (default)\n"
	"      --lines            a row per line that was executing\n"
	"      --stats-json FILE  the counters of the run as one JSON object\n"
	"  -q, --quiet            nothing on stderr but errors\n"
	"  -v, --verbose          say what was found and what sampling cost\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit status: 0 profile written, 1 error, 2 usage, 3 not a Python process or an\n"
	"unknown version, 4 permission denied, 5 no sample could be taken.\n"
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

enum { OPTION_LINES = 256, OPTION_FUNCTIONS, OPTION_STATS_JSON };

static const struct option long_options[] = {
	{"rate", required_argument, NULL, 'r'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"threads", no_argument, NULL, 't'},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"functions", no_argument, NULL, OPTION_FUNCTIONS},
	{"stats-json", required_argument, NULL, OPTION_STATS_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char short_options[] = ":r:d:o:f:tqvh";

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
	case 'o':
		options->output_path = value;
		return true;
	case 't':
		options->profile.by_thread = true;
		return true;
	case OPTION_LINES:
		options->profile.by_line = true;
		return true;
	case OPTION_FUNCTIONS:
		options->profile.by_line = false;
		return true;
	case OPTION_STATS_JSON:
		options->stats_path = value;
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

/* EXIT_OK, or another one after an error was printed; *ret_done if --help was all to be done. */
static enum exit_status parse_options(int argc, char **argv, struct attach_options *options,
				      bool *ret_done)
{
	int option;

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
	return EXIT_OK;
}

static void on_signal(int signal_number)
{
	if (stop_requested)
		_exit(128 + signal_number);
	stop_requested = 1;
}

/*
 * The first signal finishes the profile, a second one aborts. flags: SA_RESTART once
 * the profile is written, so that the first one does not end that; 0 before, where it
 * has to end the opening of a pipe that nobody reads.
 */
static void catch_signals(int flags)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction before;

		/* As nohup and shells without job control ask for it. */
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		(void)sigaction(signals[i], &action, NULL);
	}
	/* A closed pipe or a limit of size is an error of the write, to be reported as one. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * 1000u;
}

/* The peak of our own memory. ru_maxrss would count what our parent had before exec, too. */
static uint64_t max_rss_kib(void)
{
	cleanup_close int proc_fd = procfile_open(AT_FDCWD, "/proc/self/status");
	char text[4096];
	uint64_t kib = 0;

	if (proc_fd >= 0 && procfile_read(proc_fd, text, sizeof(text)) > 0)
		(void)procfile_number(text, "VmHWM", 0, 10, &kib);
	return kib;
}

static struct run_info describe_run(const struct attach_options *options,
				    const struct target *target)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (struct run_info){
		.command_line = target->command_line[0] ? target->command_line : NULL,
		.pid = target->process.pid,
		.python = target->version[0] ? target->version : NULL,
		.python_free_threaded = target->runtime.build.free_threaded,
		.python_newer_than_tested = target->runtime.build.newer_than_tested,
		.runtime_found_by = target->runtime.found_by,
		.asked_hz = options->rate_hz,
		.cpu_user_ns = timeval_ns(&usage.ru_utime),
		.cpu_sys_ns = timeval_ns(&usage.ru_stime),
		.max_rss_kib = max_rss_kib(),
	};
}

static struct summary_options summary_layout(FILE *out)
{
	struct winsize size;
	bool terminal = isatty(fileno(out));
	const char *no_colour = getenv("NO_COLOR");

	return (struct summary_options){
		.max_rows = SUMMARY_MAX_ROWS,
		.columns = terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0,
		.colour = terminal && (!no_colour || !*no_colour),
	};
}

/* What a run reads and writes. */
struct attach {
	struct attach_options options;
	struct target target;
	struct sampler *sampler;
	struct profile *profile;
	struct output_file output;
	struct output_file stats_output;
	struct sampler_stats stats;
};

static int write_profile(const struct attach *attach, const struct run_info *info, FILE *out)
{
	struct summary_options layout;

	if (attach->options.format == FORMAT_COLLAPSED)
		return collapsed_write(attach->profile, out);
	layout = summary_layout(out);
	return summary_write(attach->profile, &attach->stats, info, &layout, out);
}

static int write_stats(const struct attach *attach, const struct run_info *info, FILE *out)
{
	return stats_write_json(&attach->stats, info, out);
}

/* Write one file with one of the above; EXIT_ERROR after an error was printed. */
static enum exit_status write_file(const struct attach *attach, const struct run_info *info,
				   int (*write)(const struct attach *attach,
						const struct run_info *info, FILE *out),
				   struct output_file *file)
{
	struct message message = {0};
	int err = output_file_begin(file, &message);

	if (!err)
		err = output_file_finish(file, write(attach, info, file->stream), &message);
	if (err)
		print_error("%s", message.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* Write everything that was asked for and that there is something to say in. */
static enum exit_status write_outputs(struct attach *attach)
{
	struct run_info info = describe_run(&attach->options, &attach->target);
	enum exit_status profile_status = EXIT_OK, stats_status = EXIT_OK;

	catch_signals(SA_RESTART);
	if (attach->stats.samples)
		profile_status = write_file(attach, &info, write_profile, &attach->output);
	if (attach->options.stats_path)
		stats_status = write_file(attach, &info, write_stats, &attach->stats_output);
	return profile_status == EXIT_OK ? stats_status : profile_status;
}

/* One line that says what there is, and what was lost. */
static void print_end(const struct attach *attach, enum sampler_end end)
{
	static const char *const reasons[] = {
		[END_DURATION] = "",
		[END_STOPPED] = "stopped; ",
		[END_TARGET] = "the process has ended; ",
		[END_REPLACED] = "the process has replaced its program or ended its interpreter; ",
	};
	const struct sampler_stats *stats = &attach->stats;

	if (attach->options.quiet)
		return;
	print_note("%s%llu samples of %llu ticks in %.1f s, %.2f %% lost, %llu ticks late",
		   reasons[end], (unsigned long long)stats->samples,
		   (unsigned long long)stats->ticks, stats_wall_s(stats), loss_percent(stats),
		   (unsigned long long)stats->late_ticks);
	if (stats->trimmed && (attach->options.verbose || trimmed_percent(stats) >= WORTH_A_NOTE))
		print_note("%.2f %% without their innermost generators, which may not have run "
			   "just then: their time is the caller's",
			   trimmed_percent(stats));
	if (!attach->options.verbose)
		return;
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		if (stats->lost[loss])
			print_note("lost, %s: %llu", loss_name((enum sample_loss)loss),
				   (unsigned long long)stats->lost[loss]);
	print_note("%llu reads, %llu other system calls, latest tick %.1f µs late",
		   (unsigned long long)stats->reads, (unsigned long long)stats->other_syscalls,
		   (double)stats->max_lateness_ns / 1e3);
}

static void print_begin(const struct attach *attach)
{
	const struct attach_options *options = &attach->options;
	const struct runtime *runtime = &attach->target.runtime;

	if (options->quiet)
		return;
	print_note("sampling process %d, CPython %s%s", options->pid, attach->target.version,
		   options->duration_ns ? "" : "; Ctrl-C ends it and writes the profile");
	target_print_doubts(&attach->target);
	if (options->verbose)
		print_note("_PyRuntime at 0x%llx by %s in %s", (unsigned long long)runtime->addr,
			   runtime->found_by, runtime->image_path);
}

static enum exit_status open_outputs(struct attach *attach, struct message *reterr)
{
	const struct attach_options *options = &attach->options;

	if (output_file_open(options->output_path, &attach->output, reterr) != 0)
		return EXIT_ERROR;
	if (!options->stats_path)
		return EXIT_OK;
	if (output_file_open(options->stats_path, &attach->stats_output, reterr) != 0)
		return EXIT_ERROR;
	if (!output_file_same(&attach->output, &attach->stats_output))
		return EXIT_OK;
	message_set(reterr,
		    "-o and --stats-json name the same file: give one of them another name");
	return EXIT_USAGE;
}

/* Open what can be refused before the sampling begins. */
static enum exit_status prepare(struct attach *attach, struct message *reterr)
{
	const struct attach_options *options = &attach->options;
	enum exit_status status;
	int err;

	status = open_outputs(attach, reterr);
	if (status != EXIT_OK)
		return status;
	status = target_open(options->pid, &attach->target, reterr);
	if (status != EXIT_OK)
		return status;
	attach->profile = profile_create(&options->profile);
	err = attach->profile ? sampler_create(&attach->target.process, &attach->target.live.memory,
					       &attach->target.runtime.build,
					       attach->target.runtime.addr, &attach->sampler)
			      : -ENOMEM;
	return err ? target_explain(&attach->target, err, reterr) : EXIT_OK;
}

/* Why a run that went well has nothing to write. */
static void explain_no_sample(const struct attach *attach, enum sampler_end end,
			      struct message *reterr)
{
	const pid_t pid = attach->options.pid;

	if (loss_total(&attach->stats))
		message_set(reterr,
			    "no stack of process %d could be proven (%llu were tried): 'pysample "
			    "doctor %d' says more",
			    pid, (unsigned long long)loss_total(&attach->stats), pid);
	else if (end == END_TARGET)
		message_set(reterr, "process %d ended before the first sample", pid);
	else if (end == END_REPLACED)
		message_set(reterr, "the interpreter of process %d ended before the first sample",
			    pid);
	else if (end == END_STOPPED)
		message_set(reterr, "stopped before the first sample");
	else
		message_set(reterr,
			    "the time was over before the first sample of process %d: give -d "
			    "more time",
			    pid);
}

static enum exit_status sample(struct attach *attach, struct message *reterr)
{
	const struct sampler_options options = {
		.rate_hz = attach->options.rate_hz,
		.duration_ns = attach->options.duration_ns,
		.stop = &stop_requested,
	};
	const struct live_memory before = attach->target.live;
	enum sampler_end end;
	int err;

	print_begin(attach);
	err = sampler_run(attach->sampler, &options, profile_sink(attach->profile), &end);
	attach->stats = *sampler_stats(attach->sampler);
	attach->stats.reads = attach->target.live.nr_reads - before.nr_reads;
	attach->stats.other_syscalls += attach->target.live.nr_checks - before.nr_checks;
	/* Samples that were taken are written whatever came after them. */
	if (err && !attach->stats.samples)
		return target_explain(&attach->target, err, reterr);
	if (!attach->stats.samples) {
		explain_no_sample(attach, end, reterr);
		return EXIT_NO_SAMPLE;
	}
	if (err) {
		struct message reason = {0};

		(void)target_explain(&attach->target, err, &reason);
		print_error("sampling ended early: %s", reason.text);
		return EXIT_ERROR;
	}
	print_end(attach, end);
	return EXIT_OK;
}

enum exit_status command_attach(int argc, char **argv)
{
	struct attach attach = {
		.options = {.rate_hz = DEFAULT_RATE_HZ},
		.target.process = PROCESS_CLOSED,
	};
	struct message message = {0};
	bool done;
	enum exit_status status = parse_options(argc, argv, &attach.options, &done);

	if (status != EXIT_OK || done)
		return status;
	catch_signals(0);
	status = prepare(&attach, &message);
	if (status == EXIT_OK)
		status = sample(&attach, &message);
	if (message.text[0])
		print_error("%s", message.text);
	/* Without samples there are counters still, if only to say that there were none. */
	if (attach.sampler || status == EXIT_NO_SAMPLE) {
		enum exit_status written = write_outputs(&attach);

		status = status == EXIT_OK ? written : status;
	}
	output_file_discard(&attach.output);
	output_file_discard(&attach.stats_output);
	sampler_destroy(attach.sampler);
	profile_destroy(attach.profile);
	target_close(&attach.target);
	return status;
}
