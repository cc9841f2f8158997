/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/encoding/byte_buffer.h"
#include "output/recording/recording_decoder.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* What the decoder passed on. */
struct counts {
	uint32_t nr_processes, nr_threads, nr_nodes, nr_samples;
	uint32_t node, flags; /* of the last sample */
	pid_t parent_pid;     /* of the last process */
	uint64_t process_start_ns, process_end_ns;
};

static int count_process(void *context, const struct process_info *process)
{
	struct counts *counts = context;

	counts->nr_processes++;
	counts->parent_pid = process->parent_pid;
	counts->process_start_ns = process->start_ns;
	return 0;
}

static int count_process_end(void *context, uint32_t process, uint64_t end_ns)
{
	struct counts *counts = context;

	cr_assert(lt(u32, process, counts->nr_processes));
	counts->process_end_ns = end_ns;
	return 0;
}

static int count_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	(void)process, (void)thread;
	((struct counts *)context)->nr_threads++;
	return 0;
}

static int count_function(void *context, const struct function *function)
{
	(void)context, (void)function;
	return 0;
}

static int count_node(void *context, uint32_t parent, uint32_t function, int32_t line)
{
	(void)parent, (void)function, (void)line;
	((struct counts *)context)->nr_nodes++;
	return 0;
}

static int count_renamed(void *context, uint32_t thread, const char *name)
{
	(void)context, (void)thread, (void)name;
	return 0;
}

static int count_sample(void *context, const struct recorded_sample *sample)
{
	struct counts *counts = context;

	counts->nr_samples++;
	counts->node = sample->node;
	counts->flags = sample->flags;
	return 0;
}

static int count_reset(void *context)
{
	((struct counts *)context)->nr_nodes = 0;
	return 0;
}

static const struct recording_ops ops = {
	.process = count_process,
	.process_ended = count_process_end,
	.thread = count_thread,
	.function = count_function,
	.node = count_node,
	.renamed = count_renamed,
	.sample = count_sample,
	.reset = count_reset,
};

static void decode_header(struct recording_decoder *decoder)
{
	static const uint8_t header[RECORDING_HEADER_BYTES] = RECORDING_MAGIC "\1";

	cr_assert(eq(int, recording_decoder_decode(decoder, header, sizeof(header)), 0));
}

/* A decoder that has read the header. */
static struct recording_decoder *new_decoder(struct counts *counts)
{
	struct recording_decoder *decoder = calloc(1, sizeof(*decoder));

	cr_assert(decoder != NULL);
	*counts = (struct counts){0};
	decoder->ops = &ops;
	decoder->context = counts;
	decode_header(decoder);
	return decoder;
}

static void free_decoder(struct recording_decoder *decoder)
{
	recording_decoder_done(decoder);
	free(decoder);
}

/* Decode content as one frame, and clear it. */
static int decode(struct recording_decoder *decoder, struct byte_buffer *content)
{
	int err = recording_decoder_decode(decoder, content->bytes, content->nr);

	cr_assert(not(content->failed));
	byte_buffer_clear(content);
	return err;
}

/* Append a record, and clear its payload. */
static void put_record(struct byte_buffer *content, enum record_tag tag,
		       struct byte_buffer *payload)
{
	byte_buffer_uint(content, tag);
	byte_buffer_uint(content, payload->nr);
	byte_buffer_append(content, payload->bytes, payload->nr);
	byte_buffer_clear(payload);
}

static void put_thread(struct byte_buffer *content, uint32_t slot)
{
	struct byte_buffer payload = {0};

	byte_buffer_uint(&payload, slot);
	for (int i = 0; i < 5; i++)
		byte_buffer_uint(&payload, 0);
	put_record(content, RECORD_THREAD, &payload);
	byte_buffer_done(&payload);
}

static void put_process(struct byte_buffer *content, uint32_t bytes)
{
	static char line[RECORDING_MAX_STRING_BYTES + 1];
	struct byte_buffer payload = {0};

	memset(line, 'x', sizeof(line));
	line[bytes] = '\0';
	byte_buffer_uint(&payload, 0);
	byte_buffer_string(&payload, line, RECORDING_MAX_STRING_BYTES);
	put_record(content, RECORD_PROCESS, &payload);
	byte_buffer_done(&payload);
}

/* A function and a node with it. */
static void put_node(struct byte_buffer *content)
{
	static const uint8_t function[] = {0, 1, 'f', 0, 0, 0}, node[] = {1, 1, 1, 1, 0, 0, 0};
	struct byte_buffer payload = {0};

	byte_buffer_append(&payload, function, sizeof(function));
	put_record(content, RECORD_FUNCTION, &payload);
	byte_buffer_append(&payload, node, sizeof(node));
	put_record(content, RECORD_NODES, &payload);
	byte_buffer_done(&payload);
}

/*
 * Append ticks at time 0, with the thread in slot, or with the previous tick's threads if slot is
 * PROFILE_NONE. If node is not 0 the first sample has it.
 */
static void put_samples(struct byte_buffer *content, uint64_t nr_ticks, uint64_t nr_samples,
			uint32_t slot, uint32_t node)
{
	struct byte_buffer payload = {0}, columns[NR_SAMPLES_COLUMNS] = {0};

	if (slot != PROFILE_NONE) {
		byte_buffer_fixed(&columns[SAMPLES_THREADS], 1 << 8, 2);
		byte_buffer_uint(&columns[SAMPLES_THREADS], slot);
	}
	if (node) {
		byte_buffer_uint(&columns[SAMPLES_NODE_GAPS], 0);
		byte_buffer_uint(&columns[SAMPLES_NODES], node);
	}
	byte_buffer_uint(&payload, nr_ticks);
	byte_buffer_uint(&payload, nr_samples);
	for (int i = 0; i < 4; i++)
		byte_buffer_uint(&payload, 0);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		byte_buffer_uint(&payload, columns[i].nr);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++) {
		byte_buffer_append(&payload, columns[i].bytes, columns[i].nr);
		byte_buffer_done(&columns[i]);
	}
	put_record(content, RECORD_SAMPLES, &payload);
	byte_buffer_done(&payload);
}

/* A tick of the thread in slot 0 with these flags. */
static void put_flags(struct byte_buffer *content, uint64_t flags)
{
	static const uint8_t thread[] = {0, 1, 0};
	struct byte_buffer payload = {0}, column = {0};

	byte_buffer_uint(&column, flags);
	for (int i = 0; i < 2; i++)
		byte_buffer_uint(&payload, 1); /* ticks, samples */
	for (int i = 0; i < 4; i++)
		byte_buffer_uint(&payload, 0);
	for (int i = 0; i < NR_SAMPLES_COLUMNS; i++)
		byte_buffer_uint(&payload, i == SAMPLES_THREADS	    ? sizeof(thread)
					   : i == SAMPLES_FLAG_GAPS ? 1
					   : i == SAMPLES_FLAGS	    ? column.nr
								    : 0);
	byte_buffer_append(&payload, thread, sizeof(thread));
	byte_buffer_uint(&payload, 0); /* gap of 0 samples */
	byte_buffer_append(&payload, column.bytes, column.nr);
	put_record(content, RECORD_SAMPLES, &payload);
	byte_buffer_done(&payload);
	byte_buffer_done(&column);
}

Test(recording_decoder, flags_belong_to_samples)
{
	static const struct {
		uint64_t flags;
		int err;
	} cases[] = {
		{0, 0},
		{SAMPLE_HOLDS_GIL | SAMPLE_IN_JIT, 0},
		{SAMPLE_IN_JIT, 0},
		{SAMPLE_GAPS, -EBADMSG},
		{SAMPLE_FINALIZES, -EBADMSG},
		{SAMPLE_APPROXIMATE, 0},
		{SAMPLE_IDLE, 0},
		{SAMPLE_IDLE << 1, -EBADMSG},
		{UINT64_C(1) << 44 | SAMPLE_IN_JIT, -EBADMSG},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct byte_buffer content = {0};
		struct counts counts;
		struct recording_decoder *decoder = new_decoder(&counts);

		put_thread(&content, 0);
		put_flags(&content, cases[i].flags);
		cr_expect(eq(int, decode(decoder, &content), cases[i].err), "case %zu", i);
		if (!cases[i].err)
			cr_expect(eq(u32, counts.flags, (uint32_t)cases[i].flags), "case %zu", i);
		byte_buffer_done(&content);
		free_decoder(decoder);
	}
}

/* A record has a few bytes however many samples it stands for, so samples per frame are limited. */
Test(recording_decoder, samples_per_frame_are_limited)
{
	enum { MAX = RECORDING_MAX_SAMPLES };
	static const struct {
		uint64_t nr[3]; /* in each record */
		uint32_t nr_emitted;
		int err;
	} cases[] = {
		{{1, MAX - 1}, MAX, 0},	   {{1, MAX}, 1, -EBADMSG},
		{{MAX, 1}, MAX, -EBADMSG}, {{1, 2, MAX - 2}, 3, -EBADMSG},
		{{MAX + 1}, 0, -EBADMSG},  {{UINT64_MAX}, 0, -EBADMSG},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct byte_buffer content = {0};
		struct counts counts;
		struct recording_decoder *decoder = new_decoder(&counts);

		put_thread(&content, 0);
		for (int j = 0; j < 3 && cases[i].nr[j]; j++)
			put_samples(&content, cases[i].nr[j], cases[i].nr[j], 0, 0);
		cr_expect(eq(int, decode(decoder, &content), cases[i].err), "case %zu", i);
		cr_expect(eq(u32, counts.nr_samples, cases[i].nr_emitted), "case %zu", i);
		byte_buffer_done(&content);
		free_decoder(decoder);
	}
}

Test(recording_decoder, sample_limit_starts_anew_in_each_frame)
{
	struct byte_buffer content = {0};
	struct counts counts;
	struct recording_decoder *decoder = new_decoder(&counts);

	put_thread(&content, 0);
	put_samples(&content, 1, 1, 0, 0);
	for (int i = 0; i < 3; i++) {
		cr_assert(eq(int, decode(decoder, &content), 0));
		put_samples(&content, RECORDING_MAX_SAMPLES, RECORDING_MAX_SAMPLES, PROFILE_NONE,
			    0);
	}
	cr_expect(eq(u32, counts.nr_samples, 2 * RECORDING_MAX_SAMPLES + 1));
	byte_buffer_done(&content);
	free_decoder(decoder);
}

/* The number of ticks must agree with the number of samples. */
Test(recording_decoder, tick_and_sample_counts_must_agree)
{
	static const uint64_t nr_ticks[] = {0, 1, 3, UINT64_MAX};

	for (size_t i = 0; i < NR(nr_ticks); i++) {
		struct byte_buffer content = {0};
		struct counts counts;
		struct recording_decoder *decoder = new_decoder(&counts);

		put_thread(&content, 0);
		put_samples(&content, nr_ticks[i], 2, 0, 0);
		cr_expect(eq(int, decode(decoder, &content), -EBADMSG), "case %zu", i);
		byte_buffer_done(&content);
		free_decoder(decoder);
	}
}

Test(recording_decoder, threads_are_limited)
{
	enum { IN_FRAME = 1 << 16 };
	struct byte_buffer content = {0};
	struct counts counts;
	struct recording_decoder *decoder = new_decoder(&counts);

	for (uint32_t i = 0; i < RECORDING_MAX_THREADS / IN_FRAME; i++) {
		for (uint32_t j = 0; j < IN_FRAME; j++)
			put_thread(&content, j);
		cr_assert(eq(int, decode(decoder, &content), 0));
	}
	cr_expect(eq(u32, counts.nr_threads, RECORDING_MAX_THREADS));
	put_thread(&content, 0);
	cr_expect(eq(int, decode(decoder, &content), -EBADMSG));
	cr_expect(eq(u32, counts.nr_threads, RECORDING_MAX_THREADS));
	byte_buffer_done(&content);
	free_decoder(decoder);
}

/* Records of processes have become longer; those of earlier versions are still read. */
Test(recording_decoder, processes_of_earlier_versions_are_read)
{
	static const struct {
		enum record_tag tag;
		uint8_t bytes[16];
		uint32_t nr;
		int result;
		pid_t parent_pid;
		uint64_t start_us, end_us; /* on the clock of the ticks */
	} cases[] = {
		{RECORD_PROCESS, {14, 1, 'x'}, 3, 0, 0, 0, 0},
		{RECORD_PROCESS, {14, 1, 'x', 6, 1, 'n', 9}, 7, 0, 3, 9, 0},
		{RECORD_PROCESS,
		 {14, 1, 'x', 6, 1, 'n', 9, 77},
		 8,
		 0,
		 3,
		 9,
		 0}, /* of a later one */
		{RECORD_PROCESS, {14, 1, 'x', 6, 1, 'n'}, 6, -EBADMSG, 0, 0, 0},
		{RECORD_PROCESS, {14, 1, 'x', 6}, 4, -EBADMSG, 0, 0, 0},
		{RECORD_PROCESS_END, {0, 9}, 2, 0, 0, 0, 9},
		{RECORD_PROCESS_END, {0}, 1, -EBADMSG, 0, 0, 0},
		{RECORD_PROCESS_END, {1, 9}, 2, -EBADMSG, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct byte_buffer content = {0};
		struct byte_buffer payload = {0};
		struct counts counts;
		struct recording_decoder *decoder = new_decoder(&counts);
		uint64_t epoch_us;

		put_process(&content, 1);
		cr_assert(eq(int, decode(decoder, &content), 0));
		epoch_us = decoder->position.epoch_us;
		byte_buffer_append(&payload, cases[i].bytes, cases[i].nr);
		put_record(&content, cases[i].tag, &payload);
		cr_assert(eq(int, decode(decoder, &content), cases[i].result), "case %zu", i);
		cr_expect(eq(int, counts.parent_pid, cases[i].parent_pid), "case %zu", i);
		cr_expect(eq(u64, counts.process_start_ns,
			     cases[i].start_us ? (epoch_us + cases[i].start_us) * 1000 : 0),
			  "case %zu", i);
		cr_expect(eq(u64, counts.process_end_ns,
			     cases[i].end_us ? (epoch_us + cases[i].end_us) * 1000 : 0),
			  "case %zu", i);
		byte_buffer_done(&payload);
		byte_buffer_done(&content);
		free_decoder(decoder);
	}
}

Test(recording_decoder, command_lines_are_limited)
{
	enum { NR_LONG = RECORDING_MAX_COMMAND_BYTES / (RECORDING_MAX_STRING_BYTES + 1) };
	struct byte_buffer content = {0};
	struct counts counts;
	struct recording_decoder *decoder = new_decoder(&counts);

	for (int i = 0; i < NR_LONG; i++) {
		put_process(&content, RECORDING_MAX_STRING_BYTES);
		cr_assert(eq(int, decode(decoder, &content), 0));
	}
	put_process(&content, NR_LONG);
	cr_expect(eq(int, decode(decoder, &content), 0));
	put_process(&content, 0);
	cr_expect(eq(int, decode(decoder, &content), 0));
	put_process(&content, 1);
	cr_expect(eq(int, decode(decoder, &content), -EBADMSG));
	cr_expect(eq(u32, counts.nr_processes, NR_LONG + 2));
	byte_buffer_done(&content);
	free_decoder(decoder);
}

/* A RESET is two bytes and may occur millions of times, so it must not visit all slots. */
Test(recording_decoder, reset_forgets_the_nodes_of_all_slots)
{
	struct byte_buffer content = {0}, nothing = {0};
	struct counts counts;
	struct recording_decoder *decoder = new_decoder(&counts);

	put_thread(&content, 0);
	put_thread(&content, RECORDING_MAX_SLOTS - 1);
	for (int round = 0; round < 2; round++) {
		for (uint32_t slot = 0; slot < RECORDING_MAX_SLOTS;
		     slot += RECORDING_MAX_SLOTS - 1) {
			put_samples(&content, 1, 1, slot, 0);
			cr_assert(eq(int, decode(decoder, &content), 0));
			cr_expect(eq(u32, counts.node, PROFILE_NONE));
		}
		put_node(&content);
		for (uint32_t slot = 0; slot < RECORDING_MAX_SLOTS;
		     slot += RECORDING_MAX_SLOTS - 1) {
			put_samples(&content, 1, 1, slot, 1);
			put_samples(&content, 1, 1, slot, 0);
			cr_assert(eq(int, decode(decoder, &content), 0));
			cr_expect(eq(u32, counts.node, 0));
		}
		for (int i = 0; i < 1000000; i++)
			put_record(&content, RECORD_RESET, &nothing);
	}
	cr_assert(eq(int, decode(decoder, &content), 0));
	byte_buffer_done(&content);
	free_decoder(decoder);
}
