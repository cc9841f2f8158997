/* SPDX-License-Identifier: MIT */
/*
 * The benchmark's truth: stops a process at random moments, reads the stacks of
 * its threads while they stand still, and writes them as collapsed stacks.
 *
 *	stopwalk [-r MEAN_HZ] [-d SECONDS] PID COUNT
 *
 * It stops so often, or for as long, whichever is over first.
 * The time between two stops is exponentially distributed, so that nothing the
 * target does periodically can hide from them. This is not part of the product,
 * which never stops anything.
 *
 * A stop must have nothing to do with what the target does. As a real-time thread
 * this program runs as soon as its timer fires, and not once the target sleeps; each
 * thread gets a signal of its own, which interrupts one that runs at once. A signal
 * to the process may go to a thread that sleeps, and the others run on until that
 * one is scheduled.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "output/collapsed.h"
#include "output/profile.h"
#include "procmem/cleanup.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/python/runtime.h"
#include "sampler/sampler.h"
#include "sampler/ticker.h"
#include "symbols/live_images.h"

#define DEFAULT_MEAN_HZ 1000.0
#define MIN_MEAN_HZ	0.1
#define MAX_MEAN_HZ	100000.0
#define MAX_STOPS	10000000
#define MAX_SECONDS	1000000.0

/* A process that does not stop within this time has a thread in an uninterruptible sleep. */
#define STOP_PATIENCE_NS 5000000000u
#define STOP_POLL_NS	 5000

/* A stop that comes later than this after its moment is left out: what kept it may be the target. */
#define MAX_LATENESS_NS 200000u

/* Set by SIGINT, SIGTERM and SIGHUP: write what there is. */
static volatile sig_atomic_t stop_requested;

/* Counts the stacks that stood still; one that did not is no truth and is left out. */
struct truth_sink {
	struct sample_sink sink;
	struct sample_sink *profile; /* borrowed */
	unsigned long nr_unproven;
};

struct stopwalk {
	pid_t pid;
	long nr_stops;
	double mean_hz;
	double seconds;
	struct process process;
	struct maps maps;
	struct live_memory live;
	struct live_images images;
	struct runtime runtime;
	struct profile *profile;
	struct truth_sink sink;
	unsigned long nr_late; /* stops that were left out */
	pid_t keeper_pid;      /* see keeper_start() */
	int keeper_fd;	       /* -1 if there is none */
};

static int truth_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct truth_sink *truth = (struct truth_sink *)sink;

	if (sample->flags & SAMPLE_UNPROVEN) {
		truth->nr_unproven++;
		return 0;
	}
	return truth->profile->ops->sample(truth->profile, sample);
}

/* Through the folder of the process, which never leads to another one. pidfd_send_signal(2) */
static int send_signal(const struct process *process, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, process->proc_fd, signal_number, NULL, 0) == 0
		       ? 0
		       : -errno;
}

/*
 * Start a process that continues the target when this one ends, however it ends:
 * not even SIGKILL can leave the target stopped. 0 or negative errno.
 */
static int keeper_start(struct stopwalk *walk)
{
	int ends[2];
	char byte;

	if (pipe(ends) != 0)
		return -errno;
	walk->keeper_pid = fork();
	if (walk->keeper_pid < 0) {
		int err = -errno;

		(void)close(ends[0]);
		(void)close(ends[1]);
		return err;
	}
	if (walk->keeper_pid > 0) {
		(void)close(ends[0]);
		walk->keeper_fd = ends[1];
		return 0;
	}
	/* A Ctrl-C reaches the whole group; the keeper has to outlive it. */
	(void)setsid();
	(void)close(ends[1]);
	(void)close(STDOUT_FILENO);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	(void)send_signal(&walk->process, SIGCONT);
	_exit(0);
}

static void keeper_end(struct stopwalk *walk)
{
	if (walk->keeper_fd < 0)
		return;
	(void)close(walk->keeper_fd);
	while (waitpid(walk->keeper_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The state letter of proc_pid_stat(5), behind the name; '\0' if the thread is gone. */
static char thread_state(const struct process *process, pid_t tid)
{
	char path[64], text[512];
	const char *end;

	(void)snprintf(path, sizeof(path), "task/%d/stat", tid);
	if (process_read_file(process, path, text, sizeof(text)) < 0)
		return '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '\0';
}

/* Whether no thread of the process can run. *ret_stopped, or negative errno. */
static int all_stopped(const struct process *process, bool *ret_stopped)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(process, &threads, &nr_threads);

	if (err)
		return err;
	*ret_stopped = nr_threads > 0;
	for (size_t i = 0; i < nr_threads && *ret_stopped; i++) {
		char state = thread_state(process, threads[i].tid);

		*ret_stopped = state == 'T' || state == 'Z' || state == 'X';
	}
	return 0;
}

static void sleep_ns(uint64_t duration_ns)
{
	struct timespec duration = {
		.tv_sec = (time_t)(duration_ns / NS_PER_S),
		.tv_nsec = (long)(duration_ns % NS_PER_S),
	};

	(void)nanosleep(&duration, NULL);
}

static void sleep_until_ns(uint64_t deadline_ns)
{
	struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

/*
 * Signal each thread. The first that takes it stops all others; SIGCONT takes back what is
 * left. 0 or negative errno.
 */
static int signal_threads(const struct process *process, pid_t pid)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(process, &threads, &nr_threads);

	for (size_t i = 0; !err && i < nr_threads; i++)
		(void)syscall(SYS_tgkill, pid, threads[i].tid, SIGSTOP); /* it may have ended */
	return err;
}

/* Stop the process and wait until it stands still. 0, -ETIMEDOUT, or another errno. */
static int stop_target(const struct process *process, pid_t pid)
{
	uint64_t deadline_ns = clock_now_ns() + STOP_PATIENCE_NS;
	int err = signal_threads(process, pid);

	while (!err) {
		bool stopped = false;

		err = all_stopped(process, &stopped);
		if (err || stopped)
			break;
		if (clock_now_ns() > deadline_ns)
			return -ETIMEDOUT;
		sleep_ns(STOP_POLL_NS);
	}
	return err;
}

/* A draw from the exponential distribution of that mean. 0 or negative errno. */
static int random_pause(double mean_ns, uint64_t *ret_ns)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	/* In (0, 1]: the logarithm of 0 is not wanted. */
	*ret_ns = (uint64_t)(-log(((double)random + 1.0) / 4294967296.0) * mean_ns);
	return 0;
}

/* One stop: the target runs again whatever happens in between. */
static int stop_and_walk(struct stopwalk *walk, struct sampler *sampler)
{
	int err = stop_target(&walk->process, walk->pid);
	int continue_err;

	if (!err)
		err = sampler_dump(sampler, &walk->sink.sink);
	continue_err = send_signal(&walk->process, SIGCONT);
	return err ? err : continue_err;
}

static int collect(struct stopwalk *walk)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)(walk->seconds * NS_PER_S);
	struct sampler *sampler;
	int err = sampler_create(&walk->process, &walk->live.memory, &walk->runtime.build,
				 walk->runtime.addr, &sampler);

	if (err)
		return err;
	for (long i = 0; !err && i < walk->nr_stops && !stop_requested; i++) {
		uint64_t moment_ns = clock_now_ns(), pause_ns;

		if (moment_ns >= end_ns)
			break;
		err = random_pause((double)NS_PER_S / walk->mean_hz, &pause_ns);
		if (err)
			break;
		moment_ns += pause_ns;
		sleep_until_ns(moment_ns);
		if (clock_now_ns() > moment_ns + MAX_LATENESS_NS)
			walk->nr_late++;
		else
			err = stop_and_walk(walk, sampler);
	}
	sampler_destroy(sampler);
	return err;
}

/* Find the interpreter. 0; negative errno, perhaps with a sentence. */
static int find_target(struct stopwalk *walk, struct message *reterr)
{
	char exe_path[PATH_MAX];
	int err = process_open(walk->pid, &walk->process, reterr);

	if (err)
		return err;
	if (thread_state(&walk->process, walk->pid) == 'T') {
		message_set(reterr, "process %d is stopped already; it would be continued",
			    walk->pid);
		return -EBUSY;
	}
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
	const struct profile_options layout = {0};
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
	err = keeper_start(walk);
	if (!err)
		err = collect(walk);
	if (!err)
		err = collapsed_write(&(struct artefact){.profile = walk->profile}, stdout);
	if (walk->sink.nr_unproven)
		(void)fprintf(stderr, "stopwalk: %lu stacks could not be proven\n",
			      walk->sink.nr_unproven);
	if (walk->nr_late)
		(void)fprintf(stderr, "stopwalk: %lu stops came late\n", walk->nr_late);
	return err;
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stop_requested = 1;
}

/* Where that is forbidden a stop may wait for the target to sleep, and be left out as late. */
static void become_real_time(void)
{
	const struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	if (sched_setscheduler(0, SCHED_FIFO, &param) != 0)
		(void)fputs("stopwalk: no real-time priority; stops may come late\n", stderr);
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

	while ((option = getopt(argc, argv, "r:d:")) != -1) {
		bool is_number;

		if (option == 'r')
			is_number = parse_double(optarg, MIN_MEAN_HZ, MAX_MEAN_HZ, &walk->mean_hz);
		else if (option == 'd')
			is_number = parse_double(optarg, 0, MAX_SECONDS, &walk->seconds);
		else
			return false;
		if (!is_number)
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
		.keeper_fd = -1,
	};
	struct message message = {0};
	int err;

	if (!parse_arguments(argc, argv, &walk)) {
		(void)fputs("usage: stopwalk [-r MEAN_HZ] [-d SECONDS] PID COUNT\n", stderr);
		return 2;
	}
	catch_signals();
	/* The default slack of 50 µs would spoil the distribution of the pauses. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	become_real_time();
	err = run(&walk, &message);
	keeper_end(&walk);
	if (err)
		(void)fprintf(stderr, "stopwalk: %s\n",
			      message.text[0] ? message.text : strerror(-err));
	profile_destroy(walk.profile);
	maps_done(&walk.maps);
	process_close(&walk.process);
	return err ? 1 : 0;
}
