/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_tree.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each process of a story holds the pipes. It tells of its children itself: that is the truth. */
enum {
	MAX_CHANGES = 40000,
	NR_QUICK = 1000,
	NR_LIVING = 20,
	NR_THREADS = 30,
	NR_LOST = 8000,
	NR_DAEMONS = 3
};

static const char *const source_names[] = {"connector", "perf by CPU", "perf by thread", "new ids"};

struct account {
	pid_t pid, parent_pid;
};

struct story {
	int go[2], account[2], release[2];
	pid_t root;
};

typedef void (*story_teller)(const struct story *story);

struct changes {
	struct process_tree_change *all;
	size_t nr;
};

/* The tellers, in the processes of the tree. */

static void tell(const struct story *story, pid_t child)
{
	const struct account account = {child, getpid()};

	if (child < 0 || write(story->account[1], &account, sizeof(account)) != sizeof(account))
		abort();
}

static void await_release(const struct story *story)
{
	char byte;

	(void)!read(story->release[0], &byte, 1);
}

static void have_quick_children(const struct story *story)
{
	for (int i = 0; i < NR_QUICK; i++) {
		const pid_t child = fork();

		if (!child)
			_exit(0);
		tell(story, child);
		(void)waitpid(child, NULL, 0);
	}
}

static void have_generations(const struct story *story, int nr, bool are_daemons)
{
	const pid_t parent = getpid();
	pid_t child;

	if (!nr)
		return;
	child = fork();
	if (!child) {
		/* The root lives on, all other parents of daemons end first. */
		while (are_daemons && nr < NR_DAEMONS && getppid() == parent)
			(void)usleep(100);
		have_generations(story, nr - 1, are_daemons);
		_exit(0);
	}
	tell(story, child);
	if (!are_daemons)
		(void)waitpid(child, NULL, 0);
}

static void have_nested(const struct story *story)
{
	have_generations(story, 12, false);
}

/* Each process ends while its child lives on and has children of its own. */
static void have_daemons(const struct story *story)
{
	for (int i = 0; i < NR_LIVING; i++)
		have_generations(story, NR_DAEMONS, true);
}

/* In a function of its own: what a caller of vfork() keeps in registers may be clobbered. */
static pid_t start_exec_chain(void)
{
	const pid_t child = vfork();

	if (!child) {
		(void)execl("/bin/sh", "sh", "-c", "exec sh -c 'exec true'", NULL);
		_exit(1);
	}
	return child;
}

static void have_exec_chains(const struct story *story)
{
	for (int i = 0; i < NR_LIVING; i++) {
		const pid_t child = start_exec_chain();

		tell(story, child);
		(void)waitpid(child, NULL, 0);
	}
}

static void *fork_in_thread(void *argument)
{
	const struct story *story = argument;
	const pid_t child = fork();

	if (!child)
		_exit(0);
	tell(story, child);
	(void)waitpid(child, NULL, 0);
	return NULL;
}

static void have_threads(const struct story *story)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, fork_in_thread, (void *)story))
			abort();
	for (int i = 0; i < NR_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

static void *exec_in_thread(void *argument)
{
	(void)argument;
	(void)execl("/bin/sh", "sh", "-c", "exit 7", NULL);
	_exit(1);
}

static void *outlive_main_thread(void *argument)
{
	(void)usleep(50000);
	(void)fork_in_thread(argument);
	_exit(0);
}

/* One child calls exec in another thread than the main one, one loses its main thread. */
static void have_lost_main_threads(const struct story *story)
{
	void *(*const bodies[])(void *) = {exec_in_thread, outlive_main_thread};

	for (int i = 0; i < 2; i++) {
		const pid_t child = fork();
		pthread_t thread;

		if (!child) {
			if (pthread_create(&thread, NULL, bodies[i], (void *)story))
				abort();
			pthread_exit(NULL);
		}
		tell(story, child);
		(void)waitpid(child, NULL, 0);
	}
}

static void have_living(const struct story *story)
{
	for (int i = 0; i < NR_LIVING; i++) {
		const pid_t child = fork();

		if (!child) {
			await_release(story);
			_exit(0);
		}
		tell(story, child);
	}
	await_release(story);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void *fork_when_released(void *argument)
{
	await_release(argument);
	return fork_in_thread(argument);
}

/* The same, with a thread that has another child after the release. */
static void have_living_and_thread(const struct story *story)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fork_when_released, (void *)story))
		abort();
	have_living(story);
	(void)pthread_join(thread, NULL);
}

/* Children that end with each status. */
static void have_statuses(const struct story *story)
{
	const int statuses[] = {0, 7, -SIGKILL, -SIGSEGV};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		const pid_t child = fork();

		if (!child && statuses[i] >= 0)
			_exit(statuses[i]);
		if (!child) {
			(void)prctl(PR_SET_DUMPABLE, 0L);
			(void)signal(-statuses[i], SIG_DFL);
			(void)kill(getpid(), -statuses[i]);
			abort();
		}
		tell(story, child);
		(void)waitpid(child, NULL, 0);
	}
}

/* The test's side. */

static struct story story_begin(story_teller teller)
{
	struct story story;
	char byte;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1L);
	cr_assert(zero(int, pipe(story.go) || pipe(story.account) || pipe(story.release)));
	story.root = fork();
	if (!story.root) {
		(void)close(story.go[1]);
		(void)close(story.release[1]);
		(void)!read(story.go[0], &byte, 1);
		teller(&story);
		_exit(0);
	}
	(void)close(story.account[1]);
	return story;
}

static void story_go(const struct story *story)
{
	cr_assert(eq(int, (int)write(story->go[1], "", 1), 1));
}

static struct process_tree *open_tree(pid_t root, enum process_tree_source source)
{
	const struct process_tree_options options = {PROCESS_TREE_SOURCE_BIT(source)};
	struct process_tree *tree = NULL;
	const int err = process_tree_open(root, &options, &tree);

	if (err == -ENOTSUP) {
		(void)kill(root, SIGKILL);
		cr_skip_test("%s: not allowed here", source_names[source]);
	}
	cr_assert(zero(int, err));
	cr_assert(eq(int, process_tree_source(tree), source));
	return tree;
}

static void add_change(void *context, const struct process_tree_change *change)
{
	struct changes *changes = context;

	cr_assert(lt(sz, changes->nr, (size_t)MAX_CHANGES));
	changes->all[changes->nr++] = *change;
}

static struct changes changes_begin(void)
{
	struct changes changes = {calloc(MAX_CHANGES, sizeof(struct process_tree_change)), 0};

	cr_assert(changes.all != NULL);
	return changes;
}

/* Read what there is, after a short wait for something. */
static void read_tree(struct process_tree *tree, struct changes *changes)
{
	struct pollfd event = {.fd = process_tree_fd(tree), .events = POLLIN};
	int err;

	(void)poll(&event, 1, 5);
	do
		err = process_tree_read(tree, add_change, changes);
	while (err == -EAGAIN);
	cr_assert(zero(int, err));
}

/*
 * Read the tree and the account until all processes of the story have ended and are reported; a
 * process that never is stops the test at its timeout. accounts holds the first nr.
 * Returns how many it then holds.
 */
static size_t read_all(const struct story *story, struct process_tree *tree,
		       struct changes *changes, struct account *accounts, size_t nr)
{
	bool is_told = false;

	while (!is_told) {
		struct pollfd input = {.fd = story->account[0], .events = POLLIN};

		read_tree(tree, changes);
		while (!is_told && poll(&input, 1, 0) > 0) {
			const ssize_t size =
				read(story->account[0], &accounts[nr], sizeof(*accounts));

			is_told = size <= 0;
			nr += size > 0;
		}
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	while (process_tree_stats(tree).nr_ended < nr + 1) {
		/* Events of all processes of the machine take the same room. */
		if (process_tree_stats(tree).nr_losses)
			cr_skip_test("%s: the machine is too busy: events were lost",
				     source_names[process_tree_source(tree)]);
		read_tree(tree, changes);
	}
	return nr;
}

static size_t count(const struct changes *changes, enum process_tree_change_kind kind, pid_t pid)
{
	size_t nr = 0;

	for (size_t i = 0; i < changes->nr; i++)
		nr += changes->all[i].kind == kind && changes->all[i].pid == pid;
	return nr;
}

static const struct process_tree_change *find(const struct changes *changes,
					      enum process_tree_change_kind kind, pid_t pid)
{
	for (size_t i = 0; i < changes->nr; i++)
		if (changes->all[i].kind == kind && changes->all[i].pid == pid)
			return &changes->all[i];
	return NULL;
}

/* Each process joins and ends once, in this order, with the parent that it was forked by. */
static void check_account(const struct story *story, const struct changes *changes,
			  const struct account *accounts, size_t nr)
{
	const struct process_tree_change *root = find(changes, PROCESS_JOINED, story->root);

	cr_assert(root == changes->all);
	cr_expect(eq(int, root->parent_pid, getpid()));
	for (size_t i = 0; i < nr; i++) {
		const pid_t pid = accounts[i].pid;
		const struct process_tree_change *joined = find(changes, PROCESS_JOINED, pid);
		const struct process_tree_change *ended = find(changes, PROCESS_ENDED, pid);

		cr_assert(joined && ended, "process %d of %zu", (int)i, nr);
		cr_expect(eq(int, joined->parent_pid, accounts[i].parent_pid));
		cr_expect(joined < ended && joined->time_ns <= ended->time_ns);
		cr_expect(find(changes, PROCESS_JOINED, joined->parent_pid) < joined);
		cr_expect(eq(sz, count(changes, PROCESS_JOINED, pid), 1));
		cr_expect(eq(sz, count(changes, PROCESS_ENDED, pid), 1));
	}
}

/* Tell a story to a source that sees everything. */
static struct changes follow_story(story_teller teller, enum process_tree_source source,
				   struct account *accounts, size_t *ret_nr)
{
	struct story story = story_begin(teller);
	struct process_tree *tree = open_tree(story.root, source);
	struct changes changes = changes_begin();

	story_go(&story);
	*ret_nr = read_all(&story, tree, &changes, accounts, 0);
	check_account(&story, &changes, accounts, *ret_nr);
	cr_expect(eq(u64, process_tree_stats(tree).nr_joined, *ret_nr + 1));
	cr_expect(eq(u64, process_tree_stats(tree).nr_maybe_missed, 0));
	cr_expect(not(process_tree_has(tree, story.root)));
	process_tree_close(tree);
	return changes;
}

static void follow(story_teller teller, enum process_tree_source source, size_t nr_expected)
{
	struct account accounts[NR_QUICK + 1];
	size_t nr;
	struct changes changes = follow_story(teller, source, accounts, &nr);

	cr_expect(eq(sz, nr, nr_expected));
	free(changes.all);
}

static void check_exec_chains(enum process_tree_source source)
{
	struct account accounts[NR_QUICK + 1];
	size_t nr;
	struct changes changes = follow_story(have_exec_chains, source, accounts, &nr);

	cr_expect(eq(sz, nr, NR_LIVING));
	for (size_t i = 0; i < nr; i++)
		cr_expect(eq(sz, count(&changes, PROCESS_HAS_EXECUTED, accounts[i].pid), 3));
	free(changes.all);
}

static void check_lost_main_threads(enum process_tree_source source)
{
	struct account accounts[NR_QUICK + 1];
	size_t nr;
	struct changes changes = follow_story(have_lost_main_threads, source, accounts, &nr);
	const struct process_tree_change *exec, *grandchild;

	cr_assert(eq(sz, nr, 3));
	/* The grandchild was told before the second child. */
	exec = find(&changes, PROCESS_HAS_EXECUTED, accounts[0].pid);
	cr_assert(exec != NULL);
	cr_expect(exec < find(&changes, PROCESS_ENDED, accounts[0].pid));
	for (size_t i = 1; i < nr; i++) {
		grandchild = find(&changes, PROCESS_JOINED, accounts[i].pid);
		cr_expect(grandchild < find(&changes, PROCESS_ENDED, accounts[i].parent_pid));
	}
	free(changes.all);
}

/* The tree is opened when it has members already; and it is told of each. */
static void check_running_tree(enum process_tree_source source, story_teller teller,
			       size_t nr_later)
{
	struct account accounts[NR_LIVING + 2];
	struct story story = story_begin(teller);
	struct changes changes = changes_begin();
	struct process_tree *tree;

	story_go(&story);
	for (int i = 0; i < NR_LIVING; i++)
		cr_assert(eq(sz, read(story.account[0], &accounts[i], sizeof(*accounts)),
			     sizeof(*accounts)));
	tree = open_tree(story.root, source);
	read_tree(tree, &changes);
	cr_expect(eq(u64, process_tree_stats(tree).nr_joined, NR_LIVING + 1));
	cr_expect(process_tree_has(tree, accounts[0].pid));
	(void)close(story.release[1]);
	cr_assert(eq(sz, read_all(&story, tree, &changes, accounts, NR_LIVING),
		     NR_LIVING + nr_later));
	check_account(&story, &changes, accounts, NR_LIVING + nr_later);
	process_tree_close(tree);
	free(changes.all);
}

/* vfork(2) is faster. */
static void __attribute__((noinline)) have_brief_child(void)
{
	const pid_t child = vfork();

	if (!child)
		_exit(0);
	(void)waitpid(child, NULL, 0);
}

/*
 * More events than fit, while nobody reads: who lives then is found, who ended is ended. One whose
 * end was told is still listed, since nobody has waited for it.
 */
static void lose_events(const struct story *story)
{
	const pid_t unawaited = fork();
	siginfo_t info;

	if (!unawaited)
		_exit(0);
	(void)waitid(P_PID, (id_t)unawaited, &info, WEXITED | WNOWAIT);
	tell(story, unawaited);
	for (int i = 0; i < NR_LOST; i++)
		have_brief_child();
	have_living(story);
}

static void check_loss(enum process_tree_source source)
{
	struct account accounts[NR_LIVING + 1];
	struct story story = story_begin(lose_events);
	struct process_tree *tree = open_tree(story.root, source);
	struct changes changes = changes_begin();

	read_tree(tree, &changes);
	story_go(&story);
	for (int i = 0; i <= NR_LIVING; i++)
		cr_assert(eq(sz, read(story.account[0], &accounts[i], sizeof(*accounts)),
			     sizeof(*accounts)));
	while (!process_tree_has(tree, accounts[NR_LIVING].pid))
		read_tree(tree, &changes);
	for (int i = 0; i <= NR_LIVING; i++) {
		const struct process_tree_change *joined =
			find(&changes, PROCESS_JOINED, accounts[i].pid);

		cr_assert(joined != NULL);
		cr_expect(eq(int, joined->parent_pid, story.root));
		cr_expect(eq(sz, count(&changes, PROCESS_JOINED, accounts[i].pid), 1));
	}
	if (!process_tree_stats(tree).nr_losses)
		cr_log_warn("%s: no events were lost", source_names[source]);
	(void)close(story.release[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	while (process_tree_stats(tree).nr_ended < process_tree_stats(tree).nr_joined)
		read_tree(tree, &changes);
	cr_expect(not(process_tree_has(tree, story.root)));
	process_tree_close(tree);
	free(changes.all);
}

/* No event tells the end of a root that ended, and was not waited for, before the tree is opened. */
static void check_ended_root(enum process_tree_source source)
{
	const pid_t child = fork();
	struct changes changes = changes_begin();
	struct process_tree *tree;
	siginfo_t info;

	if (!child)
		_exit(0);
	cr_assert(zero(int, waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT)));
	tree = open_tree(child, source);
	read_tree(tree, &changes);
	cr_expect(eq(u64, process_tree_stats(tree).nr_joined, 1), "%s", source_names[source]);
	cr_expect(eq(u64, process_tree_stats(tree).nr_ended, 1), "%s", source_names[source]);
	process_tree_close(tree);
	free(changes.all);
	(void)waitpid(child, NULL, 0);
}

static void check_source(enum process_tree_source source)
{
	follow(have_quick_children, source, NR_QUICK);
	follow(have_nested, source, 12);
	follow(have_daemons, source, NR_DAEMONS * NR_LIVING);
	follow(have_threads, source, NR_THREADS);
	check_exec_chains(source);
	check_lost_main_threads(source);
	check_running_tree(source, have_living_and_thread, 1);
	check_ended_root(source);
}

Test(process_tree, connector)
{
	check_source(PROCESS_TREE_CONNECTOR);
}

Test(process_tree, perf_by_cpu)
{
	check_source(PROCESS_TREE_PERF_CPU);
}

Test(process_tree, perf_by_thread)
{
	check_source(PROCESS_TREE_PERF_THREADS);
}

Test(process_tree, connector_loses_events)
{
	check_loss(PROCESS_TREE_CONNECTOR);
}

Test(process_tree, perf_loses_events)
{
	check_loss(PROCESS_TREE_PERF_THREADS);
}

Test(process_tree, new_ids_find_what_lives)
{
	check_running_tree(PROCESS_TREE_NEW_IDS, have_living, 0);
	check_ended_root(PROCESS_TREE_NEW_IDS);

	struct account accounts[NR_LIVING + 1];
	struct story story = story_begin(have_living);
	struct process_tree *tree = open_tree(story.root, PROCESS_TREE_NEW_IDS);
	struct changes changes = changes_begin();
	size_t nr;

	story_go(&story);
	while (process_tree_stats(tree).nr_joined < NR_LIVING + 1)
		read_tree(tree, &changes);
	(void)close(story.release[1]);
	nr = read_all(&story, tree, &changes, accounts, 0);
	cr_expect(eq(sz, nr, NR_LIVING));
	check_account(&story, &changes, accounts, nr);
	process_tree_close(tree);
	free(changes.all);
}

/* None is seen, but all are counted: others of this machine may be, too. */
Test(process_tree, new_ids_count_what_is_missed)
{
	struct account account;
	struct story story = story_begin(have_quick_children);
	struct process_tree *tree = open_tree(story.root, PROCESS_TREE_NEW_IDS);
	struct changes changes = changes_begin();

	read_tree(tree, &changes);
	story_go(&story);
	while (read(story.account[0], &account, sizeof(account)) > 0)
		;
	while (waitpid(-1, NULL, 0) > 0)
		;
	read_tree(tree, &changes);
	read_tree(tree, &changes);
	cr_expect(ge(u64, process_tree_stats(tree).nr_maybe_missed, NR_QUICK));
	process_tree_close(tree);
	free(changes.all);
}

Test(process_tree, wait_statuses)
{
	const int expected[] = {0, 7 << 8, SIGKILL, SIGSEGV};
	struct account accounts[NR_QUICK + 1];
	size_t nr;
	struct changes changes = follow_story(have_statuses, PROCESS_TREE_CONNECTOR, accounts, &nr);

	cr_assert(eq(sz, nr, 4));
	for (size_t i = 0; i < nr; i++) {
		const struct process_tree_change *ended =
			find(&changes, PROCESS_ENDED, accounts[i].pid);

		cr_assert(ended != NULL);
		cr_expect(eq(int, ended->wait_status, expected[i]));
	}
	free(changes.all);
}

Test(process_tree, no_such_process)
{
	struct process_tree *tree = NULL;
	const pid_t child = fork();

	if (!child)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	cr_expect(eq(int, process_tree_open(child, NULL, &tree), -ESRCH));
	process_tree_close(NULL);
}
