/* SPDX-License-Identifier: MIT */
/* Decompresses Zstandard (RFC 8878) with libzstd. */
#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "procmem/core/decompressor.h"

static void *zstd_create(void)
{
	return ZSTD_createDStream();
}

static void zstd_destroy(void *state)
{
	(void)ZSTD_freeDStream(state);
}

static int zstd_error(size_t result)
{
	switch ((int)ZSTD_getErrorCode(result)) {
	/* The window exceeds ZSTD_WINDOWLOG_LIMIT_DEFAULT, 128 MiB. */
	case ZSTD_error_frameParameter_windowTooLarge:
		return -E2BIG;
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

/* After the end of a frame the library accepts the next one without a reset. */
static int zstd_step(void *state, struct decompressor_step *step)
{
	ZSTD_inBuffer in = {step->input, step->input_bytes, 0};
	ZSTD_outBuffer out = {step->output, step->output_bytes, 0};
	size_t result = ZSTD_decompressStream(state, &out, &in);

	step->input += in.pos;
	step->input_bytes -= in.pos;
	step->output += out.pos;
	step->output_bytes -= out.pos;
	if (ZSTD_isError(result))
		return zstd_error(result);
	step->is_complete = result == 0;
	return 0;
}

const struct decompressor zstd_decompressor = {
	.name = "zstd",
	.magic = {0x28, 0xb5, 0x2f, 0xfd}, /* RFC 8878, 3.1.1 */
	.magic_bytes = 4,
	.create = zstd_create,
	.destroy = zstd_destroy,
	.step = zstd_step,
};
