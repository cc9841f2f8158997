/* SPDX-License-Identifier: MIT */
/*
 * A stream that encodes: what is written to it goes into another one as printable ASCII on
 * one line without <, so that it can stand in a script element of a page. 13 bits, the first
 * byte's lowest first, are two digits of base 91, the lower one first: from # on, with ~ for <.
 * The last bits are one digit if they are at most 6. That is 8 % less than base64.
 */
#pragma once

#include <stdio.h>

/*
 * Begin behind what was written to out, which is borrowed until base91_close() and may not
 * be written to before. 0 or -ENOMEM.
 */
int base91_open(FILE *out, FILE **ret_stream);

/*
 * Write the last bits and free the stream; out is neither flushed nor closed. Accepts NULL.
 * 0, or the first error of out since base91_open() as negative errno.
 */
int base91_close(FILE *stream);
