/* SPDX-License-Identifier: MIT */
#include "sampler/generator_calls.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(generator_calls, known_by_votes)
{
	struct generator_calls calls = {0};

	cr_expect(not(generator_calls_has(&calls, 0x1000)));
	generator_calls_vote(&calls, 0x1000);
	cr_expect(not(generator_calls_has(&calls, 0x1000)));
	generator_calls_vote(&calls, 0x2000);
	generator_calls_vote(&calls, 0x1000);
	cr_expect(generator_calls_has(&calls, 0x1000));
	cr_expect(not(generator_calls_has(&calls, 0x2000)));
	cr_expect(not(generator_calls_has(&calls, 0)));
}

/* What is known stays, and more than there is room for is passed over. */
Test(generator_calls, full)
{
	struct generator_calls calls = {0};

	for (unsigned int round = 0; round < 1000; round++)
		for (remote_addr i = 1; i <= GENERATOR_CALLS_MAX + 4; i++)
			generator_calls_vote(&calls, 0x1000 * i);
	for (remote_addr i = 1; i <= GENERATOR_CALLS_MAX + 4; i++)
		cr_expect(
			eq(int, generator_calls_has(&calls, 0x1000 * i), i <= GENERATOR_CALLS_MAX));
}
