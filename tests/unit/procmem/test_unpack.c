/* SPDX-License-Identifier: MIT */
#include "procmem/core/unpack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/core/decompressor.h"
#include "tests/support/packings.h"

/*
 * More than one buffer, so that it comes in pieces, and no multiple of the buffer, so that the
 * last piece has to be requested at the end of the input.
 */
enum { CONTENTS_BYTES = (1 << 20) + 1000 };

/*
 * Contents that begin like an ELF file and have holes, with data between them that hardly
 * compresses.
 */
static uint8_t *make_contents(void)
{
	uint8_t *bytes = calloc(1, CONTENTS_BYTES);
	uint32_t random = 1;

	for (size_t i = 0; i < CONTENTS_BYTES; i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (i >> 16) % 3 == 1 ? 0 : (uint8_t)(random >> 24);
	}
	memcpy(bytes, "\177ELF", 4);
	return bytes;
}

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	cr_assert(eq(sz, (size_t)write(fd, bytes, size), size));
	cr_assert(zero(int, (int)lseek(fd, 0, SEEK_SET)));
	return fd;
}

/* Length of the file if it is a prefix of expected, else -1. */
static ssize_t same_bytes(int fd, const uint8_t *expected, size_t size)
{
	uint8_t *got = malloc(size + 1);
	ssize_t length = pread(fd, got, size + 1, 0);
	ssize_t nr_same = 0;

	while (nr_same < length && (size_t)nr_same < size && got[nr_same] == expected[nr_same])
		nr_same++;
	free(got);
	return nr_same == length ? nr_same : -1;
}

static void expect_contents(const char *name, int fd, const uint8_t *contents)
{
	struct message message = {0};
	struct unpacked unpacked = {.fd = -1};

	cr_assert(zero(int, unpack(fd, &unpacked, &message)), "%s: %s", name, message.text);
	cr_expect(eq(i64, same_bytes(unpacked.fd, contents, CONTENTS_BYTES), CONTENTS_BYTES), "%s",
		  name);
	cr_expect(zero(int, strcmp(unpacked.problem.text, "")), "%s", name);
	cr_expect(zero(int, strcmp(unpacked.compressed_by ? unpacked.compressed_by : "uncompressed",
				   name)));
	cleanup_close_fn(&unpacked.fd);
}

Test(unpack, unpacks_each_format)
{
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(contents, CONTENTS_BYTES, &size);

		expect_contents(packings[i].name, file_of(packed, size), contents);
	}
	expect_contents("uncompressed", file_of(contents, CONTENTS_BYTES), contents);
}

/* Consecutive frames, one of them empty, are one file. */
Test(unpack, joins_consecutive_frames)
{
	static const size_t ends[] = {10, 10, 300001, CONTENTS_BYTES};
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		int fd = memfd_create("packed", MFD_CLOEXEC);

		for (size_t j = 0, start = 0; j < 4; start = ends[j++]) {
			size_t size;
			cleanup_free uint8_t *packed =
				packings[i].pack(contents + start, ends[j] - start, &size);

			cr_assert(eq(sz, (size_t)write(fd, packed, size), size));
		}
		(void)lseek(fd, 0, SEEK_SET);
		expect_contents(packings[i].name, fd, contents);
	}
}

/* A skippable frame of zstd or lz4 (RFC 8878, 3.1.2). */
static const uint8_t skippable[] = {0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};

/*
 * Padding between and after packed data: zeros, also across the border of a buffer, and skippable
 * frames, with which pzstd begins.
 */
Test(unpack, skips_padding)
{
	static const size_t paddings[] = {1, 4, 512, (300 << 10) + 4};
	cleanup_free uint8_t *contents = make_contents();
	cleanup_free uint8_t *zeros = calloc(1, paddings[3]);

	for (size_t i = 0; i < NR_PACKINGS * 4; i++) {
		const struct packing *packing = &packings[i / 4];
		int fd = memfd_create("packed", MFD_CLOEXEC);
		size_t size;
		cleanup_free uint8_t *first = packing->pack(contents, 1000, &size);

		if (packing->pack == pack_zstd)
			cr_assert(eq(sz, (size_t)write(fd, skippable, sizeof(skippable)),
				     sizeof(skippable)));
		cr_assert(eq(sz, (size_t)write(fd, first, size), size));
		cr_assert(eq(sz, (size_t)write(fd, zeros, paddings[i % 4]), paddings[i % 4]));
		if (packing->pack == pack_zstd || packing->pack == pack_lz4)
			cr_assert(eq(sz, (size_t)write(fd, skippable, sizeof(skippable)),
				     sizeof(skippable)));
		cleanup_free uint8_t *second =
			packing->pack(contents + 1000, CONTENTS_BYTES - 1000, &size);

		cr_assert(eq(sz, (size_t)write(fd, second, size), size));
		cr_assert(eq(sz, (size_t)write(fd, zeros, paddings[i % 4]), paddings[i % 4]));
		(void)lseek(fd, 0, SEEK_SET);
		expect_contents(packing->name, fd, contents);
	}
}

/* Trailing bytes in no known format, however few, and endless zeros. */
Test(unpack, reports_trailing_garbage)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {{"a", 1}, {"abc", 3}, {"this is no frame", 16}, {"\0\0\0\0x", 5}};
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(contents, CONTENTS_BYTES, &size);

		for (size_t j = 0; j < 5; j++) {
			struct unpacked unpacked = {.fd = -1};
			int fd = file_of(packed, size);

			if (j == 4)
				cr_assert(zero(int, ftruncate(fd, (off_t)1 << 40)));
			else
				cr_assert(eq(sz,
					     (size_t)pwrite(fd, cases[j].bytes, cases[j].size,
							    (off_t)size),
					     cases[j].size));
			cr_assert(zero(int, unpack(fd, &unpacked, NULL)), "%s", packings[i].name);
			cr_expect(ne(ptr, strstr(unpacked.problem.text, "other data"), NULL),
				  "%s, %zu: %s", packings[i].name, j, unpacked.problem.text);
			cr_expect(eq(i64, same_bytes(unpacked.fd, contents, CONTENTS_BYTES),
				     CONTENTS_BYTES));
			cleanup_close_fn(&unpacked.fd);
		}
	}
}

struct stream {
	int fd;
	const uint8_t *bytes;
	size_t size;
};

/* Write to a pipe in pieces of odd sizes. */
static void *write_stream(void *context)
{
	const struct stream *stream = context;
	size_t piece = 1;

	for (size_t done = 0; done < stream->size; done += piece, piece = piece * 3 % 40009) {
		piece = piece < stream->size - done ? piece : stream->size - done;
		if (write(stream->fd, stream->bytes + done, piece) != (ssize_t)piece)
			break;
	}
	(void)close(stream->fd);
	return NULL;
}

static void expect_piped(const char *name, const uint8_t *bytes, size_t size,
			 const uint8_t *contents)
{
	struct stream stream = {.bytes = bytes, .size = size};
	pthread_t writer;
	int ends[2];

	cr_assert(zero(int, pipe2(ends, O_CLOEXEC)));
	stream.fd = ends[1];
	cr_assert(zero(int, pthread_create(&writer, NULL, write_stream, &stream)));
	expect_contents(name, ends[0], contents);
	(void)pthread_join(writer, NULL);
}

Test(unpack, reads_pipes)
{
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(contents, CONTENTS_BYTES, &size);

		expect_piped(packings[i].name, packed, size, contents);
	}
	expect_piped("uncompressed", contents, CONTENTS_BYTES, contents);
}

/* A truncated file is unpacked as far as possible, and the problem is reported. */
Test(unpack, truncated_file_is_unpacked_up_to_the_cut)
{
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(contents, CONTENTS_BYTES, &size);

		for (size_t cut = 6; cut < size; cut += cut < 64 ? 1 : size / 23) {
			struct message message = {0};
			struct unpacked unpacked = {.fd = -1};
			int err = unpack(file_of(packed, cut), &unpacked, &message);
			const char *text = err ? message.text : unpacked.problem.text;

			cr_expect(ne(ptr, strstr(text, "truncated"), NULL), "%s at %zu: %s",
				  packings[i].name, cut, text);
			cr_expect(eq(int, err, err ? -EBADMSG : 0));
			cr_expect(ne(int, err &&cut > size / 2, 1), "%s at %zu", packings[i].name,
				  cut);
			if (!err)
				cr_expect(ge(i64, same_bytes(unpacked.fd, contents, CONTENTS_BYTES),
					     4));
			cleanup_close_fn(&unpacked.fd);
		}
	}
}

Test(unpack, reports_damage)
{
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(contents, CONTENTS_BYTES, &size);
		struct unpacked unpacked = {.fd = -1};

		/* Damage the last block: lz4 has no checksum here, the others report it. */
		memset(packed + size - size / 4, 0xff, size / 8);
		cr_assert(zero(int, unpack(file_of(packed, size), &unpacked, NULL)));
		if (packings[i].pack != pack_lz4)
			cr_expect(ne(ptr, strstr(unpacked.problem.text, "damaged"), NULL), "%s: %s",
				  packings[i].name, unpacked.problem.text);
		cleanup_close_fn(&unpacked.fd);
	}
}

Test(unpack, refuses_contents_that_are_no_core)
{
	static const char text[] = "packed text that is not a core";

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t size;
		cleanup_free uint8_t *packed = packings[i].pack(text, sizeof(text), &size);
		struct message message = {0};
		struct unpacked unpacked;

		cr_expect(eq(int, unpack(file_of(packed, size), &unpacked, &message), -EBADMSG));
		cr_expect(ne(ptr, strstr(message.text, "its decompressed content does not begin"),
			     NULL),
			  "%s: %s", packings[i].name, message.text);
	}
}

/* The message says to unpack the outer layer first. */
Test(unpack, reports_a_second_layer)
{
	cleanup_free uint8_t *contents = make_contents();

	for (size_t i = 0; i < NR_PACKINGS; i++) {
		size_t inner_size;
		size_t size;
		cleanup_free uint8_t *inner =
			packings[i].pack(contents, CONTENTS_BYTES, &inner_size);
		cleanup_free uint8_t *packed = pack_gzip(inner, inner_size, &size);
		struct message message = {0};
		struct unpacked unpacked;

		cr_expect(eq(int, unpack(file_of(packed, size), &unpacked, &message), -EBADMSG));
		cr_expect(ne(ptr, strstr(message.text, "compressed twice"), NULL), "%s",
			  message.text);
		cr_expect(ne(ptr, strstr(message.text, "with gzip -d first"), NULL), "%s",
			  message.text);
	}
}

/* /dev/zero has no end, so only its first piece may be read. */
Test(unpack, endless_file_is_refused)
{
	struct message message = {0};
	struct unpacked unpacked;

	cr_expect(eq(int, unpack(open("/dev/zero", O_RDONLY | O_CLOEXEC), &unpacked, &message),
		     -EBADMSG));
	cr_expect(ne(ptr, strstr(message.text, "it does not begin with the ELF magic"), NULL), "%s",
		  message.text);
}

/* A non-blocking pipe is waited for, and stays non-blocking for its other users. */
Test(unpack, waits_for_a_nonblocking_pipe)
{
	cleanup_free uint8_t *contents = make_contents();
	struct stream stream = {.bytes = contents, .size = CONTENTS_BYTES};
	pthread_t writer;
	int ends[2];

	cr_assert(zero(int, pipe2(ends, O_CLOEXEC)));
	cr_assert(zero(int, fcntl(ends[0], F_SETFL, O_NONBLOCK)));
	cleanup_close int other_fd = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);

	stream.fd = ends[1];
	cr_assert(zero(int, pthread_create(&writer, NULL, write_stream, &stream)));
	expect_contents("uncompressed", ends[0], contents);
	(void)pthread_join(writer, NULL);
	cr_expect(ne(int, fcntl(other_fd, F_GETFL) & O_NONBLOCK, 0));
}

/* Files that unpack() passes on, for core_open() to refuse. */
Test(unpack, other_files_are_returned_unchanged)
{
	static const char *const paths[] = {"/", "/dev/null"};
	struct unpacked unpacked = {.fd = -1};

	for (size_t i = 0; i < 2; i++) {
		cr_expect(zero(int, unpack(open(paths[i], O_RDONLY | O_CLOEXEC), &unpacked, NULL)),
			  "%s", paths[i]);
		cr_expect(ge(int, unpacked.fd, 0));
		cleanup_close_fn(&unpacked.fd);
	}
	cr_expect(zero(int, unpack(file_of("plain", 5), &unpacked, NULL)));
	cr_expect(eq(i64, same_bytes(unpacked.fd, (const uint8_t *)"plain", 5), 5));
	cleanup_close_fn(&unpacked.fd);
	cr_expect(lt(int, unpack(-1, &unpacked, NULL), 0));
}

/* Files whose header needs more memory than is allowed. */
Test(unpack, refuses_excessive_memory)
{
	size_t zstd_size;
	size_t xz_size;
	static const char text[] = "\177ELF and so on";
	cleanup_free uint8_t *zstd = pack_zstd(text, sizeof(text), &zstd_size);
	cleanup_free uint8_t *xz = pack_xz(text, sizeof(text), &xz_size);
	/* RFC 8878, 3.1.1.1: no content size, window of 2^28 bytes. */
	static const uint8_t zstd_header[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3};
	uint32_t crc;

	/*
	 * The block header at 12: size, flags, id and size of the LZMA2 properties, dictionary
	 * size.
	 */
	cr_assert(eq(u8, xz[14], 0x21));
	xz[16] = 37;
	crc = lzma_crc32(xz + 12, (xz[12] + 1u) * 4 - 4, 0);
	memcpy(xz + 12 + (xz[12] + 1u) * 4 - 4, &crc, sizeof(crc));
	for (size_t i = 0; i < 2; i++) {
		int fd = i == 0 ? file_of(zstd_header, sizeof(zstd_header)) : file_of(xz, xz_size);
		struct message message = {0};
		struct unpacked unpacked;

		if (i == 0)
			cr_assert(eq(sz, (size_t)pwrite(fd, zstd, zstd_size, sizeof(zstd_header)),
				     zstd_size));
		cr_expect(eq(int, unpack(fd, &unpacked, &message), -E2BIG));
		cr_expect(ne(ptr, strstr(message.text, "128 MiB of memory"), NULL), "%s",
			  message.text);
	}
}

/* A write error is reported; what was written before stays. */
Test(unpack, reports_a_full_disk)
{
	cleanup_free uint8_t *contents = make_contents();
	struct rlimit limit = {CONTENTS_BYTES / 2, CONTENTS_BYTES / 2};
	struct message message = {0};
	struct unpacked unpacked = {.fd = -1};
	size_t size;
	cleanup_free uint8_t *packed = pack_zstd(contents, CONTENTS_BYTES, &size);
	int fd = file_of(packed, size);

	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
	cr_assert(zero(int, unpack(fd, &unpacked, &message)), "%s", message.text);
	cr_expect(ne(ptr, strstr(unpacked.problem.text, "File too large"), NULL), "%s",
		  unpacked.problem.text);
	cr_expect(ge(i64, same_bytes(unpacked.fd, contents, CONTENTS_BYTES), CONTENTS_BYTES / 4));
	cleanup_close_fn(&unpacked.fd);
}
