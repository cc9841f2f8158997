/* SPDX-License-Identifier: MIT */
/* record_random FILE SEED TICKS HZ [wild] [cpu]: write a recording of random samples. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "tests/support/processes.h"
#include "tests/support/random_samples.h"

static int record(int fd, const struct random_options *options)
{
	struct random_samples samples;
	struct recorder *recorder;
	struct run run;
	int err;

	random_samples_init(&samples, options);
	run = random_samples_run(&samples);
	err = recorder_create(fd, &run, &recorder);
	if (!err)
		err = record_process(recorder, 7, "python");
	if (!err)
		err = random_samples_play(&samples, recorder);
	if (!err)
		err = recorder_finish(recorder, &run);
	recorder_destroy(recorder);
	random_samples_done(&samples);
	return err;
}

int main(int argc, char **argv)
{
	struct random_options options = {0};
	cleanup_close int fd = -1;

	if (argc < 5)
		return EXIT_FAILURE;
	options.seed = strtoull(argv[2], NULL, 10);
	options.nr_ticks = (uint32_t)strtoul(argv[3], NULL, 10);
	options.rate_hz = strtod(argv[4], NULL);
	for (int i = 5; i < argc; i++) {
		options.is_wild |= strcmp(argv[i], "wild") == 0;
		options.measures_cpu |= strcmp(argv[i], "cpu") == 0;
	}
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || record(fd, &options) != 0) {
		perror(argv[1]);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
