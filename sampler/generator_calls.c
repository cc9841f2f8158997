/* SPDX-License-Identifier: MIT */
#include "sampler/generator_calls.h"

/* A copy may be misread once; what is called so is seen in every tenth copy, if at all. */
enum { ENOUGH_VOTES = 2 };

void generator_calls_vote(struct generator_calls *calls, remote_addr return_addr)
{
	for (uint32_t i = 0; i < GENERATOR_CALLS_MAX; i++) {
		if (calls->calls[i].return_addr && calls->calls[i].return_addr != return_addr)
			continue;
		calls->calls[i].return_addr = return_addr;
		if (calls->calls[i].votes < ENOUGH_VOTES)
			calls->calls[i].votes++;
		return;
	}
}

bool generator_calls_has(const struct generator_calls *calls, remote_addr return_addr)
{
	for (uint32_t i = 0; i < GENERATOR_CALLS_MAX; i++)
		if (calls->calls[i].return_addr == return_addr)
			return calls->calls[i].votes >= ENOUGH_VOTES;
	return false;
}
