/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/sampling_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/stop.h"
#include "procmem/clock.h"

/* Each sample takes the CPU from the target for some tens of microseconds. */
#define DEFAULT_RATE_HZ 100.0

/*
 * A faster recording has no CPU times, each of which interrupts the thread: at 10 kHz 12 % of a
 * core, and some percent of the program's speed.
 */
#define MAX_CPU_RATE_HZ 2e3

#define SUMMARY_MAX_ROWS 30

static const char options_help[] =
	"  -r, --rate HZ          samples a second: 100, 1khz, 10k, max (default: 100)\n"
	"  -d, --duration TIME    10, 2.5, 500ms, 90s, 5m, 1h (default: until the process\n"
	"                         ends)\n"
	"  -o, --output FILE      where to write; - is stdout (default: stdout; of run, without "
	"-f,\n"
	"                         a recording in this folder); several are allowed. A recording\n"
	"                         (out.pysample) keeps every sample, and 'pysample report' makes\n"
	"                         any other format of it\n"
	"  -f, --format NAME      of the -o that it stands next to, or of stdout. Default: from\n"
	"                         the suffix of FILE, else summary on a terminal and collapsed\n"
	"                         in a file or pipe\n"
	"      --engine NAME      bpf: read stacks inside the threads' own timer interrupts,\n"
	"                         which is exact on every CPU and without a GIL, too, and\n"
	"                         costs the process least (CAP_BPF and CAP_PERFMON, or root;\n"
	"                         Linux 5.17); preempt: hold the CPU of the thread that is\n"
	"                         looked at, so that each stack is of one instant; tick: like\n"
	"                         bpf, but in the interrupts of the kernel's own timer tick,\n"
	"                         which cost nothing more; what is in step with the tick is\n"
	"                         misrepresented (not with -n; at most the kernel's HZ);\n"
	"                         racing: read stacks while the threads run, which is\n"
	"                         approximate (CPython 3.11 and newer, with a GIL; not with\n"
	"                         -n). Default: bpf where it is allowed, else preempt, or racing\n"
	"                         if the process runs only on CPUs that pysample may not use\n"
	"      --exact            nothing approximate: exit with status 4 instead of racing, or\n"
	"                         with -n if there is no BPF\n"
	"      --mode NAME        wall: all samples, by the time that passed (default); cpu: by\n"
	"                         the CPU time that a thread used since its last sample; gil:\n"
	"                         only samples that hold the GIL; exception: only samples that\n"
	"                         handle an exception. A recording has all samples\n"
	"      --cpu, --no-cpu    measure CPU times in the other modes, too, or not (default:\n"
	"                         in recordings up to 2 kHz, and for the formats that are\n"
	"                         made of them)\n"
	"      --gc, --no-gc      a frame <GC> where garbage is collected, or none (default:\n"
	"                         --gc)\n"
	"  -n, --native           C frames, too, between those of Python: of the same instant\n"
	"                         with engine bpf, else told by evidence. [unknown]: frames\n"
	"                         that may have changed, or could not be proven; ??: code\n"
	"                         without a symbol, as where the debug symbols of libc are\n"
	"                         not installed (libc6-dbg)\n"
	"      --trampolines      with -n: those of -X perf, through which CPython calls each\n"
	"                         Python function, as frames of their own\n"
	"      --plumbing         with -n: also frames of the C functions that are the same in\n"
	"                         every program, from _start to Py_RunMain and around each call\n"
	"      --kernel           with -n: the kernel's functions, too, where a thread is\n"
	"                         inside of it (one that runs: CAP_PERFMON and CAP_SYSLOG,\n"
	"                         or as the settings of perf_event_open and /proc/kallsyms\n"
	"                         allow; one that waits: CAP_SYS_ADMIN)\n"
	"  -t, --threads          a root frame per thread\n"
	"      --functions        a row per function, with the line it begins at (default)\n"
	"      --lines            a row per line that was executing\n"
	"      --no-source        no source lines in the formats that show them\n"
	"      --stats-json FILE  the counters of the run as one JSON object\n"
	"      --wait TIME        how long to wait for a process that has no interpreter yet\n"
	"                         (default: 500ms, if it was started just now or has loaded\n"
	"                         CPython; with --wait any process; run: as long as it runs); 0: "
	"not\n"
	"                         at all\n"
	"      --read-only        never write to the process: on 3.15 deep stacks are sampled\n"
	"                         faster with one word of it that is there for profilers\n"
	"  -q, --quiet            nothing on stderr but errors\n"
	"  -v, --verbose          say what was found and what sampling cost\n"
	"  -h, --help             this text\n";

enum {
	OPTION_LINES = 256,
	OPTION_FUNCTIONS,
	OPTION_STATS_JSON,
	OPTION_WAIT,
	OPTION_MODE,
	OPTION_CPU,
	OPTION_NO_CPU,
	OPTION_GC,
	OPTION_NO_GC,
	OPTION_NO_SOURCE,
	OPTION_READ_ONLY,
	OPTION_TRAMPOLINES,
	OPTION_PLUMBING,
	OPTION_KERNEL,
	OPTION_ENGINE,
	OPTION_EXACT,
};

static const struct option long_options[] = {
	{"rate", required_argument, NULL, 'r'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"engine", required_argument, NULL, OPTION_ENGINE},
	{"exact", no_argument, NULL, OPTION_EXACT},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"cpu", no_argument, NULL, OPTION_CPU},
	{"no-cpu", no_argument, NULL, OPTION_NO_CPU},
	{"gc", no_argument, NULL, OPTION_GC},
	{"no-gc", no_argument, NULL, OPTION_NO_GC},
	{"native", no_argument, NULL, 'n'},
	{"trampolines", no_argument, NULL, OPTION_TRAMPOLINES},
	{"plumbing", no_argument, NULL, OPTION_PLUMBING},
	{"kernel", no_argument, NULL, OPTION_KERNEL},
	{"threads", no_argument, NULL, 't'},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"functions", no_argument, NULL, OPTION_FUNCTIONS},
	{"no-source", no_argument, NULL, OPTION_NO_SOURCE},
	{"stats-json", required_argument, NULL, OPTION_STATS_JSON},
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"read-only", no_argument, NULL, OPTION_READ_ONLY},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Take the engine that was asked for; false after an error was printed. */
static bool take_engine(struct sampling_options *options, const char *name)
{
	if (engine_take_name(&options->engine, name))
		return true;
	print_error("'%s' is not an engine: write bpf, tick, preempt or racing", name);
	return false;
}

/* Apply an option that takes no value; false if there is no such one. */
static bool apply_flag(struct sampling_options *options, int option)
{
	switch (option) {
	case 'n':
		options->engine.native = true;
		return true;
	case OPTION_TRAMPOLINES:
		options->engine.keeps_trampolines = true;
		return true;
	case OPTION_PLUMBING:
		options->profile.keep_plumbing = true;
		return true;
	case OPTION_KERNEL:
		options->engine.tells_kernel = true;
		return true;
	case 't':
		options->profile.by_thread = true;
		return true;
	case OPTION_LINES:
	case OPTION_FUNCTIONS:
		options->profile.by_line = option == OPTION_LINES;
		return true;
	case OPTION_CPU:
	case OPTION_NO_CPU:
		options->looks.cpu = option == OPTION_CPU;
		options->cpu_is_given = true;
		return true;
	case OPTION_GC:
	case OPTION_NO_GC:
		options->looks.gc = option == OPTION_GC;
		return true;
	case OPTION_EXACT:
		options->engine.is_exact = true;
		return true;
	case OPTION_NO_SOURCE:
		options->layout.no_source = true;
		return true;
	case OPTION_READ_ONLY:
		options->read_only = true;
		return true;
	case 'q':
		options->quiet = true;
		return true;
	case 'v':
		options->verbose = true;
		options->engine.is_verbose = true;
		return true;
	default:
		return false;
	}
}

/* Apply one option; false after an error was printed, or if there is no such option. */
static bool apply_option(struct sampling_options *options, int option, const char *value)
{
	switch (option) {
	case 'r':
		if (parse_rate(value, &options->rate_hz))
			return true;
		print_error("'%s' is not a rate: write 100, 1khz, 10k or max (0.01 Hz to 10 kHz)",
			    value);
		return false;
	case 'd':
		if (parse_duration(value, &options->duration_ns))
			return true;
		print_error("'%s' is not a duration: write 10, 2.5, 500ms, 90s, 5m or 1h", value);
		return false;
	case 'f':
		return outputs_take_format(&options->outputs, value);
	case 'o':
		return outputs_take_path(&options->outputs, value);
	case OPTION_ENGINE:
		return take_engine(options, value);
	case OPTION_MODE:
		return parse_mode(value, &options->profile.mode);
	case OPTION_STATS_JSON:
		options->stats_path = value;
		return true;
	case OPTION_WAIT:
		return target_parse_wait(value, &options->wait);
	default:
		return apply_flag(options, option);
	}
}

static enum exit_status print_help(const struct sampling_command *command)
{
	(void)fputs(command->usage, stdout);
	(void)fputs(options_help, stdout);
	(void)fputs("\nFormats, and the suffixes that choose them:\n", stdout);
	outputs_print_formats(stdout);
	(void)fputs(command->examples, stdout);
	return print_finish(EXIT_OK);
}

enum exit_status sampling_options_parse(int argc, char **argv,
					const struct sampling_command *command,
					struct sampling_options *options, int *ret_first,
					bool *ret_done)
{
	static const char anywhere[] = ":r:d:o:f:ntqvh", in_front[] = "+:r:d:o:f:ntqvh";
	const char *const letters = command->operands_end ? in_front : anywhere;
	int option;

	*options = (struct sampling_options){
		.rate_hz = DEFAULT_RATE_HZ,
		.wait = TARGET_WAIT_DEFAULT,
		.looks = {.gc = true},
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};
	options->wait.stop = stop_flag();
	*ret_done = false;
	while ((option = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		if (option == 'h') {
			*ret_done = true;
			return print_help(command);
		}
		if (option == '?' || option == ':')
			print_option_error(option, anywhere, argv);
		if (!apply_option(options, option, optarg))
			return EXIT_USAGE;
	}
	*ret_first = optind;
	return EXIT_OK;
}

/* What is to be looked at, as the mode and the outputs need it. */
static void choose_looks(struct sampling_options *options)
{
	const enum profile_mode mode = options->profile.mode;
	const bool keeps_all = outputs_need_samples(&options->outputs);

	if (!options->cpu_is_given)
		options->looks.cpu =
			(keeps_all && options->rate_hz <= MAX_CPU_RATE_HZ) || mode == PROFILE_CPU;
	options->looks.exceptions = keeps_all || mode == PROFILE_EXCEPTION;
	options->looks.states = keeps_all || mode == PROFILE_GIL || mode == PROFILE_EXCEPTION;
}

/* The first option that was given and is of use with C frames only; NULL: none was. */
static const char *option_of_natives(const struct sampling_options *options)
{
	return options->engine.tells_kernel	   ? "--kernel"
	       : options->engine.keeps_trampolines ? "--trampolines"
	       : options->profile.keep_plumbing	   ? "--plumbing"
						   : NULL;
}

/* Whether the engine goes with the other options; false after an error was printed. */
static bool check_engine(const struct engine_options *engine)
{
	const bool races = engine->is_named && engine->kind == ENGINE_RACING;

	if (engine->is_exact && races) {
		print_error("--engine racing is approximate: leave out --exact");
		return false;
	}
	if (engine->native && races) {
		print_error(
			"C frames need stacks of one instant: leave out --engine racing, or -n");
		return false;
	}
	if (engine->native && engine->is_named && engine->kind == ENGINE_TICK) {
		print_error("the kernel copies no C stacks at its tick: leave out --engine tick, "
			    "or -n");
		return false;
	}
	return true;
}

bool sampling_options_choose(struct sampling_options *options)
{
	if (!outputs_choose(&options->outputs) || !check_engine(&options->engine))
		return false;
	if (options->profile.mode == PROFILE_CPU && options->cpu_is_given && !options->looks.cpu) {
		print_error("--mode cpu shows CPU times: leave out --no-cpu");
		return false;
	}
	if (!options->engine.native && option_of_natives(options)) {
		print_error("%s is for stacks with C frames: give -n, too",
			    option_of_natives(options));
		return false;
	}
	options->engine.period_ns = (uint64_t)(NS_PER_S / options->rate_hz);
	choose_looks(options);
	return true;
}
