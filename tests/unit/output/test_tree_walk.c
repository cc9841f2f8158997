/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/profile/tree_walk.h"
#include "tests/support/stack_profile.h"

static struct profile *new_profile(void)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

Test(tree_walk, empty_profile_has_no_steps)
{
	struct profile *profile = new_profile();
	struct tree_step step = TREE_STEP_BEGIN;
	struct tree_walk walk;

	cr_assert(eq(int, tree_walk_init(&walk, profile, PROFILE_SHOWN), 0));
	cr_expect(not(tree_walk_next(&walk, &step)));
	cr_expect(eq(u64, walk.sums[0].ns, 0));
	tree_walk_done(&walk);
	profile_destroy(profile);
}

/* Steps are letters of the function: upper case to enter, lower case to leave. */
Test(tree_walk, enters_and_leaves)
{
	struct profile *profile = new_profile();
	char steps[16] = "";
	struct tree_walk walk;
	uint32_t nr_functions;
	size_t nr = 0;

	add_stack(profile, PROFILE_SHOWN, "a;b", 1);
	add_stack(profile, PROFILE_SHOWN, "c", 2);
	add_stack(profile, PROFILE_SHOWN, "a;d", 4);
	add_stack(profile, PROFILE_SHOWN, "e", 8);
	cr_assert(eq(int, tree_walk_init(&walk, profile, PROFILE_SHOWN), 0));
	for (struct tree_step step = TREE_STEP_BEGIN; tree_walk_next(&walk, &step);) {
		const struct profile_function *functions =
			profile_functions(profile, &nr_functions);
		char name = functions[walk.nodes[step.node].frame].qualname[0];

		cr_assert(nr < sizeof(steps) - 1);
		steps[nr++] = (char)(step.is_exit ? name : name - 'a' + 'A');
	}
	cr_expect(eq(str, steps, (char *)"ABbDdaCcEe"));
	tree_walk_done(&walk);
	profile_destroy(profile);
}

Test(tree_walk, sums_each_side)
{
	struct profile *profile = new_profile();
	struct tree_walk walk;

	add_stack(profile, PROFILE_SHOWN, "a;b", 1);
	add_stack(profile, PROFILE_SHOWN, "a", 2);
	add_stack(profile, PROFILE_BASE, "a;b", 16);
	cr_assert(eq(int, tree_walk_init(&walk, profile, PROFILE_SHOWN), 0));
	cr_expect(eq(u64, walk.sums[0].ns, 3));
	cr_expect(eq(u64, walk.sums[0].samples, 2));
	cr_expect(eq(u64, walk.sums[1].ns, 1));
	cr_expect(eq(u64, walk.sums[2].ns, 3)); /* everything */
	tree_walk_done(&walk);
	cr_assert(eq(int, tree_walk_init(&walk, profile, PROFILE_BASE), 0));
	cr_expect(eq(u64, walk.sums[0].ns, 16));
	cr_expect(eq(u64, walk.sums[0].samples, 1));
	tree_walk_done(&walk);
	profile_destroy(profile);
}
