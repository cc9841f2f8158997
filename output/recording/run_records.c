/* SPDX-License-Identifier: MIT */
#include "output/recording/run_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/* Every number of this many digits fits in 64 bits. */
enum { MAX_DIGITS = 19 };

void run_records_done(struct run_records *records)
{
	for (uint32_t i = 0; i < records->nr_pairs; i++) {
		free(records->pairs[i].name);
		free(records->pairs[i].value);
	}
	free(records->pairs);
	byte_buffer_done(&records->info);
	byte_buffer_done(&records->counters);
	*records = (struct run_records){0};
}

/* Find the pair of a name, usually the one after the last; NULL if there is none. */
static struct run_pair *find_pair(struct run_records *records, const char *name)
{
	for (uint32_t i = 0; i < records->nr_pairs; i++) {
		uint32_t index = (records->next + i) % records->nr_pairs;

		if (strcmp(records->pairs[index].name, name) == 0) {
			records->next = index + 1;
			return &records->pairs[index];
		}
	}
	return NULL;
}

/* Add a pair without a value. Returns NULL if out of memory. */
static struct run_pair *add_pair(struct run_records *records, const char *name)
{
	struct run_pair *pairs;
	char *copy = strdup(name);

	pairs = array_reserve(records->pairs, records->nr_pairs + 1, &records->max_pairs,
			      sizeof(*pairs));
	if (pairs)
		records->pairs = pairs;
	if (!pairs || !copy) {
		free(copy);
		return NULL;
	}
	pairs[records->nr_pairs] = (struct run_pair){.name = copy};
	return &pairs[records->nr_pairs++];
}

/*
 * Whether value is a number that COUNTERS can reproduce: whole, 64 bits, no leading zeros.
 */
static bool is_whole_number(const char *value)
{
	const size_t length = strspn(value, "0123456789");

	return length && length <= MAX_DIGITS && !value[length] && (*value != '0' || length == 1);
}

/* Append a pair to INFO and keep it. */
static void put_pair(struct run_records *records, struct run_pair *pair, const char *value)
{
	char *copy = strdup(value);

	if (!copy) {
		records->info.failed = true;
		return;
	}
	free(pair->value);
	pair->value = copy;
	pair->is_number = is_whole_number(value);
	pair->number = pair->is_number ? strtoull(value, NULL, 10) : 0;
	byte_buffer_string(&records->info, pair->name, RECORDING_MAX_STRING_BYTES);
	byte_buffer_string(&records->info, value, RECORDING_MAX_STRING_BYTES);
}

/* Append the change of a number to COUNTERS. */
static void put_change(struct run_records *records, struct run_pair *pair, uint64_t number)
{
	if (number == pair->number)
		return;
	byte_buffer_uint(&records->counters, (uint64_t)(pair - records->pairs));
	byte_buffer_int(&records->counters, (int64_t)(number - pair->number));
	pair->number = number;
}

static void put_run_pair(void *context, const char *name, const char *value)
{
	struct run_records *records = context;
	struct run_pair *pair = find_pair(records, name);

	if (!pair && strcmp(value, "0") == 0)
		return; /* same as an absent pair */
	if (pair && pair->is_number && is_whole_number(value)) {
		put_change(records, pair, strtoull(value, NULL, 10));
		return;
	}
	if (pair && (!records->is_final || strcmp(pair->value, value) == 0))
		return;
	if (!pair)
		pair = add_pair(records, name);
	if (pair)
		put_pair(records, pair, value);
	else
		records->info.failed = true;
}

/* Write one of the payloads, unless it is empty. */
static int write_payload(struct byte_buffer *bytes, enum record_tag tag,
			 struct record_stream *stream)
{
	struct byte_buffer *payload;

	if (bytes->failed)
		return -ENOMEM;
	if (!bytes->nr)
		return 0;
	payload = record_stream_begin(stream);
	byte_buffer_append(payload, bytes->bytes, bytes->nr);
	byte_buffer_clear(bytes);
	return record_stream_end(stream, tag, NULL, 0);
}

int run_records_write(struct run_records *records, const struct run *run, bool is_final,
		      struct record_stream *stream)
{
	int err;

	records->is_final = is_final;
	run_for_each_pair(run, put_run_pair, records);
	err = write_payload(&records->info, RECORD_INFO, stream);
	return err ? err : write_payload(&records->counters, RECORD_COUNTERS, stream);
}
