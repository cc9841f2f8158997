/* SPDX-License-Identifier: MIT */
#include "procmem/cpu_follower.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Dumps are 10 ms apart; who waits for 20 has waited too long. */
#define PERIOD_NS 10000000u
#define LATE_NS	  (2 * PERIOD_NS)

/* What the tests go through: two processors that we may run on, and one that nobody has. */
enum { HERE, THERE, NOT_OURS, NR_CPUS };

struct walk {
	struct cpu_follower follower;
	cpu_set_t usual;
	uint32_t cpus[NR_CPUS];
	uint64_t now_ns;
};

/* False: there is one processor only, and nothing to be tested. */
static bool begin(struct walk *walk)
{
	int nr = 0;

	*walk = (struct walk){.now_ns = 1000 * PERIOD_NS, .cpus[NOT_OURS] = CPU_SETSIZE + 7};
	cr_assert(zero(int, sched_getaffinity(0, sizeof(walk->usual), &walk->usual)));
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE && nr < 2; cpu++)
		if (CPU_ISSET(cpu, &walk->usual))
			walk->cpus[nr++] = cpu;
	cpu_follower_init(&walk->follower, LATE_NS);
	cr_expect(eq(int, walk->follower.is_on, nr == 2));
	return nr == 2;
}

/* Dumps of a thread, from one processor. */
static void note_of(struct walk *walk, pid_t tid, int which, int nr, uint64_t waited_ns)
{
	while (nr-- > 0) {
		walk->now_ns += PERIOD_NS;
		cpu_follower_note(&walk->follower, tid, walk->cpus[which], walk->now_ns, waited_ns);
		walk->now_ns += waited_ns;
		cpu_follower_go(&walk->follower, walk->now_ns);
	}
}

static void note(struct walk *walk, int which, int nr)
{
	note_of(walk, getpid(), which, nr, 0);
}

/* Whether we may run there, and nowhere else. */
static bool is_at(const struct walk *walk, int which)
{
	cpu_set_t cpus;

	cr_assert(zero(int, sched_getaffinity(0, sizeof(cpus), &cpus)));
	return CPU_COUNT(&cpus) == 1 && CPU_ISSET(walk->cpus[which], &cpus);
}

static bool is_free(const struct walk *walk)
{
	cpu_set_t cpus;

	cr_assert(zero(int, sched_getaffinity(0, sizeof(cpus), &cpus)));
	return CPU_EQUAL(&cpus, &walk->usual);
}

Test(cpu_follower, goes_where_dumps_come_from_and_back)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	note(&walk, HERE, 2);
	cr_expect(is_free(&walk));
	note(&walk, HERE, 1);
	cr_expect(is_at(&walk, HERE));
	note(&walk, HERE, 100);
	cr_expect(is_at(&walk, HERE));
	note(&walk, THERE, 1);
	cr_expect(is_free(&walk));
	note(&walk, THERE, 2);
	cr_expect(is_at(&walk, THERE));
	cpu_follower_rest(&walk.follower);
	cr_expect(is_free(&walk));
	note(&walk, THERE, 1);
	cr_expect(is_free(&walk), "a rest begins anew");
}

Test(cpu_follower, stays_anywhere_beside_several_threads)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	for (int i = 0; i < 100; i++) {
		note(&walk, i % 2 ? HERE : THERE, 1);
		cr_assert(is_free(&walk));
	}
}

/* The shorter it stays the longer it takes to be believed. */
Test(cpu_follower, goes_after_a_restless_thread_less_and_less)
{
	struct walk walk;
	int nr_there = 0;

	if (!begin(&walk))
		return;
	for (int i = 0; i < 1000; i++) {
		note(&walk, i / 4 % 2 ? HERE : THERE, 1);
		nr_there += !is_free(&walk);
	}
	cr_expect(gt(int, nr_there, 0));
	cr_expect(lt(int, nr_there, 10));
	note(&walk, HERE, 200);
	cr_expect(is_at(&walk, HERE));
	note(&walk, THERE, 3);
	cr_expect(is_at(&walk, THERE), "after a long stay it is believed at once");
}

Test(cpu_follower, stays_anywhere_when_no_dumps_come)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	note(&walk, HERE, 50);
	cpu_follower_go(&walk.follower, walk.now_ns + 190000000);
	cr_expect(is_at(&walk, HERE));
	cpu_follower_go(&walk.follower, walk.now_ns + 210000000);
	cr_expect(is_free(&walk));
}

Test(cpu_follower, keeps_away_from_where_it_waits)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	for (uint64_t away_ns = 10000000000; away_ns < 100000000000; away_ns *= 2) {
		uint64_t late_ns;

		note_of(&walk, getpid(), HERE, 200, LATE_NS);
		cr_expect(is_at(&walk, HERE), "so long may happen");
		note_of(&walk, getpid(), HERE, 1, LATE_NS + 1);
		cr_expect(is_free(&walk));
		late_ns = walk.now_ns;
		while (walk.now_ns + PERIOD_NS < late_ns + away_ns) {
			note(&walk, HERE, 1);
			cr_assert(is_free(&walk));
		}
		note(&walk, HERE, 1);
		cr_expect(is_at(&walk, HERE));
	}
}

/* Who is woken late anywhere learns nothing about that processor. */
Test(cpu_follower, waits_count_only_where_it_followed)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	note_of(&walk, getpid(), HERE, 2, 10 * LATE_NS);
	note(&walk, HERE, 1);
	cr_expect(is_at(&walk, HERE));
}

Test(cpu_follower, does_not_go_where_it_may_not)
{
	struct walk walk;

	if (!begin(&walk))
		return;
	note(&walk, NOT_OURS, 100);
	cr_expect(is_free(&walk));
	walk.cpus[NOT_OURS] = CPU_FOLLOWER_NOWHERE;
	note(&walk, NOT_OURS, 100);
	cr_expect(is_free(&walk));
}

/* A process of ours that the kernel would rather run than us. */
static pid_t start_preferred(void)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	for (;;)
		(void)pause();
}

Test(cpu_follower, does_not_go_to_who_runs_in_its_place)
{
	static const struct sched_param first = {.sched_priority = 1};
	struct walk walk;
	pid_t pid;

	if (!begin(&walk))
		return;
	cr_assert(zero(int, setpriority(PRIO_PROCESS, 0, 5)));
	pid = start_preferred();
	cr_assert(gt(int, pid, 0));
	note_of(&walk, pid, HERE, 10, 0);
	cr_expect(is_at(&walk, HERE), "as nice as we are");
	cpu_follower_rest(&walk.follower);
	/* What is not allowed cannot be tested. */
	if (!setpriority(PRIO_PROCESS, (id_t)pid, -20)) {
		note_of(&walk, pid, HERE, 100, 0);
		cr_expect(is_free(&walk), "nice -20");
		(void)setpriority(PRIO_PROCESS, (id_t)pid, 5);
	}
	walk.follower.resume_ns = 0;
	if (!sched_setscheduler(pid, SCHED_FIFO, &first)) {
		note_of(&walk, pid, HERE, 100, 0);
		cr_expect(is_free(&walk), "SCHED_FIFO");
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}
