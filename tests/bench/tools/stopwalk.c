/* SPDX-License-Identifier: MIT */
/*
 * The benchmark's truth: stops the CPUs of a process at random moments, reads its stacks meanwhile,
 * and writes them as collapsed stacks.
 *
 *	stopwalk [-t] [-r MEAN_HZ] [-d SECONDS] PID COUNT
 *
 * It takes COUNT looks, or looks for SECONDS, whichever ends first. -t: a root frame per thread.
 * The time between two moments is exponentially distributed, so that nothing the target does
 * periodically can hide from them. This is not part of the product, which never stops anything.
 *
 * The process is stopped by SIGSTOP only where it cannot be read otherwise: SIGSTOP wakes threads
 * that sleep, and after SIGCONT all of them race for the CPUs. If stopwalk is killed at that
 * moment, the process stays stopped.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include "output/formats/collapsed.h"
#include "output/profile/profile.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/cpython/find/runtime.h"
#include "sampler/sampler.h"
#include "symbols/elf/live_images.h"
#include "tests/bench/tools/standstill.h"

#define DEFAULT_MEAN_HZ 1000.0
#define MIN_MEAN_HZ	0.1
#define MAX_MEAN_HZ	100000.0
#define MAX_STOPS	10000000
#define MAX_SECONDS	1000000.0

/* Time until the first moment, in which the keepers of the CPUs are started. */
#define SETTLE_NS 5000000u

/* Set by SIGINT, SIGTERM and SIGHUP: stop looking and write what there is. */
static volatile sig_atomic_t stop_requested;

/*
 * Passes on each thread of a standstill once, and drops what did not stand still: it is no truth.
 */
struct truth_sink {
	struct sample_sink sink;
	struct sample_sink *profile; /* borrowed */
	const struct standstill *still;
	unsigned nr_seen, nr_passed; /* threads of this dump, and of this standstill */
	unsigned long nr_unproven;
};

struct stopwalk {
	pid_t pid;
	long nr_stops;
	double mean_hz;
	double seconds;
	bool by_thread;
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct live_images images;
	struct runtime runtime;
	struct profile *profile;
	struct truth_sink sink;
	unsigned long nr_stopped; /* standstills for which the process had to be stopped */
};

static int truth_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct truth_sink *truth = (struct truth_sink *)sink;

	if ((truth->still && standstill_is_lost(truth->still)) ||
	    truth->nr_seen++ < truth->nr_passed)
		return 0;
	truth->nr_passed++;
	if (sample->flags & SAMPLE_UNPROVEN) {
		truth->nr_unproven++;
		return 0;
	}
	return truth->profile->ops->sample(truth->profile, sample);
}

/* Draw from the exponential distribution with that mean. Returns 0 or a negative errno. */
static int random_pause(double mean_ns, uint64_t *ret_ns)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	/* The argument is in (0, 1]: the logarithm of 0 is infinite. */
	*ret_ns = (uint64_t)(-log(((double)random + 1.0) / 4294967296.0) * mean_ns);
	return 0;
}

/* Look at all threads once. Returns 0 or a negative errno. */
static int look_once(struct stopwalk *walk, struct standstill *still, struct sampler *sampler)
{
	int err;

	walk->sink.still = still;
	walk->sink.nr_passed = walk->sink.nr_seen = 0;
	err = sampler_dump(sampler, &walk->sink.sink);
	if (!standstill_is_lost(still))
		return err;
	walk->nr_stopped++;
	walk->sink.still = NULL;
	walk->sink.nr_seen = 0;
	err = standstill_regain(still);
	return err ? err : sampler_dump(sampler, &walk->sink.sink);
}

/* Look at every standstill until the last. Returns 0 or a negative errno. */
static int look(struct stopwalk *walk, struct standstill *still, struct sampler *sampler)
{
	const uint64_t end_ns = clock_now_ns() + (uint64_t)(walk->seconds * NS_PER_S);
	int err = 0;

	for (long i = 1; !err; i++) {
		uint64_t pause_ns = 0, next_ns;

		standstill_wait(still);
		err = look_once(walk, still, sampler);
		if (!err)
			err = random_pause((double)NS_PER_S / walk->mean_hz, &pause_ns);
		next_ns = clock_now_ns() + pause_ns;
		if (err || i == walk->nr_stops || stop_requested || next_ns >= end_ns)
			break;
		standstill_end(still, next_ns);
	}
	standstill_end(still, 0);
	return err;
}

static int collect(struct stopwalk *walk)
{
	struct standstill *still = NULL;
	struct sampler *sampler;
	int err = sampler_create(&walk->process, &walk->live.memory, &walk->runtime.build,
				 walk->runtime.addr, &sampler);

	if (err)
		return err;
	err = standstill_create(&walk->process, clock_now_ns() + SETTLE_NS, &still);
	if (!err)
		err = look(walk, still, sampler);
	else
		(void)fputs("stopwalk: cannot create a real-time thread on each CPU: run as root\n",
			    stderr);
	standstill_destroy(still);
	sampler_destroy(sampler);
	return err;
}

/* Find the interpreter. Returns 0, or a negative errno, for some errors with a sentence. */
static int find_target(struct stopwalk *walk, struct message *reterr)
{
	char exe_path[PATH_MAX];
	int err = process_open(walk->pid, &walk->process, reterr);

	if (err)
		return err;
	live_memory_init(&walk->live, &walk->process);
	live_images_init(&walk->images, &walk->process);
	process_executable(&walk->process, exe_path);
	const struct program program = {
		.name = "the process",
		.is_alive = true,
		.exe_path = exe_path,
		.maps = &walk->maps,
		.memory = &walk->live.memory,
		.images = &walk->images.source,
	};

	err = maps_read(&walk->process, &walk->maps);
	return err ? err : runtime_find(&program, NULL, &walk->runtime, reterr);
}

static int run(struct stopwalk *walk, struct message *reterr)
{
	static const struct sample_sink_ops ops = {.sample = truth_sample};
	const struct profile_options layout = {.by_thread = walk->by_thread};
	int err = find_target(walk, reterr);

	if (err)
		return err;
	walk->profile = profile_create(&layout);
	if (!walk->profile)
		return -ENOMEM;
	walk->sink = (struct truth_sink){
		.sink.ops = &ops,
		.profile = profile_sink(walk->profile),
	};
	err = collect(walk);
	if (!err)
		err = collapsed_write(&(struct artefact){.profile = walk->profile}, stdout);
	if (walk->sink.nr_unproven)
		(void)fprintf(stderr, "stopwalk: %lu stacks could not be proven\n",
			      walk->sink.nr_unproven);
	if (walk->nr_stopped)
		(void)fprintf(stderr, "stopwalk: the process was stopped %lu times\n",
			      walk->nr_stopped);
	return err;
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stop_requested = 1;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		(void)sigaction(signals[i], &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static bool parse_long(const char *text, long max, long *ret_number)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < 1 || number > max)
		return false;
	*ret_number = number;
	return true;
}

static bool parse_double(const char *text, double min, double max, double *ret_number)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number >= min && number <= max))
		return false;
	*ret_number = number;
	return true;
}

static bool parse_arguments(int argc, char **argv, struct stopwalk *walk)
{
	int option;
	long pid;

	while ((option = getopt(argc, argv, "r:d:t")) != -1) {
		bool is_good = true;

		if (option == 'r')
			is_good = parse_double(optarg, MIN_MEAN_HZ, MAX_MEAN_HZ, &walk->mean_hz);
		else if (option == 'd')
			is_good = parse_double(optarg, 0, MAX_SECONDS, &walk->seconds);
		else if (option == 't')
			walk->by_thread = true;
		else
			return false;
		if (!is_good)
			return false;
	}
	if (argc - optind != 2 || !parse_long(argv[optind], INT32_MAX, &pid) ||
	    !parse_long(argv[optind + 1], MAX_STOPS, &walk->nr_stops))
		return false;
	walk->pid = (pid_t)pid;
	return true;
}

int main(int argc, char **argv)
{
	struct stopwalk walk = {
		.mean_hz = DEFAULT_MEAN_HZ,
		.seconds = MAX_SECONDS,
		.process = PROCESS_CLOSED,
	};
	struct message message = {0};
	int err;

	if (!parse_arguments(argc, argv, &walk)) {
		(void)fputs("usage: stopwalk [-t] [-r MEAN_HZ] [-d SECONDS] PID COUNT\n", stderr);
		return 2;
	}
	catch_signals();
	/* The default slack of 50 µs would spoil the distribution of the pauses. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	err = run(&walk, &message);
	if (err)
		(void)fprintf(stderr, "stopwalk: %s\n",
			      message.text[0] ? message.text : strerror(-err));
	profile_destroy(walk.profile);
	maps_done(&walk.maps);
	process_close(&walk.process);
	return err ? 1 : 0;
}
