/* SPDX-License-Identifier: MIT */
/*
 * damage_core [-n NUMBER] [-f FIRST] [-t SECONDS] [-m MIB] [-o FILE] CORE...: damage each core in
 * NUMBER ways, one after the other, and report on each result. Fails if a report crashes, if a
 * sanitizer complains, or if it takes more than SECONDS of CPU time or MIB of memory, where these
 * are given.
 *
 * Damage does not depend on earlier damage: `-f 1234 -n 1` repeats number 1234, and -o writes the
 * damaged core to FILE.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "tests/fuzz/core_victim.h"
#include "tests/fuzz/damaged_core_report.h"

/*
 * BATCH is the number of reports in one process. It is limited so that a leak report points to
 * few of them.
 */
enum { DEFAULT_NUMBER = 100, BATCH = 1000 };

struct options {
	uint64_t number, first;
	unsigned int seconds; /* 0: no limit */
	uint64_t max_mib;     /* 0: no limit */
	const char *saved;    /* NULL: not saved */
};

/* Shared by the reporting processes and the counting one. */
struct progress {
	uint64_t number; /* of the damage being reported on */
	uint64_t nr_reported, nr_refused, nr_failed;
	long max_kib; /* resident */
};

static int save(const struct victim *victim, const char *path)
{
	FILE *file = fopen(path, "wb");
	bool is_written;

	if (!file)
		return -errno;
	is_written = fwrite(victim->bytes, 1, victim->cut_bytes, file) == victim->cut_bytes;
	return fclose(file) == 0 && is_written ? 0 : -EIO;
}

static void report(const struct victim *victim, struct progress *progress)
{
	const unsigned int kind = (unsigned int)(progress->number % NR_CORE_REPORTS);

	if (damaged_core_report(victim->fd, kind) == EXIT_SUCCESS)
		progress->nr_reported++;
	else
		progress->nr_refused++;
}

/* Limit the CPU time from now on; 0 removes the limit. SIGPROF ends a process that takes longer. */
static void set_limit(unsigned int seconds)
{
	const struct itimerval limit = {.it_value.tv_sec = seconds};

	(void)setitimer(ITIMER_PROF, &limit, NULL);
}

/* Report on the damages from progress->number up to end. */
static int report_batch(struct victim *victim, const struct options *options, uint64_t end,
			struct progress *progress)
{
	int err = freopen("/dev/null", "w", stdout) ? 0 : -errno;

	damaged_core_report_quietly();
	for (; !err && progress->number < end; progress->number++) {
		/* States that are far apart and never 0. */
		uint64_t random = (progress->number + 1) * 0x9e3779b97f4a7c15ull | 1;

		victim_damage(victim, &random);
		if (options->saved)
			err = save(victim, options->saved);
		set_limit(options->seconds);
		report(victim, progress);
		set_limit(0);
		victim_undo(victim);
	}
	return err;
}

/* Whether an ended process succeeded within its memory limit. */
static bool has_succeeded(int status, const struct rusage *usage, const struct options *options)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS &&
	       (!options->max_mib || (uint64_t)usage->ru_maxrss >> 10 <= options->max_mib);
}

/*
 * Report on a batch in a process of its own. If it fails, print that and skip the damage that
 * failed.
 */
static int run_batch(struct victim *victim, const char *path, const struct options *options,
		     uint64_t end, struct progress *progress)
{
	struct rusage usage;
	const pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		exit(report_batch(victim, options, end, progress) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (wait4(pid, &status, 0, &usage) != pid)
		return -errno;
	if (usage.ru_maxrss > progress->max_kib)
		progress->max_kib = usage.ru_maxrss;
	if (has_succeeded(status, &usage, options))
		return 0;
	progress->nr_failed++;
	(void)fprintf(stderr, "damage_core: %s: %s %d, %ld MiB, at or before damage %llu\n", path,
		      WIFSIGNALED(status) ? "signal" : "status",
		      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		      usage.ru_maxrss >> 10, (unsigned long long)progress->number);
	victim_restore(victim);
	progress->number++;
	return 0;
}

static int damage_core(const char *path, const struct options *options, struct progress *progress)
{
	const uint64_t end = options->first + options->number;
	struct victim victim;
	int err = victim_open(path, &victim);

	progress->number = options->first;
	while (!err && progress->number < end) {
		const uint64_t left = end - progress->number;

		err = run_batch(&victim, path, options, left > BATCH ? end - left + BATCH : end,
				progress);
	}
	victim_close(&victim);
	if (err)
		(void)fprintf(stderr, "damage_core: %s: %s\n", path, strerror(-err));
	return err;
}

static bool parse_options(int argc, char **argv, struct options *options)
{
	int option;

	while ((option = getopt(argc, argv, "n:f:t:m:o:")) != -1) {
		const uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (option == 'n')
			options->number = number;
		else if (option == 'f')
			options->first = number;
		else if (option == 't')
			options->seconds = (unsigned int)number;
		else if (option == 'm')
			options->max_mib = number;
		else if (option == 'o')
			options->saved = optarg;
		else
			return false;
	}
	return optind < argc;
}

int main(int argc, char **argv)
{
	struct options options = {.number = DEFAULT_NUMBER};
	struct progress *progress;
	int err = 0;

	if (!parse_options(argc, argv, &options)) {
		(void)fputs("usage: damage_core [-n NUMBER] [-f FIRST] [-t SECONDS] [-m MIB] "
			    "[-o FILE] CORE...\n",
			    stderr);
		return EXIT_FAILURE;
	}
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (progress == MAP_FAILED)
		return EXIT_FAILURE;
	for (int i = optind; !err && i < argc; i++)
		err = damage_core(argv[i], &options, progress);
	printf("%llu reported, %llu refused, %llu failed, %ld MiB\n",
	       (unsigned long long)progress->nr_reported, (unsigned long long)progress->nr_refused,
	       (unsigned long long)progress->nr_failed, progress->max_kib >> 10);
	return err || progress->nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
