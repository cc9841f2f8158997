/* SPDX-License-Identifier: MIT */
#include "sampler/call_names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "support/fake_python.h"

struct world {
	struct fake_python py;
	struct code_cache codes;
	struct call_names names;
};

static struct code *make_code(struct world *world, const char *name)
{
	const remote_addr addr = fake_python_code(&world->py, &(struct fake_code){.name = name});
	const struct code_clock clock = fake_python_clock(&world->py, 1);
	struct code *code = NULL;

	cr_assert(zero(int, code_cache_get(&world->codes, addr, &clock, &code)));
	return code;
}

static void world_init(struct world *world, uint32_t minor)
{
	*world = (struct world){.codes = {.memory = NULL}};
	fake_python_init(&world->py, minor);
	code_cache_init(&world->codes, &world->py.fake.memory, &world->py.build);
}

static void world_done(struct world *world)
{
	code_cache_done(&world->codes);
	fake_python_done(&world->py);
}

static bool has(struct world *world, const struct code *caller, const struct code *callee)
{
	bool found = false;

	cr_assert(zero(int, call_names_has(&world->names, &world->codes, caller, callee, &found)));
	return found;
}

Test(call_names, what_is_named)
{
	for (int i = 0; i < NR_FAKE_PYTHONS; i++) {
		struct world world;
		const struct code *f, *g, *h;

		world_init(&world, fake_python_minors[i]);
		f = make_code(&world, "f");
		g = make_code(&world, "Class.g");
		h = make_code(&world, "h");
		fake_python_code_names(&world.py, f->addr, g->addr);
		/* Twice: read, and remembered. */
		for (int round = 0; round < 2; round++) {
			cr_expect(has(&world, f, g));
			cr_expect(not(has(&world, g, f)));
			cr_expect(not(has(&world, f, h)));
			cr_expect(not(has(&world, h, h)));
		}
		world_done(&world);
	}
}

/* What is called without a name may be called by everybody. */
Test(call_names, what_has_no_name)
{
	static const char *const nameless[] = {"<lambda>", "f.<locals>.<lambda>", "Class.__init__"};
	struct world world;
	const struct code *f;

	world_init(&world, 14);
	f = make_code(&world, "f");
	for (int i = 0; i < 3; i++)
		cr_expect(has(&world, f, make_code(&world, nameless[i])));
	cr_expect(not(has(&world, f, make_code(&world, "<locals>.g"))));
	world_done(&world);
}

/* Another object at the address is asked anew. */
Test(call_names, what_is_remembered_is_of_one_object)
{
	struct world world;
	struct code *f, *g;

	world_init(&world, 14);
	f = make_code(&world, "f");
	g = make_code(&world, "g");
	cr_expect(not(has(&world, f, g)));
	fake_python_code_names(&world.py, f->addr, g->addr);
	cr_expect(not(has(&world, f, g)));
	f->nr_loads++;
	cr_expect(has(&world, f, g));
	world_done(&world);
}

/* A tuple that says that it has more than there are, or that is nowhere. */
Test(call_names, damage)
{
	struct world world;
	const struct code *f, *g;
	uint64_t tuple_addr;

	world_init(&world, 14);
	f = make_code(&world, "f");
	g = make_code(&world, "g");
	fake_python_code_names(&world.py, f->addr, g->addr);
	cr_assert(
		zero(int, remote_memory_read_u64(&world.py.fake.memory,
						 f->addr + world.py.build.offsets.code.ob_size + 16,
						 &tuple_addr)));
	fake_memory_write_u64(&world.py.fake,
			      tuple_addr + world.py.build.offsets.object.ob_type + 8, UINT64_MAX);
	cr_expect(not(has(&world, f, g)));
	fake_memory_write_u64(&world.py.fake, f->addr + world.py.build.offsets.code.ob_size + 16,
			      UINT64_MAX);
	world.names = (struct call_names){.known = {{.caller_addr = 0}}};
	cr_expect(not(has(&world, f, g)));
	world_done(&world);
}
