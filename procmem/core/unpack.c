/* SPDX-License-Identifier: MIT */
#include "procmem/core/unpack.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/decompressor.h"
#include "procmem/core/sparse_file.h"

/* Bytes that are read at once. */
#define INPUT_BYTES ((size_t)128 << 10)

/* Decompressors refuse what is not a frame by its first bytes; lz4 waits for this many. */
enum { FRAME_MIN_BYTES = 7 };

/*
 * Limit on padding; the blocks of tapes are shorter (st(4)). More zeros are not padding, and may
 * never end.
 */
#define PADDING_MAX_BYTES ((uint64_t)16 << 20)

struct unpacking {
	int fd;
	const struct decompressor *decompressor; /* NULL: the input is not compressed */
	void *state;				 /* of the decompressor */
	struct sparse_file file;
	uint8_t *input;
	size_t input_bytes;
	bool is_complete;	/* the input may end here */
	bool is_elf;		/* the first bytes are those of an ELF file */
	bool has_stream;	/* at least one stream has ended */
	uint64_t streams_bytes; /* size of the output at the end of the last stream */
	uint64_t tail_bytes;	/* input consumed after that without an error */
	uint64_t padding_bytes; /* zeros between and after streams */
	struct message problem;
};

/*
 * Read what is available, and wait if nothing is: the pipe may be non-blocking. That is not
 * changed, because it would change for everybody who has the pipe open. Returns as read(2).
 */
static ssize_t read_some(int fd, void *buffer, size_t size)
{
	struct pollfd input = {.fd = fd, .events = POLLIN};

	for (;;) {
		ssize_t n = read(fd, buffer, size);

		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
		if (errno == EAGAIN)
			(void)poll(&input, 1, -1);
	}
}

/* Read until size bytes are in the buffer or the input ends. */
static int read_input(struct unpacking *unpacking, size_t size)
{
	while (unpacking->input_bytes < size) {
		ssize_t n = read_some(unpacking->fd, unpacking->input + unpacking->input_bytes,
				      size - unpacking->input_bytes);

		if (n < 0) {
			int error = errno;

			message_set(&unpacking->problem, "the rest of the file cannot be read: %s",
				    strerror(error));
			return -error;
		}
		if (n == 0)
			break;
		unpacking->input_bytes += (size_t)n;
	}
	return 0;
}

/* Refuse output that is not an ELF file before all of it is decompressed. */
static int check_elf(struct unpacking *unpacking)
{
	const struct decompressor *outer = unpacking->decompressor;
	const size_t nr_bytes = (size_t)sparse_file_bytes(&unpacking->file);
	const struct decompressor *inner;

	if (unpacking->is_elf || nr_bytes < SELFMAG)
		return 0;
	unpacking->is_elf = memcmp(unpacking->file.buffer, ELFMAG, SELFMAG) == 0;
	if (unpacking->is_elf)
		return 0;
	inner = decompressor_find(unpacking->file.buffer, nr_bytes);
	if (outer && inner)
		message_set(&unpacking->problem,
			    "the file is compressed twice, with %s and with %s: decompress it with "
			    "%s -d first",
			    inner->name, outer->name, outer->name);
	else
		message_set(
			&unpacking->problem,
			"the file is not a core file: %s does not begin with the ELF magic number",
			outer ? "its decompressed content" : "it");
	return -EBADMSG;
}

/* Explain why nothing more can be decompressed. */
static void explain_end(struct unpacking *unpacking, bool is_refused)
{
	uint64_t bytes = sparse_file_bytes(&unpacking->file);

	/* gzip(1) does the same, and calls it trailing garbage. */
	if (unpacking->has_stream && unpacking->streams_bytes == bytes &&
	    (is_refused || unpacking->tail_bytes < FRAME_MIN_BYTES))
		message_set(&unpacking->problem,
			    "the file has other data after its %s data, which is ignored",
			    unpacking->decompressor->name);
	else
		message_set(&unpacking->problem,
			    "the file is %s: %s decompressed only its first %llu bytes",
			    is_refused ? "damaged" : "truncated", unpacking->decompressor->name,
			    (unsigned long long)bytes);
}

static int refuse_input(struct unpacking *unpacking, int err)
{
	if (err == -E2BIG)
		message_set(&unpacking->problem,
			    "decompressing the file takes more than %u MiB of memory: run "
			    "%s -d first",
			    DECOMPRESSOR_MAX_MEMORY_BYTES >> 20, unpacking->decompressor->name);
	else if (err == -EBADMSG)
		explain_end(unpacking, true);
	return err;
}

/* Copy input that is not compressed. */
static void copy_step(struct decompressor_step *step)
{
	size_t size =
		step->input_bytes < step->output_bytes ? step->input_bytes : step->output_bytes;

	memcpy(step->output, step->input, size);
	step->input += size;
	step->input_bytes -= size;
	step->output += size;
	step->output_bytes -= size;
	step->is_complete = true;
}

/* Run one step of the decompressor, whose output goes into the file. */
static int run_step(struct unpacking *unpacking, struct decompressor_step *step)
{
	const struct decompressor *decompressor = unpacking->decompressor;
	size_t input_bytes = step->input_bytes;
	size_t room;
	int step_err = 0;
	int err;

	step->output = sparse_file_room(&unpacking->file, &room);
	step->output_bytes = room;
	if (decompressor)
		step_err = decompressor->step(unpacking->state, step);
	else
		copy_step(step);
	if (!step_err && input_bytes && step->input_bytes == input_bytes &&
	    step->output_bytes == room)
		step_err = -EBADMSG; /* no progress */
	err = sparse_file_advance(&unpacking->file, room - step->output_bytes, &unpacking->problem);
	if (!err)
		err = check_elf(unpacking);
	if (!err && step_err)
		err = refuse_input(unpacking, step_err);
	unpacking->tail_bytes += input_bytes - step->input_bytes;
	if (!err && step->is_complete) {
		unpacking->has_stream = true;
		unpacking->tail_bytes = 0;
		unpacking->streams_bytes = sparse_file_bytes(&unpacking->file);
	}
	return err;
}

/*
 * Skip the zeros after a stream. Tapes are padded with zeros, and xz files may be (the .xz file
 * format, 2.2). No stream begins with a zero.
 */
static void skip_padding(struct unpacking *unpacking, struct decompressor_step *step)
{
	while (step->input_bytes && *step->input == 0) {
		step->input++;
		step->input_bytes--;
		unpacking->padding_bytes++;
	}
}

/* Decompress the input that was read. */
static int unpack_input(struct unpacking *unpacking)
{
	struct decompressor_step step = {.input = unpacking->input,
					 .input_bytes = unpacking->input_bytes,
					 .is_complete = unpacking->is_complete};
	int err = 0;

	while (!err) {
		if (unpacking->decompressor && step.is_complete)
			skip_padding(unpacking, &step);
		/* Without input, only a decompressor whose room was too small has more output. */
		if (!step.input_bytes && (step.output_bytes || step.is_complete))
			break;
		err = run_step(unpacking, &step);
	}
	unpacking->is_complete = step.is_complete;
	unpacking->input_bytes = 0;
	return err;
}

/* Decompress to the end of the file, or as far as possible. */
static int unpack_all(struct unpacking *unpacking)
{
	int err;

	do {
		err = read_input(unpacking, INPUT_BYTES);
		if (!unpacking->input_bytes)
			break;
		int unpack_err = unpack_input(unpacking);

		err = unpack_err ? unpack_err : err;
	} while (!err && unpacking->padding_bytes <= PADDING_MAX_BYTES);
	if (!err && unpacking->decompressor &&
	    (!unpacking->is_complete || unpacking->padding_bytes > PADDING_MAX_BYTES))
		explain_end(unpacking, false);
	return err;
}

/* Decompress the whole input, once its decompressor is known. */
static int unpack_file(struct unpacking *unpacking, struct unpacked *ret_unpacked)
{
	int fd = -1;
	int err;

	err = sparse_file_open(&unpacking->file);
	if (err)
		return err;
	if (unpacking->decompressor) {
		unpacking->state = unpacking->decompressor->create();
		if (!unpacking->state)
			return -ENOMEM;
	}
	err = unpack_all(unpacking);
	/* Incomplete output is good enough, unless memory ran out or it cannot be a core. */
	if (err == -ENOMEM || (!unpacking->is_elf && unpacking->problem.text[0]))
		return err ? err : -EBADMSG;
	err = sparse_file_finish(&unpacking->file, &fd, &unpacking->problem);
	if (err)
		return err;
	*ret_unpacked = (struct unpacked){
		.fd = fd,
		.compressed_by = unpacking->decompressor ? unpacking->decompressor->name : NULL,
		.problem = unpacking->problem,
	};
	return 0;
}

/* Whether the file can only be read from beginning to end. */
static bool is_stream(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode);
}

static int unpack_if_needed(struct unpacking *unpacking, struct unpacked *ret_unpacked)
{
	struct stat st;
	int err = 0;

	if (fstat(unpacking->fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode) || is_stream(st.st_mode))
		err = read_input(unpacking, DECOMPRESSOR_MAGIC_MAX_BYTES);
	if (err)
		return err;
	unpacking->decompressor = decompressor_find(unpacking->input, unpacking->input_bytes);
	if (unpacking->decompressor || is_stream(st.st_mode))
		return unpack_file(unpacking, ret_unpacked);
	*ret_unpacked = (struct unpacked){.fd = unpacking->fd};
	unpacking->fd = -1;
	return 0;
}

int unpack(int fd, struct unpacked *ret_unpacked, struct message *reterr)
{
	struct unpacking unpacking = {
		.fd = fd,
		.file = {.disk = TEMP_FILE_NONE, .memory_fd = -1},
		.input = malloc(INPUT_BYTES),
	};
	int err = unpacking.input ? unpack_if_needed(&unpacking, ret_unpacked) : -ENOMEM;

	if (err)
		message_set(reterr, "%s",
			    unpacking.problem.text[0] ? unpacking.problem.text : strerror(-err));
	if (unpacking.decompressor && unpacking.state)
		unpacking.decompressor->destroy(unpacking.state);
	sparse_file_close(&unpacking.file);
	free(unpacking.input);
	cleanup_close_fn(&unpacking.fd);
	return err;
}
