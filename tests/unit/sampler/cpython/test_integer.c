/* SPDX-License-Identifier: MIT */
/* Ints of every version, as numbers and as text. */
#include "sampler/cpython/objects/object.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_objects.h"

Test(integer, reads_numbers_below_2_to_the_63)
{
	static const uint64_t values[] = {0,	    1, (1u << 30) - 1, 1u << 30, 0x7f1234567890,
					  INT64_MAX};

	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct fake_python py;
		const struct py_offsets *offsets = &py.build.offsets;
		remote_addr addr = 0;
		uint64_t value = 0;

		fake_python_init(&py, fake_minors[v]);
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			addr = fake_int(&py, values[i]);
			cr_expect(zero(int, integer_read(&py.fake.memory, offsets, addr, &value)));
			cr_expect(eq(u64, value, values[i]));
		}
		/* One bit too many; a negative number; too many digits; a digit too large. */
		fake_memory_write_u32(&py.fake, addr + offsets->integer.digits + 8, 8);
		cr_expect(eq(int, integer_read(&py.fake.memory, offsets, addr, &value), -EBADMSG));
		addr = fake_int(&py, 5);
		fake_memory_write_u64(&py.fake, addr + offsets->integer.size,
				      offsets->integer.size_shift ? 1 << 3 | 2 : UINT64_MAX);
		cr_expect(eq(int, integer_read(&py.fake.memory, offsets, addr, &value), -EBADMSG));
		fake_memory_write_u64(&py.fake, addr + offsets->integer.size,
				      4ull << offsets->integer.size_shift);
		cr_expect(eq(int, integer_read(&py.fake.memory, offsets, addr, &value), -EBADMSG));
		addr = fake_int(&py, 5);
		fake_memory_write_u32(&py.fake, addr + offsets->integer.digits, 1u << 30);
		cr_expect(eq(int, integer_read(&py.fake.memory, offsets, addr, &value), -EBADMSG));
		fake_python_done(&py);
	}
}

/* An int with these digits, least significant first. */
static remote_addr make_int(struct fake_python *py, const uint32_t *digits, size_t nr_digits,
			    bool is_negative)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const remote_addr addr =
		fake_python_alloc(py, offsets->integer.digits + nr_digits * sizeof(*digits));
	uint64_t size = is_negative ? 0 - (uint64_t)nr_digits : nr_digits;

	if (offsets->integer.size_shift)
		size = nr_digits << 3 | (!nr_digits ? 1 : is_negative ? 2 : 0);
	fake_memory_write_u64(&py->fake, addr + offsets->integer.size, size);
	if (nr_digits)
		fake_memory_write(&py->fake, addr + offsets->integer.digits, digits,
				  nr_digits * sizeof(*digits));
	return addr;
}

enum { TEXT_CHARS = 40 };

/* Write an int as text of TEXT_CHARS characters. Returns the result of integer_write(). */
static int write_int(struct fake_python *py, remote_addr addr, char room[4 * TEXT_CHARS + 1])
{
	struct value_text text;

	value_text_init(&text, room, TEXT_CHARS);
	return integer_write(&py->fake.memory, &py->build.offsets, addr, &text);
}

Test(integer, writes_decimals)
{
	static const struct {
		uint32_t digits[3];
		size_t nr_digits;
		bool is_negative;
		const char *text;
	} cases[] = {
		{{0}, 0, false, "0"},
		{{1}, 1, false, "1"},
		{{1}, 1, true, "-1"},
		{{999999999}, 1, false, "999999999"},
		{{1000000000}, 1, false, "1000000000"},
		{{0, 1}, 2, false, "1073741824"},
		{{0, 0, 1}, 3, true, "-1152921504606846976"},
		{{0x3fffffff, 0x3fffffff, 0x3fffffff}, 3, false, "1237940039285380274899124223"},
	};

	for (size_t v = 0; v < NR_FAKE_MINORS; v++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct fake_python py;
			char room[4 * TEXT_CHARS + 1];

			fake_python_init(&py, fake_minors[v]);
			cr_assert(zero(int,
				       write_int(&py,
						 make_int(&py, cases[i].digits, cases[i].nr_digits,
							  cases[i].is_negative),
						 room)));
			cr_expect(eq(str, room, (char *)cases[i].text), "3.%u", py.minor);
			fake_python_done(&py);
		}
}

/* The longest int written in decimal and the shortest one that is not: -2^14309 and 2^14310. */
Test(integer, very_long_numbers_are_hexadecimal)
{
	uint32_t digits[INTEGER_MAX_DECIMAL_DIGITS + 1] = {0};
	char room[4 * TEXT_CHARS + 1];
	struct fake_python py;

	fake_python_init(&py, 14);
	digits[INTEGER_MAX_DECIMAL_DIGITS - 1] = 1u << 29;
	cr_assert(zero(int, write_int(&py, make_int(&py, digits, INTEGER_MAX_DECIMAL_DIGITS, true),
				      room)));
	cr_expect(eq(str, room, (char *)"-27428872511574733174846928601026377210…"));
	digits[INTEGER_MAX_DECIMAL_DIGITS - 1] = 0;
	digits[INTEGER_MAX_DECIMAL_DIGITS] = 1;
	cr_assert(zero(int,
		       write_int(&py, make_int(&py, digits, INTEGER_MAX_DECIMAL_DIGITS + 1, false),
				 room)));
	cr_expect(eq(str, room, (char *)"0x4000000000000000000000000000000000000…"), "%s", room);
	fake_python_done(&py);
}

/* An int that claims more digits than it has, or has invalid ones. */
Test(integer, damaged_numbers_are_refused)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		static const uint32_t digits[] = {5, 6};
		struct fake_python py;
		char room[4 * TEXT_CHARS + 1];
		remote_addr addr;

		fake_python_init(&py, fake_minors[v]);
		const struct py_offsets *offsets = &py.build.offsets;
		const remote_addr size_offset = offsets->integer.size;

		addr = make_int(&py, digits, 2, false);
		fake_memory_write_u64(&py.fake, addr + size_offset,
				      3ull << offsets->integer.size_shift);
		cr_expect(eq(int, write_int(&py, addr, room), -EFAULT));
		fake_memory_write_u64(&py.fake, addr + size_offset,
				      (1ull << 40) << offsets->integer.size_shift);
		cr_expect(eq(int, write_int(&py, addr, room), -EFAULT));
		fake_memory_write_u64(&py.fake, addr + size_offset,
				      (1ull << 60) << offsets->integer.size_shift);
		cr_expect(ne(int, write_int(&py, addr, room), 0));
		addr = make_int(&py, digits, 2, false);
		fake_memory_write_u32(&py.fake, addr + offsets->integer.digits, 1u << 30);
		cr_expect(eq(int, write_int(&py, addr, room), -EBADMSG));
		fake_python_done(&py);
	}
}
