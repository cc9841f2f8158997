/* SPDX-License-Identifier: MIT */
/* Decompresses LZ4 frames with liblz4. */
#include <errno.h>
#include <lz4frame.h>

#include "procmem/core/decompressor.h"

static void *lz4_create(void)
{
	LZ4F_dctx *lz4 = NULL;

	return LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION)) ? NULL : lz4;
}

static void lz4_destroy(void *state)
{
	(void)LZ4F_freeDecompressionContext(state);
}

/* After the end of a frame the library accepts the next one without a reset. */
static int lz4_step(void *state, struct decompressor_step *step)
{
	size_t used = step->input_bytes;
	size_t made = step->output_bytes;
	size_t result = LZ4F_decompress(state, step->output, &made, step->input, &used, NULL);

	if (LZ4F_isError(result))
		return -EBADMSG;
	step->input += used;
	step->input_bytes -= used;
	step->output += made;
	step->output_bytes -= made;
	step->is_complete = result == 0;
	return 0;
}

const struct decompressor lz4_decompressor = {
	.name = "lz4",
	.magic = {0x04, 0x22, 0x4d, 0x18}, /* the LZ4 frame format */
	.magic_bytes = 4,
	.create = lz4_create,
	.destroy = lz4_destroy,
	.step = lz4_step,
};
