/* SPDX-License-Identifier: MIT */
/*
 * record_tape PID OUT.tape: record a tape of a parked process and print its stacks, which are the
 * expected text for the tape.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/process.h"
#include "sampler/cpython/find/runtime.h"
#include "symbols/elf/live_images.h"
#include "tests/support/tape.h"
#include "tests/support/tape_run.h"

static int record(struct remote_memory *memory, const struct runtime *runtime, const char *path)
{
	uint32_t version_hex = runtime->build.version_hex;
	struct tape_recorder recorder;
	int err;

	tape_recorder_init(&recorder, memory);
	err = tape_run(&recorder.memory, runtime->addr, version_hex, stdout);
	if (!err)
		err = tape_recorder_save(&recorder, runtime->addr, version_hex, path);
	tape_recorder_done(&recorder);
	return err;
}

int main(int argc, char **argv)
{
	struct process process = PROCESS_CLOSED;
	struct message message = {0};
	struct maps maps = {0};
	struct live_memory live;
	struct live_images images;
	char exe_path[PATH_MAX];
	struct runtime runtime;
	int err;

	if (argc != 3) {
		(void)fputs("usage: record_tape PID OUT.tape\n", stderr);
		return EXIT_FAILURE;
	}
	err = process_open((pid_t)strtol(argv[1], NULL, 10), &process, &message);
	if (!err)
		err = maps_read(&process, &maps);
	live_memory_init(&live, &process);
	live_images_init(&images, &process);
	process_executable(&process, exe_path);
	const struct program program = {
		.name = "the process",
		.is_alive = true,
		.exe_path = exe_path,
		.maps = &maps,
		.memory = &live.memory,
		.images = &images.source,
	};

	if (!err)
		err = runtime_find(&program, NULL, &runtime, &message);
	if (!err)
		err = record(&live.memory, &runtime, argv[2]);
	if (err)
		(void)fprintf(stderr, "record_tape: %s\n",
			      message.text[0] ? message.text : strerror(-err));
	maps_done(&maps);
	process_close(&process);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
