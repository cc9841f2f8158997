/* SPDX-License-Identifier: MIT */
/* Any bytes as the kernel stack of a thread. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/sched/kernel_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

/* Require that word is in the text and safe to print. */
static void require_word(const struct kernel_stack *stack, const char *word)
{
	require(word >= stack->text && word < stack->text + sizeof(stack->text));
	for (; *word; word++)
		require(*word > ' ' && *word < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kernel_stack stack;

	if (size >= sizeof(stack.text))
		return 0;
	memcpy(stack.text, data, size);
	stack.text[size] = '\0';
	kernel_stack_parse(&stack);
	require(stack.nr_frames <= KERNEL_STACK_MAX_FRAMES);
	for (unsigned int i = 0; i < stack.nr_frames; i++) {
		require(stack.frames[i].name[0]);
		require_word(&stack, stack.frames[i].name);
		if (stack.frames[i].module[0])
			require_word(&stack, stack.frames[i].module);
	}
	return 0;
}
