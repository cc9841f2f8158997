/* SPDX-License-Identifier: MIT */
/*
 * A stream that encodes: what is written to it goes into another one as base64 (RFC 4648,
 * section 4) on one line, padded, which can stand in a page or in JSON.
 */
#pragma once

#include <stdio.h>

/*
 * Begin behind what was written to out, which is borrowed until base64_close() and may not
 * be written to before. 0 or -ENOMEM.
 */
int base64_open(FILE *out, FILE **ret_stream);

/*
 * Write the last bytes with their padding and free the stream; out is neither flushed nor
 * closed. Accepts NULL. 0, or the first error of out since base64_open() as negative errno.
 */
int base64_close(FILE *stream);
