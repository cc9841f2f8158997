/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_decoder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/byte_cursor.h"

enum { US_NS = 1000 };

static void forget_paths(struct decoder_tree *tree)
{
	for (uint32_t i = 0; i < tree->nr_paths; i++)
		free(tree->paths[i]);
	tree->nr_paths = 0;
	tree->strings_bytes = 0;
}

void recording_decoder_done(struct recording_decoder *decoder)
{
	forget_paths(&decoder->tree);
	free(decoder->tree.paths);
	free(decoder->tree.first_lines);
	for (uint32_t i = 0; i < decoder->pairs.nr; i++)
		free(decoder->pairs.rows[i].name);
	free(decoder->pairs.rows);
	slot_table_done(&decoder->threads.slots);
	process_rows_done(&decoder->threads.processes);
}

/* Read a string of at most max_bytes into text, which has room for its NUL as well. */
static bool read_string(struct byte_cursor *payload, char *text, size_t max_bytes)
{
	const uint64_t bytes = byte_cursor_uint(payload);
	const struct byte_cursor string = byte_cursor_split(payload, bytes);

	if (string.is_bad || bytes > max_bytes || memchr(string.at, '\0', bytes))
		return false;
	memcpy(text, string.at, bytes);
	text[bytes] = '\0';
	return true;
}

/* Read a number that must be below limit. */
static bool read_below(struct byte_cursor *payload, uint64_t limit, uint32_t *ret_number)
{
	const uint64_t number = byte_cursor_uint(payload);

	*ret_number = (uint32_t)number;
	return !payload->is_bad && number < limit;
}

/* Read a signed 32-bit number that is stored as its distance from base. */
static bool read_int32(struct byte_cursor *payload, int32_t base, int32_t *ret_number)
{
	return !__builtin_add_overflow(byte_cursor_int(payload), base, ret_number) &&
	       !payload->is_bad;
}

static struct info_pair *find_pair(const struct decoder_pairs *pairs, const char *name)
{
	for (uint32_t i = 0; i < pairs->nr; i++)
		if (strcmp(pairs->rows[i].name, name) == 0)
			return &pairs->rows[i];
	return NULL;
}

static int add_pair(struct decoder_pairs *pairs, const char *name, struct info_pair **ret_pair)
{
	struct info_pair *rows;
	char *copy;

	if (pairs->nr == RECORDING_MAX_NAMES)
		return -EBADMSG;
	rows = array_reserve(pairs->rows, pairs->nr + 1, &pairs->max, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	pairs->rows = rows;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	rows[pairs->nr] = (struct info_pair){.name = copy};
	*ret_pair = &rows[pairs->nr++];
	return 0;
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return !*end && !errno;
}

static int store_pair(struct recording_decoder *decoder, const char *name, const char *value)
{
	return decoder->run ? stored_run_set(decoder->run, name, value) : 0;
}

static int decode_info(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	int err = 0;

	while (!err && !byte_cursor_is_at_end(payload)) {
		struct info_pair *pair;

		if (!read_string(payload, decoder->name, RECORDING_MAX_STRING_BYTES) ||
		    !read_string(payload, decoder->value, RECORDING_MAX_STRING_BYTES))
			return -EBADMSG;
		pair = find_pair(&decoder->pairs, decoder->name);
		if (!pair)
			err = add_pair(&decoder->pairs, decoder->name, &pair);
		if (err)
			return err;
		pair->is_number = parse_number(decoder->value, &pair->number);
		err = store_pair(decoder, decoder->name, decoder->value);
	}
	return err;
}

static int decode_counters(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	int err = 0;

	while (!err && !byte_cursor_is_at_end(payload)) {
		struct info_pair *pair;
		uint32_t index;

		if (!read_below(payload, decoder->pairs.nr, &index))
			return -EBADMSG;
		pair = &decoder->pairs.rows[index];
		pair->number += (uint64_t)byte_cursor_int(payload);
		if (payload->is_bad || !pair->is_number)
			return -EBADMSG;
		(void)snprintf(decoder->value, sizeof(decoder->value), "%" PRIu64, pair->number);
		err = store_pair(decoder, pair->name, decoder->value);
	}
	return err;
}

/* Read a time of the ticks' clock, as CLOCK_REALTIME; 0 stays 0. */
static bool read_time(const struct recording_decoder *decoder, struct byte_cursor *payload,
		      uint64_t *ret_time_ns)
{
	const uint64_t time_us = byte_cursor_uint(payload);
	uint64_t sum_us;

	*ret_time_ns = 0;
	return !payload->is_bad &&
	       (!time_us ||
		(!__builtin_add_overflow(decoder->position.epoch_us, time_us, &sum_us) &&
		 !__builtin_mul_overflow(sum_us, US_NS, ret_time_ns)));
}

/* Read a string of a process. Returns false if all of them exceed the limit. */
static bool read_process_string(struct recording_decoder *decoder, struct byte_cursor *payload,
				char *text)
{
	if (!read_string(payload, text, RECORDING_MAX_STRING_BYTES))
		return false;
	decoder->threads.process_bytes += strlen(text);
	return decoder->threads.process_bytes <= RECORDING_MAX_COMMAND_BYTES;
}

static int decode_process(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	struct process_info info = {.name = "", .command_line = decoder->value};
	int err;

	if (decoder->threads.processes.nr == RECORDING_MAX_PROCESSES ||
	    !read_int32(payload, 0, &info.pid) ||
	    !read_process_string(decoder, payload, decoder->value))
		return -EBADMSG;
	if (!byte_cursor_is_at_end(payload)) { /* else it is of an earlier version */
		if (!read_int32(payload, 0, &info.parent_pid) ||
		    !read_process_string(decoder, payload, decoder->name) ||
		    !read_time(decoder, payload, &info.start_ns))
			return -EBADMSG;
		info.name = decoder->name;
	}
	err = process_rows_add(&decoder->threads.processes, &info);
	if (err || !decoder->ops || !decoder->ops->process)
		return err;
	return decoder->ops->process(decoder->context, &info);
}

static int decode_process_end(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	uint64_t end_ns;
	uint32_t process;

	if (!read_below(payload, decoder->threads.processes.nr, &process) ||
	    !read_time(decoder, payload, &end_ns))
		return -EBADMSG;
	decoder->threads.processes.rows[process].end_ns = end_ns;
	return decoder->ops && decoder->ops->process_ended
		       ? decoder->ops->process_ended(decoder->context, process, end_ns)
		       : 0;
}

static int decode_thread(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	struct profile_thread thread = {0};
	struct slot_state *state;
	uint32_t slot, process;
	bool is_good = read_below(payload, RECORDING_MAX_SLOTS, &slot) &&
		       read_below(payload, (uint64_t)decoder->threads.processes.nr + 1, &process) &&
		       read_int32(payload, 0, &thread.tid);

	thread.interpreter_id = byte_cursor_int(payload);
	thread.is_main = byte_cursor_uint(payload) & RECORD_MAIN_THREAD;
	if (!is_good || !read_string(payload, thread.name, THREAD_NAME_MAX_BYTES - 1) ||
	    decoder->threads.nr == RECORDING_MAX_THREADS)
		return -EBADMSG;
	thread.process = process ? process - 1 : PROFILE_NONE;
	state = slot_table_get(&decoder->threads.slots, slot);
	if (!state)
		return -ENOMEM;
	*state = (struct slot_state){.is_used = true, .thread = decoder->threads.nr++};
	return decoder->ops && decoder->ops->thread
		       ? decoder->ops->thread(decoder->context, thread.process, &thread)
		       : 0;
}

static int decode_rename(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	const struct slot_table *table = &decoder->threads.slots;
	uint32_t slot;

	if (!read_below(payload, table->max_slots, &slot) || !table->slots[slot].is_used ||
	    !read_string(payload, decoder->name, THREAD_NAME_MAX_BYTES - 1))
		return -EBADMSG;
	return decoder->ops && decoder->ops->renamed
		       ? decoder->ops->renamed(decoder->context, table->slots[slot].thread,
					       decoder->name)
		       : 0;
}

/* Count a string of a function or path. Returns false beyond the limit. */
static bool count_string(struct decoder_tree *tree, const char *string)
{
	tree->strings_bytes += strlen(string) + 1;
	return tree->strings_bytes <= RECORDING_MAX_STRINGS_BYTES;
}

static int add_path(struct decoder_tree *tree, const char *path)
{
	char **paths;
	char *copy;

	if (!count_string(tree, path))
		return -EBADMSG;
	paths = array_reserve(tree->paths, tree->nr_paths + 1, &tree->max_paths, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	tree->paths = paths;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	paths[tree->nr_paths++] = copy;
	return 0;
}

/* Read the path of a function, new or by number; borrowed. */
static int decode_path(struct recording_decoder *decoder, struct byte_cursor *payload,
		       const char **ret_path)
{
	uint32_t number;
	int err = 0;

	if (!read_below(payload, (uint64_t)decoder->tree.nr_paths + 1, &number))
		return -EBADMSG;
	if (!number) {
		if (!read_string(payload, decoder->value, RECORDING_MAX_STRING_BYTES))
			return -EBADMSG;
		err = add_path(&decoder->tree, decoder->value);
		number = decoder->tree.nr_paths;
	}
	if (!err)
		*ret_path = decoder->tree.paths[number - 1];
	return err;
}

static int decode_function(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	struct decoder_tree *tree = &decoder->tree;
	struct function function = {.id = tree->nr_functions, .qualname = decoder->name};
	int32_t *first_lines;
	const uint64_t kind = byte_cursor_uint(payload);
	int err;

	if (tree->nr_functions == RECORDING_MAX_FUNCTIONS ||
	    !read_string(payload, decoder->name, RECORDING_MAX_STRING_BYTES) ||
	    !count_string(tree, decoder->name))
		return -EBADMSG;
	/* Later versions may have more kinds. */
	function.kind = kind < NR_FUNCTION_KINDS ? (enum function_kind)kind : FUNCTION_PYTHON;
	err = decode_path(decoder, payload, &function.path);
	if (err)
		return err;
	if (!read_int32(payload, 0, &function.first_line))
		return -EBADMSG;
	first_lines = array_reserve(tree->first_lines, tree->nr_functions + 1, &tree->max_functions,
				    sizeof(*first_lines));
	if (!first_lines)
		return -ENOMEM;
	tree->first_lines = first_lines;
	first_lines[tree->nr_functions++] = function.first_line;
	return decoder->ops && decoder->ops->function
		       ? decoder->ops->function(decoder->context, &function)
		       : 0;
}

/* Read the next node from a record's columns. */
static int decode_node(struct recording_decoder *decoder,
		       struct byte_cursor columns[NR_NODES_COLUMNS])
{
	struct decoder_tree *tree = &decoder->tree;
	uint32_t function, distance, parent;
	int32_t line;

	if (!read_below(&columns[NODES_PARENTS], (uint64_t)tree->nr_nodes + 1, &distance) ||
	    !read_below(&columns[NODES_FUNCTIONS], tree->nr_functions, &function) ||
	    !read_int32(&columns[NODES_LINES], tree->first_lines[function], &line))
		return -EBADMSG;
	parent = distance ? tree->nr_nodes - distance : PROFILE_NONE;
	tree->nr_nodes++;
	return decoder->ops && decoder->ops->node
		       ? decoder->ops->node(decoder->context, parent, function, line)
		       : 0;
}

static int decode_nodes(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	struct byte_cursor columns[NR_NODES_COLUMNS];
	uint64_t bytes[NR_NODES_COLUMNS];
	uint32_t nr;
	int err = 0;

	if (!read_below(payload, (uint64_t)RECORDING_MAX_NODES - decoder->tree.nr_nodes + 1, &nr))
		return -EBADMSG;
	for (int i = 0; i < NR_NODES_COLUMNS; i++)
		bytes[i] = byte_cursor_uint(payload);
	for (int i = 0; i < NR_NODES_COLUMNS; i++)
		columns[i] = byte_cursor_split(payload, bytes[i]);
	for (uint32_t i = 0; !err && i < nr; i++)
		err = decode_node(decoder, columns);
	for (int i = 0; !err && i < NR_NODES_COLUMNS; i++)
		if (!byte_cursor_is_at_end(&columns[i]) || columns[i].is_bad)
			err = -EBADMSG;
	return err;
}

static int decode_reset(struct recording_decoder *decoder)
{
	decoder->tree.nr_functions = 0;
	decoder->tree.nr_nodes = 0;
	forget_paths(&decoder->tree);
	slot_table_forget_nodes(&decoder->threads.slots);
	return decoder->ops && decoder->ops->reset ? decoder->ops->reset(decoder->context) : 0;
}

/* Emit one sample. */
static int emit_sample(const struct recording_decoder *decoder, const struct decoded_sample *stored)
{
	struct recorded_sample sample = {
		.wall_ns = stored->wall_us * US_NS,
		.cpu_ns = stored->cpu_us * US_NS,
		.thread = stored->slot->thread,
		.node = stored->slot->node ? (uint32_t)(stored->slot->node - 1) : PROFILE_NONE,
		.flags = (stored->slot->flags & ~RECORD_WEIGHED) | decoder->flags,
	};

	if (__builtin_mul_overflow(decoder->position.epoch_us, US_NS, &sample.time_ns) ||
	    __builtin_add_overflow(sample.time_ns, stored->time_ns, &sample.time_ns))
		return -EBADMSG;
	return decoder->ops && decoder->ops->sample
		       ? decoder->ops->sample(decoder->context, &sample)
		       : 0;
}

static int decode_samples(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	struct samples_reader reader;
	struct decoded_sample sample;
	int err;

	if (!samples_reader_begin(&reader, &decoder->threads.slots, payload) ||
	    reader.nr_samples > RECORDING_MAX_SAMPLES - decoder->position.nr_frame_samples)
		return -EBADMSG;
	decoder->position.nr_frame_samples += (uint32_t)reader.nr_samples;
	for (;; decoder->position.nr_samples++) {
		err = samples_reader_next(&reader, decoder->tree.nr_nodes, &sample);
		if (err)
			return err == -ENOENT ? 0 : err;
		err = emit_sample(decoder, &sample);
		if (err)
			return err;
	}
}

static int decode_end(struct recording_decoder *decoder, struct byte_cursor *payload)
{
	decoder->position.has_end = true;
	return byte_cursor_uint(payload) == decoder->position.nr_samples && !payload->is_bad
		       ? 0
		       : -EBADMSG;
}

static int decode_record(struct recording_decoder *decoder, uint64_t tag,
			 struct byte_cursor *payload)
{
	switch (tag) {
	case RECORD_INFO:
		return decode_info(decoder, payload);
	case RECORD_COUNTERS:
		return decode_counters(decoder, payload);
	case RECORD_PROCESS:
		return decode_process(decoder, payload);
	case RECORD_PROCESS_END:
		return decode_process_end(decoder, payload);
	case RECORD_THREAD:
		return decode_thread(decoder, payload);
	case RECORD_RENAME:
		return decode_rename(decoder, payload);
	case RECORD_FUNCTION:
		return decode_function(decoder, payload);
	case RECORD_NODES:
		return decode_nodes(decoder, payload);
	case RECORD_RESET:
		return decode_reset(decoder);
	case RECORD_SAMPLES:
		return decode_samples(decoder, payload);
	case RECORD_END:
		return decode_end(decoder, payload);
	default:
		return 0; /* of a later version, ignored */
	}
}

/* Read the header at the start of the stream. */
static bool decode_header(struct byte_cursor *content, uint64_t *ret_version,
			  uint64_t *ret_epoch_us)
{
	const struct byte_cursor magic = byte_cursor_split(content, RECORDING_MAGIC_BYTES);

	if (magic.is_bad || memcmp(magic.at, RECORDING_MAGIC, RECORDING_MAGIC_BYTES) != 0)
		return false;
	*ret_version = byte_cursor_fixed(content, 1);
	(void)byte_cursor_fixed(content, 1);
	*ret_epoch_us = byte_cursor_fixed(content, 8);
	return !content->is_bad;
}

unsigned int recording_version(const uint8_t *content, size_t bytes)
{
	struct byte_cursor cursor = {.at = content, .end = content + bytes};
	uint64_t version, epoch_us;

	return decode_header(&cursor, &version, &epoch_us) ? (unsigned int)version : 0;
}

int recording_decoder_decode(struct recording_decoder *decoder, const uint8_t *content,
			     size_t bytes)
{
	struct byte_cursor cursor = {.at = content, .end = content + bytes};
	uint64_t version;
	int err = 0;

	if (!decoder->position.has_header) {
		if (!decode_header(&cursor, &version, &decoder->position.epoch_us) ||
		    version != RECORDING_VERSION)
			return -EBADMSG;
		decoder->position.has_header = true;
	}
	decoder->position.nr_frame_samples = 0;
	while (!err && !byte_cursor_is_at_end(&cursor)) {
		const uint64_t tag = byte_cursor_fixed(&cursor, 1);
		const uint64_t length = byte_cursor_uint(&cursor);
		struct byte_cursor payload = byte_cursor_split(&cursor, length);

		err = payload.is_bad || decoder->position.has_end
			      ? -EBADMSG
			      : decode_record(decoder, tag, &payload);
	}
	return cursor.is_bad && !err ? -EBADMSG : err;
}
