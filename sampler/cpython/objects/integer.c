/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/integer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A digit of an int. */
enum { DIGIT_BITS = 30, SIGN_BITS = 3, SIGN_NEGATIVE = 2 };
#define DIGIT_END (1u << DIGIT_BITS)

/* The digits of an int object, least significant first. */
struct integer {
	remote_addr digits_addr;
	uint64_t nr_digits;
	bool is_negative;
};

static int open_integer(struct remote_memory *memory, const struct py_offsets *offsets,
			remote_addr addr, struct integer *ret_integer)
{
	uint64_t size, digits_bytes, end;
	struct integer integer;
	int err = remote_memory_read_u64(memory, addr + offsets->integer.size, &size);

	if (err)
		return err;
	integer.digits_addr = addr + offsets->integer.digits;
	if (!offsets->integer.size_shift) {
		/* Until 3.11 the count is below 0 of an int that is. */
		integer.is_negative = size > INT64_MAX;
		integer.nr_digits = integer.is_negative ? 0 - size : size;
	} else {
		/* Below the count is the sign, 0 for what is above 0 and 1 for 0, and one bit more. */
		integer.is_negative = (size & SIGN_BITS) == SIGN_NEGATIVE;
		integer.nr_digits = size >> offsets->integer.size_shift;
		if ((size & SIGN_BITS) == SIGN_BITS ||
		    ((size & SIGN_BITS) == 1) != !integer.nr_digits)
			return -EBADMSG;
	}
	if (__builtin_mul_overflow(integer.nr_digits, sizeof(uint32_t), &digits_bytes) ||
	    __builtin_add_overflow(integer.digits_addr, digits_bytes, &end))
		return -EBADMSG;
	*ret_integer = integer;
	return 0;
}

/* Read nr digits from the first on. 0; -EBADMSG if one is none, … */
static int read_digits(struct remote_memory *memory, const struct integer *integer, uint64_t first,
		       size_t nr, uint32_t *ret_digits)
{
	int err = remote_memory_read(memory, integer->digits_addr + first * sizeof(*ret_digits),
				     ret_digits, nr * sizeof(*ret_digits));

	for (size_t i = 0; !err && i < nr; i++)
		if (ret_digits[i] >= DIGIT_END)
			err = -EBADMSG;
	return err;
}

int integer_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		 uint64_t *ret_value)
{
	enum { MAX_DIGITS = 3, TOP_DIGIT_END = 1 << 3 };
	uint32_t digits[MAX_DIGITS] = {0};
	struct integer integer;
	int err = open_integer(memory, offsets, addr, &integer);

	if (!err && (integer.is_negative || integer.nr_digits > MAX_DIGITS))
		err = -EBADMSG;
	/* An int may be the last thing in a mapping: no more is read than it has. */
	if (!err)
		err = read_digits(memory, &integer, 0, integer.nr_digits, digits);
	if (err)
		return err;
	if (digits[2] >= TOP_DIGIT_END)
		return -EBADMSG;
	*ret_value = digits[0] | (uint64_t)digits[1] << DIGIT_BITS |
		     (uint64_t)digits[2] << (2 * DIGIT_BITS);
	return 0;
}

/* Numbers below 10^9 that make up a decimal, least significant first. */
enum { GROUP_DIGITS = 9, GROUP_END = 1000000000 };

/* 30 bits are 9.03 decimal digits. */
enum { MAX_GROUPS = INTEGER_MAX_DECIMAL_DIGITS + INTEGER_MAX_DECIMAL_DIGITS / 256 + 1 };

struct decimal {
	uint32_t groups[MAX_GROUPS];
	size_t nr_groups;
};

/* decimal = decimal × 2^30 + digit. */
static void add_digit(struct decimal *decimal, uint32_t digit)
{
	uint64_t carry = digit;

	for (size_t i = 0; i < decimal->nr_groups; i++) {
		carry += (uint64_t)decimal->groups[i] << DIGIT_BITS;
		decimal->groups[i] = (uint32_t)(carry % GROUP_END);
		carry /= GROUP_END;
	}
	for (; carry; carry /= GROUP_END)
		decimal->groups[decimal->nr_groups++] = (uint32_t)(carry % GROUP_END);
}

/* Add digits to text as a decimal number. */
static void write_decimal(const uint32_t *digits, size_t nr_digits, struct value_text *text)
{
	struct decimal decimal = {0};

	for (size_t i = nr_digits; i > 0; i--)
		add_digit(&decimal, digits[i - 1]);
	if (!decimal.nr_groups) {
		value_text_puts(text, "0");
		return;
	}
	value_text_printf(text, "%u", decimal.groups[decimal.nr_groups - 1]);
	for (size_t i = decimal.nr_groups - 1; i > 0 && !text->is_full; i--)
		value_text_printf(text, "%0*u", GROUP_DIGITS, decimal.groups[i - 1]);
}

/*
 * Add the int to text in hexadecimal, as far as there is room: two digits at a time, from the most
 * significant ones on, make 15 of ours.
 */
static int write_hexadecimal(struct remote_memory *memory, const struct integer *integer,
			     struct value_text *text)
{
	value_text_puts(text, "0x");
	for (uint64_t end = integer->nr_digits; end > 0 && !text->is_full;) {
		const bool is_first = end == integer->nr_digits;
		const size_t nr = end % 2 ? 1 : 2;
		uint32_t digits[2] = {0};
		int err = read_digits(memory, integer, end - nr, nr, digits);

		if (!err && is_first && !digits[nr - 1])
			err = -EBADMSG;
		if (err)
			return err;
		value_text_printf(text, "%0*llx", is_first ? 1 : 15,
				  digits[0] | (unsigned long long)digits[1] << DIGIT_BITS);
		end -= nr;
	}
	return 0;
}

int integer_write(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		  struct value_text *text)
{
	uint32_t digits[INTEGER_MAX_DECIMAL_DIGITS];
	struct integer integer;
	int err = open_integer(memory, offsets, addr, &integer);
	const bool is_decimal = !err && integer.nr_digits <= INTEGER_MAX_DECIMAL_DIGITS;

	if (is_decimal)
		err = read_digits(memory, &integer, 0, integer.nr_digits, digits);
	if (err)
		return err;
	if (integer.is_negative)
		value_text_puts(text, "-");
	if (!is_decimal)
		return write_hexadecimal(memory, &integer, text);
	write_decimal(digits, integer.nr_digits, text);
	return 0;
}
