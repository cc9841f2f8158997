/* SPDX-License-Identifier: MIT */
/* Decompresses .xz files with liblzma. */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "procmem/core/decompressor.h"

static lzma_ret xz_restart(lzma_stream *lzma)
{
	return lzma_stream_decoder(lzma, DECOMPRESSOR_MAX_MEMORY_BYTES, 0);
}

static void *xz_create(void)
{
	lzma_stream *lzma = calloc(1, sizeof(*lzma)); /* equals LZMA_STREAM_INIT */

	if (lzma && xz_restart(lzma) != LZMA_OK) {
		free(lzma);
		return NULL;
	}
	return lzma;
}

static void xz_destroy(void *state)
{
	if (state)
		lzma_end(state);
	free(state);
}

static int xz_error(lzma_ret result)
{
	switch ((int)result) {
	case LZMA_OK:
	case LZMA_BUF_ERROR: /* no progress is possible */
		return 0;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

static int xz_step(void *state, struct decompressor_step *step)
{
	lzma_stream *lzma = state;

	lzma->next_in = step->input;
	lzma->avail_in = step->input_bytes;
	lzma->next_out = step->output;
	lzma->avail_out = step->output_bytes;
	lzma_ret result = lzma_code(lzma, LZMA_RUN);

	step->input = lzma->next_in;
	step->input_bytes = lzma->avail_in;
	step->output = lzma->next_out;
	step->output_bytes = lzma->avail_out;
	step->is_complete = result == LZMA_STREAM_END;
	if (step->is_complete)
		result = xz_restart(lzma);
	return xz_error(result);
}

const struct decompressor xz_decompressor = {
	.name = "xz",
	.magic = {0xfd, '7', 'z', 'X', 'Z', 0}, /* the .xz file format, 2.1.1.1 */
	.magic_bytes = 6,
	.create = xz_create,
	.destroy = xz_destroy,
	.step = xz_step,
};
