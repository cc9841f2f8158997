/* SPDX-License-Identifier: MIT */
#include "output/recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "output/recording/recording_decoder.h"
#include "output/recording/zstd_reader.h"

struct recording {
	struct zstd_reader reader;
	struct stored_run stored;
	struct recording_about about;
	struct process_rows processes;
	uint64_t good_bytes; /* of the file: readable frames */
	uint64_t bad_bytes;  /* the rest */
	uint32_t flags;	     /* added to those of all samples */
};

/* Check that the first frame begins a recording of a known version. */
static int check_first(struct recording *recording, struct message *reterr)
{
	const uint8_t *content;
	size_t bytes;
	unsigned int version = 0;
	int err = zstd_reader_next(&recording->reader, &content, &bytes);

	if (!err)
		version = recording_version(content, bytes);
	if (err && err != -EBADMSG && err != -ENOENT) {
		message_set(reterr, "cannot read the recording: %s", strerror(-err));
		return err;
	}
	if (!version) {
		message_set(reterr, "the file is not a pysample recording, or it was never "
				    "written: make one with 'pysample attach -o FILE.pysample "
				    "PID'");
		return -EBADMSG;
	}
	if (version > RECORDING_VERSION) {
		message_set(
			reterr,
			"recording version %u is not supported, as this pysample reads versions up "
			"to %d: use the pysample that made it, or a newer one",
			version, RECORDING_VERSION);
		return -EPROTO;
	}
	recording->about.version = version;
	zstd_reader_seek(&recording->reader, 0);
	return 0;
}

/*
 * Read all frames, up to the end or the first unreadable one, and note in recording how far that
 * is and which processes are in them.
 */
static int scan(struct recording *recording, struct recording_decoder *decoder)
{
	struct process_rows *processes = &decoder->threads.processes;
	uint32_t nr_processes = 0;
	int err = 0;

	while (!err) {
		const uint8_t *content;
		size_t bytes;

		err = zstd_reader_next(&recording->reader, &content, &bytes);
		if (!err)
			err = recording_decoder_decode(decoder, content, bytes);
		if (!err) {
			recording->good_bytes = recording->reader.offset;
			recording->about.nr_zstd_frames++;
			recording->about.nr_samples = decoder->position.nr_samples;
			recording->about.has_end = decoder->position.has_end;
			recording->about.epoch_us = decoder->position.epoch_us;
			nr_processes = processes->nr;
		}
	}
	process_rows_cut(processes, nr_processes);
	recording->processes = *processes;
	*processes = (struct process_rows){0};
	return err;
}

static int scan_file(struct recording *recording)
{
	struct recording_decoder *decoder = calloc(1, sizeof(*decoder));
	struct stat file;
	int err;

	if (!decoder)
		return -ENOMEM;
	decoder->run = &recording->stored;
	err = scan(recording, decoder);
	recording_decoder_done(decoder);
	free(decoder);
	if (err != -ENOENT && err != -EBADMSG)
		return err;
	if (fstat(recording->reader.fd, &file) != 0)
		return -errno;
	recording->about.file_bytes = (uint64_t)file.st_size;
	recording->about.nr_seek_rows =
		zstd_reader_seek_rows(&recording->reader, recording->about.file_bytes);
	if ((err == -EBADMSG || !recording->about.has_end) &&
	    recording->about.file_bytes > recording->good_bytes)
		recording->bad_bytes = recording->about.file_bytes - recording->good_bytes;
	return 0;
}

/*
 * A recording that does not name its engine was made before stacks were proven: each was read
 * while its thread ran. Cores are the exception: they do not move.
 */
static void infer_engine(struct recording *recording)
{
	struct run *run = &recording->stored.run;

	if (run->info.engine || run->info.target.core)
		return;
	recording->flags = SAMPLE_APPROXIMATE;
	run->info.engine = "racing";
	run->stats.approximate = run->stats.samples;
}

int recording_open(int fd, struct recording **ret_recording, struct message *reterr)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int err = recording ? zstd_reader_init(&recording->reader, fd) : -ENOMEM;

	if (err) {
		free(recording);
		message_set(reterr, "cannot read the recording: %s", strerror(-err));
		return err;
	}
	err = check_first(recording, reterr);
	if (!err) {
		err = scan_file(recording);
		if (err)
			message_set(reterr, "cannot read the recording: %s", strerror(-err));
	}
	if (err) {
		recording_close(recording);
		return err;
	}
	infer_engine(recording);
	*ret_recording = recording;
	return 0;
}

void recording_close(struct recording *recording)
{
	if (!recording)
		return;
	zstd_reader_done(&recording->reader);
	stored_run_done(&recording->stored);
	process_rows_done(&recording->processes);
	free(recording);
}

const struct run *recording_run(const struct recording *recording)
{
	return &recording->stored.run;
}

const struct process_rows *recording_processes(const struct recording *recording)
{
	return &recording->processes;
}

const struct recording_about *recording_about(const struct recording *recording)
{
	return &recording->about;
}

bool recording_is_torn(const struct recording *recording, uint64_t *ret_bytes)
{
	*ret_bytes = recording->bad_bytes;
	return !recording->about.has_end || recording->bad_bytes;
}

static int read_frames(struct recording *recording, struct recording_decoder *decoder)
{
	int err = 0;

	zstd_reader_seek(&recording->reader, 0);
	while (!err && recording->reader.offset < recording->good_bytes) {
		const uint8_t *content;
		size_t bytes;

		err = zstd_reader_next(&recording->reader, &content, &bytes);
		if (!err)
			err = recording_decoder_decode(decoder, content, bytes);
	}
	return err;
}

int recording_read(struct recording *recording, const struct recording_ops *ops, void *context)
{
	struct recording_decoder *decoder = calloc(1, sizeof(*decoder));
	int err;

	if (!decoder)
		return -ENOMEM;
	decoder->ops = ops;
	decoder->context = context;
	decoder->flags = recording->flags;
	err = read_frames(recording, decoder);
	recording_decoder_done(decoder);
	free(decoder);
	return err;
}
