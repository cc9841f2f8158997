/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/file_blocks.h"

/* Bytes read of the file at a time; enough to decide what any record is. */
enum { WINDOW_BYTES = 1 << 17 };
_Static_assert((int)WINDOW_BYTES >= (int)JITDUMP_DECODE_BYTES,
	       "a window must be able to hold what decides any record");

/* This many well-formed records of unknown kinds in a row are no coincidence. */
enum { MAX_UNKNOWN_IN_A_ROW = 8 };

/* A record that belongs to the next LOAD. */
struct pending {
	uint64_t offset; /* 0: none */
	uint32_t nr_bytes;
	remote_addr code_addr; /* of a DEBUG_INFO */
};

/* The position in the file, and what was found up to there. */
struct progress {
	uint64_t offset;      /* of the next record; 0: the header is not read yet */
	uint64_t skip_offset; /* start of the bytes being skipped; 0: none are */
	bool is_closed;
	struct pending lines;
	struct pending unwinding;
	struct jitdump_stats stats;
};

struct jitdump {
	int fd;
	uint32_t file_index;
	uint64_t end_ns;
	bool has_header; /* the header was read; the file may have been truncated since */
	struct jitdump_header header;
	uint8_t header_bytes[JITDUMP_HEADER_BYTES]; /* as in the file */
	struct progress at;
	const uint8_t *tail; /* borrowed; the bytes expected at tail_offset */
	uint64_t tail_offset;
	size_t tail_bytes;
	uint64_t read_tail_offset; /* up to here it was read as tail, before it was in the file */
	uint64_t window_offset;
	size_t window_bytes;
	uint8_t window[WINDOW_BYTES];
};

/* Limit on the codes of a tail: the shortest LOAD has its fixed part and an empty name. */
enum { MAX_TAIL_CODES = JITDUMP_MAX_TAIL_BYTES / 57 };

/* The state of one call of jitdump_read(). */
struct reading {
	struct jitdump *dump;
	struct jit_map *map;
	uint64_t size_bytes; /* of the file, plus the tail if has_tail */
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

/* Faults. */

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

/* Copy the tail's bytes at offset, where the file ends. Returns how many. */
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

/* Fill the window from offset. */
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
 * Get the bytes at offset in *ret_bytes. Returns how many there are: at least wanted, unless the
 * file ends there; 0 on an error, which is kept in reading->error.
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
	nr = bytes_at(reading, offset, JITDUMP_DECODE_BYTES, &bytes);
	return jitdump_record_decode(bytes, nr, reading->dump->header.is_big_endian, ret_record);
}

/* Recognising records. */

/* Whether the record cannot be a coincidence: a known id, with the file's own pid if it has one. */
static bool is_certain(const struct jitdump *dump, const struct jitdump_record *record)
{
	if (record->id == JITDUMP_LOAD || record->id == JITDUMP_MOVE)
		return record->pid == dump->header.pid;
	return record->id < NR_JITDUMP_IDS;
}

/*
 * Whether at offset the file ends or a record starts, as far as it is there. Several records of
 * unknown kinds may precede.
 */
static bool continues_at(struct reading *reading, uint64_t offset)
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
 * Decode the record at dump->at.offset. Returns 0; -EAGAIN if it is incomplete or undecided yet;
 * -EBADMSG if there is none.
 */
static int decode_record(struct reading *reading, struct jitdump_record *ret_record)
{
	struct jitdump *dump = reading->dump;
	const int incomplete_err = reading->is_final ? -EBADMSG : -EAGAIN;
	int err = decode_at(reading, dump->at.offset, ret_record);

	if (err)
		return err == -EAGAIN ? incomplete_err : err;
	const uint64_t end_offset = dump->at.offset + ret_record->nr_bytes;
	const bool is_complete = end_offset <= reading->size_bytes;

	if (is_certain(dump, ret_record))
		return is_complete ? 0 : incomplete_err;
	/*
	 * Of a later version, or another process's. Accept it only if nothing is damaged around
	 * it.
	 */
	if (!is_complete || dump->at.skip_offset || !continues_at(reading, end_offset))
		return -EBADMSG;
	return 0;
}

/* Using records. */

/* Whether a LOAD or MOVE, with its time, describes that code. */
static bool describes(const struct reading *reading, const struct jitdump_record *record,
		      const struct jit_code *code)
{
	return code->from_ns == record->time_ns && code->start_addr == record->code_addr &&
	       code->nr_bytes == record->code_bytes && code->code_index == record->code_index &&
	       code->file_index == reading->dump->file_index && code->source == JIT_SOURCE_JITDUMP;
}

/* Whether the record is where the tail was read, and so may have been used already. */
static bool was_read_as_tail(const struct jitdump *dump)
{
	return dump->at.offset < dump->read_tail_offset;
}

/* Whether the code of the record is among the last codes, as many as a tail can hold. */
static bool is_in_tail(const struct reading *reading, const struct jitdump_record *record)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(reading->map, &nr_codes);
	const uint32_t first = nr_codes < MAX_TAIL_CODES ? 0 : nr_codes - MAX_TAIL_CODES;

	for (uint32_t i = nr_codes; i > first; i--)
		if (describes(reading, record, &codes[i - 1]))
			return true;
	return false;
}

/*
 * Whether the code of a LOAD or MOVE is known, with that time. Of several codes at one place and
 * time the map finds only the last.
 */
static bool is_duplicate(const struct reading *reading, const struct jitdump_record *record)
{
	const struct jit_code *known = jit_map_find_in(reading->map, JIT_SOURCE_JITDUMP,
						       record->code_addr, record->time_ns);

	if (known && describes(reading, record, known))
		return true;
	return was_read_as_tail(reading->dump) && is_in_tail(reading, record);
}

/* Count a duplicate, unless the record was merely read as tail before. */
static void note_duplicate(struct jitdump *dump, const struct jitdump_record *record)
{
	if (!was_read_as_tail(dump))
		note_fault(dump, JITDUMP_DUPLICATE, dump->at.offset, record->nr_bytes);
}

/* Add a code to the map, or count it as refused. */
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

/* Whether the record is from end_ns or later. Ticks are not comparable. */
static bool is_too_late(const struct jitdump *dump, const struct jitdump_record *record)
{
	return !dump->header.has_ticks && record->time_ns >= dump->end_ns;
}

static void use_load(struct reading *reading, const struct jitdump_record *record)
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

/* From now on the code is at its new place, under its old name. */
static void use_move(struct reading *reading, const struct jitdump_record *record)
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

static void set_pending(struct jitdump *dump, const struct jitdump_record *record)
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
		note_fault(dump, JITDUMP_AFTER_CLOSE, dump->at.offset, record->nr_bytes);
	if (record->id == JITDUMP_CLOSE)
		dump->at.is_closed = true;
	else if (record->id == JITDUMP_DEBUG_INFO || record->id == JITDUMP_UNWINDING_INFO)
		set_pending(dump, record);
	else if (record->id == JITDUMP_LOAD)
		use_load(reading, record);
	else
		use_move(reading, record);
}

/* From record to record. */

/* Skip the byte at the position, where no record starts. */
static int skip_byte(struct jitdump *dump)
{
	uint64_t nr_bytes;

	if (!dump->at.skip_offset) {
		dump->at.skip_offset = dump->at.offset;
		drop_both_pending(dump);
	}
	dump->at.offset++;
	nr_bytes = dump->at.offset - dump->at.skip_offset + dump->at.stats.skipped_bytes;
	return nr_bytes > JITDUMP_MAX_SKIPPED_BYTES ? -E2BIG : 0;
}

/* A record was found after skipped bytes, or the file ends with them. */
static void end_skipping(struct jitdump *dump, enum jitdump_fault fault, uint64_t end_offset)
{
	const uint64_t nr_bytes = end_offset - dump->at.skip_offset;

	note_fault(dump, fault, dump->at.skip_offset, nr_bytes);
	dump->at.stats.skipped_bytes += nr_bytes;
	dump->at.skip_offset = 0;
}

/* Whether to stop: further codes would be refused as well, at a cost. */
static bool is_given_up(const struct jitdump *dump)
{
	return dump->at.stats.nr_faults[JITDUMP_REFUSED] >= JITDUMP_MAX_REFUSED;
}

static void read_records(struct reading *reading)
{
	struct jitdump *dump = reading->dump;

	while (!reading->error && !is_given_up(dump) && dump->at.offset < reading->size_bytes) {
		struct jitdump_record record;
		int err = decode_record(reading, &record);

		if (err == -EAGAIN || reading->error)
			return;
		if (err) {
			reading->error = skip_byte(dump);
			continue;
		}
		if (dump->at.skip_offset)
			end_skipping(dump, JITDUMP_SKIPPED, dump->at.offset);
		use_record(reading, &record);
		dump->at.offset += record.nr_bytes;
	}
	if (reading->is_final && dump->at.skip_offset)
		end_skipping(dump, JITDUMP_INCOMPLETE, dump->at.offset);
	if (reading->is_final)
		drop_both_pending(dump);
}

/* Start over with a new file. Its old codes stay. */
static void start_over(struct jitdump *dump)
{
	dump->at.offset = 0;
	dump->at.skip_offset = 0;
	dump->at.is_closed = false;
	dump->read_tail_offset = 0;
	dump->at.lines = (struct pending){0};
	dump->at.unwinding = (struct pending){0};
	note_fault(dump, JITDUMP_RESTARTED, 0, 0);
}

/* Read the header, or check that it is still the same. Returns as jitdump_header_decode(). */
static int read_header(struct reading *reading)
{
	struct jitdump *dump = reading->dump;
	const uint8_t *bytes;
	size_t nr;
	int err;

	dump->window_bytes = 0; /* the file may have been replaced */
	nr = bytes_at(reading, 0, JITDUMP_HEADER_BYTES, &bytes);
	if (reading->error)
		return reading->error;
	if (dump->at.offset &&
	    (reading->size_bytes < dump->at.offset || nr < JITDUMP_HEADER_BYTES ||
	     memcmp(bytes, dump->header_bytes, JITDUMP_HEADER_BYTES) != 0))
		start_over(dump);
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
 * Read on in the tail. Its bytes may reach the file unchanged, or another writer's may come
 * first, so the codes are kept but the position is reset. Returns 0 or -ENOMEM.
 */
static int read_tail(struct reading *reading)
{
	struct jitdump *dump = reading->dump;
	struct progress at = dump->at;

	reading->has_tail = true;
	reading->size_bytes += dump->tail_bytes;
	if (!read_header(reading))
		read_records(reading);
	if (dump->at.offset > dump->read_tail_offset)
		dump->read_tail_offset = dump->at.offset;
	/* Refusals count even so: each one took time. */
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
