/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the start of a _PyRuntime. The input is PY_VERSION_HEX as known from elsewhere
 * (4 bytes), then the memory. Offsets that are accepted are used once, to read a thread list.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/find/build.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/threads/threads.h"
#include "tests/support/fake_memory.h"

#define RUNTIME_ADDR 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct thread_list list = {0};
	struct message message = {0};
	struct fake_memory fake;
	struct py_build build;
	uint32_t version_hex;
	int err;

	if (size <= sizeof(version_hex))
		return 0;
	memcpy(&version_hex, data, sizeof(version_hex));
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, RUNTIME_ADDR, data + 4, size - 4);
	err = build_load(&fake.memory, RUNTIME_ADDR, version_hex, &build, &message);
	/* Every refusal has a message. */
	if ((err == -ENOTSUP || err == -EBADMSG) && !message.text[0])
		abort();
	if (!err) {
		const struct py_offsets *o = &build.offsets;

		if (o->frame.size > FRAME_MAX_BYTES || o->code.code_adaptive > CODE_MAX_BYTES ||
		    o->thread.datastack_top + 8 > THREAD_STATE_MAX_BYTES ||
		    o->thread.native_thread_id + 8 > THREAD_STATE_MAX_BYTES)
			abort();
		(void)thread_list_read(&fake.memory, &build, RUNTIME_ADDR, false, &list);
		thread_list_done(&list);
	}
	fake_memory_done(&fake);
	return 0;
}
