/* SPDX-License-Identifier: MIT */
#include "cmd/report/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/print.h"

const char *input_name(const struct input *input)
{
	return strcmp(input->path, "-") == 0 ? "standard input" : input->path;
}

/* Copy what comes through a pipe to a file: it is read twice, and out of order. */
static int copy_pipe(struct input *input, struct message *reterr)
{
	int err;

	if (lseek(input->fd, 0, SEEK_CUR) >= 0)
		return 0;
	err = temp_file_open_anywhere(&input->temp_file, reterr);
	if (!err)
		err = temp_file_fill(&input->temp_file, input->fd, input_name(input), reterr);
	if (input->fd != STDIN_FILENO)
		(void)close(input->fd);
	input->fd = input->temp_file.fd;
	return err;
}

static int open_input(const char *path, struct input *input, struct message *reterr)
{
	int err;

	*input = (struct input){.path = path, .fd = STDIN_FILENO, .temp_file = TEMP_FILE_NONE};
	if (strcmp(path, "-") != 0)
		input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (input->fd >= 0)
		return copy_pipe(input, reterr);
	err = -errno;
	message_set(reterr, "cannot read %s: %s", path, strerror(-err));
	return err;
}

static void note_tear(const struct input *input, const struct recording *recording)
{
	uint64_t nr_bytes;

	if (!recording_is_torn(recording, &nr_bytes))
		return;
	if (nr_bytes)
		print_note("%s was not finished: it is read up to where it is torn, and the last "
			   "%" PRIu64 " byte%s skipped",
			   input_name(input), nr_bytes, nr_bytes == 1 ? " is" : "s are");
	else
		print_note("%s is not finished: it contains what has been written so far",
			   input_name(input));
}

/* Open one more recording. Returns false after printing an error. */
static bool add_input(struct inputs *inputs, const char *path, bool quiet)
{
	struct input *input = &inputs->list[inputs->nr];
	struct recording *recording;
	struct message message = {0};

	inputs->recordings[inputs->nr++] = NULL;
	if (open_input(path, input, &message) != 0) {
		print_error("%s", message.text);
		return false;
	}
	if (recording_open(input->fd, &recording, &message) != 0) {
		print_error("%s: %s", input_name(input), message.text);
		return false;
	}
	inputs->recordings[inputs->nr - 1] = recording;
	if (!quiet)
		note_tear(input, recording);
	return true;
}

bool inputs_open(struct inputs *inputs, const char *const *paths, uint32_t nr, bool quiet)
{
	*inputs = (struct inputs){
		.list = calloc((size_t)nr + 1, sizeof(*inputs->list)),
		.recordings = calloc((size_t)nr + 1, sizeof(struct recording *)),
	};
	if (!inputs->list || !inputs->recordings) {
		print_error("out of memory");
		return false;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (!add_input(inputs, paths[i], quiet))
			return false;
	return true;
}

void inputs_close(struct inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->nr; i++) {
		struct input *input = &inputs->list[i];

		recording_close(inputs->recordings[i]);
		if (input->temp_file.fd >= 0)
			temp_file_close(&input->temp_file);
		else if (input->fd > STDERR_FILENO)
			(void)close(input->fd);
	}
	free(inputs->list);
	free(inputs->recordings);
}
