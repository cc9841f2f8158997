/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/file_blocks.h"

/* So much of the file is read at a time; any record can be judged by it. */
enum { WINDOW_BYTES = 1 << 17 };
_Static_assert((int)WINDOW_BYTES >= (int)JITDUMP_JUDGED_BYTES, "a window judges any record");

/* So many records of unknown kinds, one behind the other, are none by chance. */
enum { MAX_UNKNOWN_IN_A_ROW = 8 };

/* A record that belongs to the next LOAD. */
struct pending {
	uint64_t offset; /* 0: none */
	uint32_t nr_bytes;
	remote_addr code_addr; /* of a DEBUG_INFO */
};

/* How far it was read, and what was met. */
struct progress {
	uint64_t offset;      /* of what was not taken yet; 0: nor was the header */
	uint64_t lost_offset; /* where a record should have been; 0: it was */
	bool is_closed;
	struct pending lines;
	struct pending unwinding;
	struct jitdump_stats stats;
};

struct jitdump {
	int fd;
	uint32_t file_index;
	uint64_t end_ns;
	bool has_header; /* has had one, since when the file may have been cut */
	struct jitdump_header header;
	uint8_t header_bytes[JITDUMP_HEADER_BYTES]; /* as they are in the file */
	struct progress at;
	const uint8_t *tail; /* borrowed; what would come at tail_offset */
	uint64_t tail_offset;
	size_t tail_bytes;
	uint64_t ahead_offset; /* so far it was read before it was in the file */
	uint64_t window_offset;
	size_t window_bytes;
	uint8_t window[WINDOW_BYTES];
};

/* A tail has no more codes: the shortest record of one has its fixed part, and an empty name. */
enum { MAX_TAIL_CODES = JITDUMP_MAX_TAIL_BYTES / 57 };

/* What one call of jitdump_read() works on. */
struct reading {
	struct jitdump *dump;
	struct jit_map *map;
	uint64_t size_bytes; /* of the file, and of the tail where that counts */
	bool has_tail;
	bool is_final;
	int error;
};

int jitdump_open(int fd, uint32_t file_index, struct jitdump **ret_dump)
{
	cleanup_close int guard = fd;
	struct jitdump *dump = calloc(1, sizeof(*dump));

	if (!dump)
		return -ENOMEM;
	dump->fd = take_fd(guard);
	dump->file_index = file_index;
	dump->end_ns = UINT64_MAX;
	*ret_dump = dump;
	return 0;
}

void jitdump_close(struct jitdump *dump)
{
	if (!dump)
		return;
	(void)close(dump->fd);
	free(dump);
}

void jitdump_set_end(struct jitdump *dump, uint64_t end_ns)
{
	dump->end_ns = end_ns;
}

uint64_t jitdump_offset(const struct jitdump *dump)
{
	return dump->at.offset;
}

const struct jitdump_header *jitdump_header(const struct jitdump *dump)
{
	return dump->has_header ? &dump->header : NULL;
}

const struct jitdump_stats *jitdump_stats(const struct jitdump *dump)
{
	return &dump->at.stats;
}

int jitdump_fd(const struct jitdump *dump)
{
	return dump->fd;
}

void jitdump_set_tail(struct jitdump *dump, uint64_t offset, const uint8_t *bytes, size_t nr)
{
	dump->tail_offset = offset;
	dump->tail = bytes;
	dump->tail_bytes = nr;
}

/* What is wrong. */

static void note_fault(struct jitdump *dump, enum jitdump_fault fault, uint64_t offset,
		       uint64_t nr_bytes)
{
	struct jitdump_stats *stats = &dump->at.stats;

	stats->nr_faults[fault]++;
	if (stats->nr_places < JITDUMP_MAX_PLACES)
		stats->places[stats->nr_places++] = (struct jitdump_place){
			.fault = fault, .offset = offset, .nr_bytes = nr_bytes};
}

static void drop_pending(struct jitdump *dump, struct pending *pending, enum jitdump_fault fault)
{
	if (pending->offset)
		note_fault(dump, fault, pending->offset, pending->nr_bytes);
	*pending = (struct pending){0};
}

static void drop_both_pending(struct jitdump *dump)
{
	drop_pending(dump, &dump->at.lines, JITDUMP_ORPHAN_LINES);
	drop_pending(dump, &dump->at.unwinding, JITDUMP_ORPHAN_UNWINDING);
}

/* Bytes of the file. */

/* Copy what the tail has at offset, if the file ends there. How many bytes. */
static size_t copy_tail(const struct jitdump *dump, uint64_t offset, uint8_t *buffer, size_t nr)
{
	const uint64_t skipped = offset - dump->tail_offset;

	if (offset < dump->tail_offset || skipped >= dump->tail_bytes)
		return 0;
	if (nr > dump->tail_bytes - skipped)
		nr = dump->tail_bytes - skipped;
	memcpy(buffer, dump->tail + skipped, nr);
	return nr;
}

size_t jitdump_read_bytes(const struct jitdump *dump, uint64_t offset, uint8_t *buffer, size_t nr)
{
	const size_t nr_in_file = file_read_at(dump->fd, offset, buffer, nr);

	return nr_in_file +
	       copy_tail(dump, offset + nr_in_file, buffer + nr_in_file, nr - nr_in_file);
}

/* Fill the window with what is at offset. */
static void move_window(struct reading *reading, uint64_t offset)
{
	struct jitdump *dump = reading->dump;
	const ssize_t nr = pread(dump->fd, dump->window, WINDOW_BYTES, (off_t)offset);

	dump->window_offset = offset;
	dump->window_bytes = nr < 0 ? 0 : (size_t)nr;
	if (nr < 0)
		reading->error = -errno;
	else if (reading->has_tail)
		dump->window_bytes += copy_tail(dump, offset + (uint64_t)nr, dump->window + nr,
						WINDOW_BYTES - (size_t)nr);
}

/*
 * The bytes at offset: *ret_bytes, and how many there are, at least wanted unless the file
 * ends there. An error is kept in reading->error, and there are none then.
 */
static size_t bytes_at(struct reading *reading, uint64_t offset, size_t wanted,
		       const uint8_t **ret_bytes)
{
	struct jitdump *dump = reading->dump;
	const uint64_t end = dump->window_offset + dump->window_bytes;

	if (offset < dump->window_offset || offset > end || end - offset < wanted)
		move_window(reading, offset);
	*ret_bytes = dump->window + (offset - dump->window_offset);
	return dump->window_bytes - (size_t)(offset - dump->window_offset);
}

static int decode_at(struct reading *reading, uint64_t offset, struct jitdump_record *ret_record)
{
	const uint8_t *bytes;
	size_t nr = bytes_at(reading, offset, JITDUMP_PREFIX_BYTES, &bytes);
	int err = jitdump_record_decode(bytes, nr, reading->dump->header.is_big_endian, ret_record);

	if (err != -EAGAIN)
		return err;
	nr = bytes_at(reading, offset, JITDUMP_JUDGED_BYTES, &bytes);
	return jitdump_record_decode(bytes, nr, reading->dump->header.is_big_endian, ret_record);
}

/* What a record is. */

/* Whether it can be no other bytes by chance: who wrote it is the one that the file is of. */
static bool is_certain(const struct jitdump *dump, const struct jitdump_record *record)
{
	if (record->id == JITDUMP_LOAD || record->id == JITDUMP_MOVE)
		return record->pid == dump->header.pid;
	return record->id < NR_JITDUMP_IDS;
}

/*
 * Whether what is at offset is the end of the file, or a record, as far as it is there; of
 * unknown kinds there may be several in a row.
 */
static bool goes_on_at(struct reading *reading, uint64_t offset)
{
	struct jitdump_record record;
	int err;

	for (int i = 0; i < MAX_UNKNOWN_IN_A_ROW && offset < reading->size_bytes; i++) {
		err = decode_at(reading, offset, &record);
		if (err || record.id < NR_JITDUMP_IDS)
			return !err || err == -EAGAIN;
		offset += record.nr_bytes;
	}
	return offset <= reading->size_bytes;
}

/*
 * Decode the record at dump->at.offset. 0; -EAGAIN: it is not all there yet, or cannot be told yet;
 * -EBADMSG: there is none.
 */
static int take_record(struct reading *reading, struct jitdump_record *ret_record)
{
	struct jitdump *dump = reading->dump;
	const int not_whole = reading->is_final ? -EBADMSG : -EAGAIN;
	int err = decode_at(reading, dump->at.offset, ret_record);

	if (err)
		return err == -EAGAIN ? not_whole : err;
	const uint64_t end_offset = dump->at.offset + ret_record->nr_bytes;
	const bool is_whole = end_offset <= reading->size_bytes;

	if (is_certain(dump, ret_record))
		return is_whole ? 0 : not_whole;
	/* Of another version, or another process's: if nothing else is damaged here. */
	if (!is_whole || dump->at.lost_offset || !goes_on_at(reading, end_offset))
		return -EBADMSG;
	return 0;
}

/* What a record says. */

/* Whether a LOAD or MOVE is about that code, with that time. */
static bool is_of(const struct reading *reading, const struct jitdump_record *record,
		  const struct jit_code *code)
{
	return code->from_ns == record->time_ns && code->start_addr == record->code_addr &&
	       code->nr_bytes == record->code_bytes && code->code_index == record->code_index &&
	       code->file_index == reading->dump->file_index && code->source == JIT_SOURCE_JITDUMP;
}

/* Whether it stands where the tail was read, and so may have been taken from there. */
static bool is_behind_tail(const struct jitdump *dump)
{
	return dump->at.offset < dump->ahead_offset;
}

/* Whether one of the codes that a tail has had room for is that of the record. */
static bool is_in_tail(const struct reading *reading, const struct jitdump_record *record)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(reading->map, &nr_codes);
	const uint32_t first = nr_codes < MAX_TAIL_CODES ? 0 : nr_codes - MAX_TAIL_CODES;

	for (uint32_t i = nr_codes; i > first; i--)
		if (is_of(reading, record, &codes[i - 1]))
			return true;
	return false;
}

/*
 * The code that a LOAD or MOVE is about is known already, with that time. Of those that were at
 * one place at one time the map finds the last one only.
 */
static bool is_duplicate(const struct reading *reading, const struct jitdump_record *record)
{
	const struct jit_code *known = jit_map_find_in(reading->map, JIT_SOURCE_JITDUMP,
						       record->code_addr, record->time_ns);

	if (known && is_of(reading, record, known))
		return true;
	return is_behind_tail(reading->dump) && is_in_tail(reading, record);
}

/* Twice in the file, or read before it was there. */
static void note_duplicate(struct jitdump *dump, const struct jitdump_record *record)
{
	if (!is_behind_tail(dump))
		note_fault(dump, JITDUMP_DUPLICATE, dump->at.offset, record->nr_bytes);
}

/* Add to the map; what it does not take is counted. */
static void add_code(struct reading *reading, const struct jitdump_record *record,
		     const struct jit_code *code, size_t name_bytes)
{
	int err = jit_map_add(reading->map, code, name_bytes, NULL);

	if (err == -ENOMEM)
		reading->error = err;
	else if (err)
		note_fault(reading->dump, JITDUMP_REFUSED, reading->dump->at.offset,
			   record->nr_bytes);
}

/* Whether it is of a time that does not count. Of ticks that cannot be told. */
static bool is_too_late(const struct jitdump *dump, const struct jitdump_record *record)
{
	return !dump->header.has_ticks && record->time_ns >= dump->end_ns;
}

static void take_load(struct reading *reading, const struct jitdump_record *record)
{
	struct jitdump *dump = reading->dump;
	const struct jit_code code = {
		.start_addr = record->code_addr,
		.nr_bytes = record->code_bytes,
		.from_ns = record->time_ns,
		.to_ns = JIT_MAP_OPEN_NS,
		.name = record->name,
		.source = JIT_SOURCE_JITDUMP,
		.file_index = dump->file_index,
		.code_index = record->code_index,
		.code_place = dump->at.offset,
		.lines_place =
			dump->at.lines.code_addr == record->code_addr ? dump->at.lines.offset : 0,
		.unwind_place = dump->at.unwinding.offset,
	};

	if (dump->at.lines.offset && !code.lines_place)
		drop_pending(dump, &dump->at.lines, JITDUMP_ORPHAN_LINES);
	dump->at.lines = (struct pending){0};
	dump->at.unwinding = (struct pending){0};
	if (!is_certain(dump, record))
		note_fault(dump, JITDUMP_OTHER_PROCESS, dump->at.offset, record->nr_bytes);
	else if (!record->code_bytes)
		note_fault(dump, JITDUMP_EMPTY_CODE, dump->at.offset, record->nr_bytes);
	else if (!is_too_late(dump, record) && is_duplicate(reading, record))
		note_duplicate(dump, record);
	else if (!is_too_late(dump, record))
		add_code(reading, record, &code, record->name_bytes);
}

/* The code is at its new place from then on, under its old name, and no more at the old one. */
static void take_move(struct reading *reading, const struct jitdump_record *record)
{
	struct jitdump *dump = reading->dump;
	const struct jit_code *old = jit_map_find_in(reading->map, JIT_SOURCE_JITDUMP,
						     record->old_addr, record->time_ns);
	struct jit_code code;

	if (!is_certain(dump, record)) {
		note_fault(dump, JITDUMP_OTHER_PROCESS, dump->at.offset, record->nr_bytes);
		return;
	}
	if (is_duplicate(reading, record)) {
		note_duplicate(dump, record);
		return;
	}
	if (!old || old->start_addr != record->old_addr || old->code_index != record->code_index ||
	    old->file_index != dump->file_index) {
		note_fault(dump, JITDUMP_UNKNOWN_MOVE, dump->at.offset, record->nr_bytes);
		return;
	}
	code = *old;
	code.start_addr = record->code_addr;
	code.from_ns = record->time_ns;
	code.to_ns = JIT_MAP_OPEN_NS;
	if (!record->code_bytes || code.nr_bytes < record->code_bytes)
		code.nr_bytes = record->code_bytes;
	if (is_too_late(dump, record))
		return;
	jit_map_end(reading->map, old, record->time_ns);
	add_code(reading, record, &code, strlen(code.name));
}

static void take_pending(struct jitdump *dump, const struct jitdump_record *record)
{
	const bool is_lines = record->id == JITDUMP_DEBUG_INFO;
	struct pending *pending = is_lines ? &dump->at.lines : &dump->at.unwinding;

	drop_pending(dump, pending, is_lines ? JITDUMP_ORPHAN_LINES : JITDUMP_ORPHAN_UNWINDING);
	*pending = (struct pending){.offset = dump->at.offset,
				    .nr_bytes = record->nr_bytes,
				    .code_addr = record->code_addr};
}

static void use_record(struct reading *reading, const struct jitdump_record *record)
{
	struct jitdump *dump = reading->dump;

	if (record->id >= NR_JITDUMP_IDS) {
		note_fault(dump, JITDUMP_UNKNOWN_ID, dump->at.offset, record->nr_bytes);
		return;
	}
	dump->at.stats.nr_records[record->id]++;
	if (dump->at.is_closed)
		note_fault(dump, JITDUMP_BEHIND_CLOSE, dump->at.offset, record->nr_bytes);
	if (record->id == JITDUMP_CLOSE)
		dump->at.is_closed = true;
	else if (record->id == JITDUMP_DEBUG_INFO || record->id == JITDUMP_UNWINDING_INFO)
		take_pending(dump, record);
	else if (record->id == JITDUMP_LOAD)
		take_load(reading, record);
	else
		take_move(reading, record);
}

/* From record to record. */

/* There is no record here: it is looked for from the next byte on. */
static int lose(struct jitdump *dump)
{
	uint64_t nr_bytes;

	if (!dump->at.lost_offset) {
		dump->at.lost_offset = dump->at.offset;
		drop_both_pending(dump);
	}
	dump->at.offset++;
	nr_bytes = dump->at.offset - dump->at.lost_offset + dump->at.stats.skipped_bytes;
	return nr_bytes > JITDUMP_MAX_SKIPPED_BYTES ? -E2BIG : 0;
}

/* There is one again, or the file is at its end. */
static void find_again(struct jitdump *dump, enum jitdump_fault fault, uint64_t end_offset)
{
	const uint64_t nr_bytes = end_offset - dump->at.lost_offset;

	note_fault(dump, fault, dump->at.lost_offset, nr_bytes);
	dump->at.stats.skipped_bytes += nr_bytes;
	dump->at.lost_offset = 0;
}

/* Whether nothing that follows would be taken, or only at a price. */
static bool is_given_up(const struct jitdump *dump)
{
	return dump->at.stats.nr_faults[JITDUMP_REFUSED] >= JITDUMP_MAX_REFUSED;
}

static void read_records(struct reading *reading)
{
	struct jitdump *dump = reading->dump;

	while (!reading->error && !is_given_up(dump) && dump->at.offset < reading->size_bytes) {
		struct jitdump_record record;
		int err = take_record(reading, &record);

		if (err == -EAGAIN || reading->error)
			return;
		if (err) {
			reading->error = lose(dump);
			continue;
		}
		if (dump->at.lost_offset)
			find_again(dump, JITDUMP_SKIPPED, dump->at.offset);
		use_record(reading, &record);
		dump->at.offset += record.nr_bytes;
	}
	if (reading->is_final && dump->at.lost_offset)
		find_again(dump, JITDUMP_CUT, dump->at.offset);
	if (reading->is_final)
		drop_both_pending(dump);
}

/* Forget the file that was there, not what it said. */
static void begin_again(struct jitdump *dump)
{
	dump->at.offset = 0;
	dump->at.lost_offset = 0;
	dump->at.is_closed = false;
	dump->ahead_offset = 0;
	dump->at.lines = (struct pending){0};
	dump->at.unwinding = (struct pending){0};
	note_fault(dump, JITDUMP_BEGUN_AGAIN, 0, 0);
}

/* Read the header, or see whether it is still the same. As jitdump_header_decode(). */
static int read_header(struct reading *reading)
{
	struct jitdump *dump = reading->dump;
	const uint8_t *bytes;
	size_t nr;
	int err;

	dump->window_bytes = 0; /* the file may be another one by now */
	nr = bytes_at(reading, 0, JITDUMP_HEADER_BYTES, &bytes);
	if (reading->error)
		return reading->error;
	if (dump->at.offset &&
	    (reading->size_bytes < dump->at.offset || nr < JITDUMP_HEADER_BYTES ||
	     memcmp(bytes, dump->header_bytes, JITDUMP_HEADER_BYTES) != 0))
		begin_again(dump);
	if (dump->at.offset)
		return 0;
	err = jitdump_header_decode(bytes, nr, &dump->header);
	if (err)
		return err;
	memcpy(dump->header_bytes, bytes, JITDUMP_HEADER_BYTES);
	dump->has_header = true;
	dump->at.offset = dump->header.nr_bytes;
	return 0;
}

/*
 * Read on in what comes behind the file. It may come there, or other bytes if somebody else writes
 * them first: so the codes are kept, and not how far it was read. 0 or -ENOMEM.
 */
static int read_tail(struct reading *reading)
{
	struct jitdump *dump = reading->dump;
	struct progress at = dump->at;

	reading->has_tail = true;
	reading->size_bytes += dump->tail_bytes;
	if (!read_header(reading))
		read_records(reading);
	if (dump->at.offset > dump->ahead_offset)
		dump->ahead_offset = dump->at.offset;
	/* What each of them costs counts all the same. */
	at.stats.nr_faults[JITDUMP_REFUSED] = dump->at.stats.nr_faults[JITDUMP_REFUSED];
	dump->at = at;
	return reading->error == -ENOMEM ? -ENOMEM : 0;
}

int jitdump_read(struct jitdump *dump, struct jit_map *map, bool is_final)
{
	struct reading reading = {.dump = dump, .map = map, .is_final = is_final};
	struct stat st;
	int err;

	if (fstat(dump->fd, &st))
		return -errno;
	reading.size_bytes = (uint64_t)st.st_size;
	err = read_header(&reading);
	if (!err)
		read_records(&reading);
	else if (err != -EAGAIN)
		return err;
	if (reading.error || is_final || !dump->tail_bytes ||
	    dump->tail_offset != reading.size_bytes)
		return reading.error;
	return read_tail(&reading);
}
