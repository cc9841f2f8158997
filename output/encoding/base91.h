/* SPDX-License-Identifier: MIT */
/*
 * A stream that encodes what is written to it as printable ASCII, on one line and without <, so
 * that it can be inside a script element. 13 bits, lowest bits of the first byte first, make two
 * base-91 digits, low digit first. Digits are the characters from # on, with ~ for <. If at most
 * 6 bits remain at the end, they make one digit. The result is 8 % smaller than base64.
 */
#pragma once

#include <stdio.h>

/*
 * Begin at the current end of out, which is borrowed until base91_close() and must not be written
 * to before that. Returns 0 or -ENOMEM.
 */
int base91_open(FILE *out, FILE **ret_stream);

/*
 * Write the remaining bits and free the stream. out is neither flushed nor closed. Accepts NULL.
 * Returns 0, or the first error of out since base91_open() as negative errno.
 */
int base91_close(FILE *stream);
