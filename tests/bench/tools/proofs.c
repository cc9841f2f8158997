/* SPDX-License-Identifier: MIT */
/*
 * Checks the proofs of the instant (sampler/witness.h) against each other and against a counter
 * that the target increments in user mode (proofs_target.c).
 *
 *	proofs [-n LOOKS] [-d SECONDS] PID BOARD
 *
 * A look is the engine's: the pinned CPU, guards, seals, memory read ahead. Unlike the engine,
 * each look uses all three witnesses of one thread, and seals the counter after the word of the
 * first. The order in time:
 *
 *	hold, run count and CPU, clock, [word, counter [memory] counter, word], clock, run count,
 *	release
 *
 * It is no error if one witness proves and another does not. These are errors:
 *
 * wrong         A witness proved, but the counter changed while the memory was read: the thread
 *               executed instructions in between.
 * disagreement  A witness proved what another one shows to be false, whether or not the counter
 *               moved. An equal task clock means that the thread had no CPU, an equal run count
 *               that it was not given one. Three pairs are compared:
 *                 clock, word   The clock stood, but the word of the thread's rseq area changed,
 *                               which the thread itself writes on its way to user mode. After a
 *                               thread has ended, its word may be the next one's and is ignored.
 *                 runs, word    The run count proved, but that word changed.
 *                 runs, clock   The run count proved, but the clock went on.
 *
 * If the word proves and the clock went on, that is no disagreement but is counted as "kernel":
 * the word is about user mode only. A thread that was moved, or woke up elsewhere, is in the
 * kernel for a moment, on a CPU that nobody holds, before it stores that CPU. If it cannot have
 * been there, the run count proves, too, and the case is "runs, clock". Nor is it a disagreement
 * if the clock proves and the run count rose: the count is read later, and rises before the clock
 * goes on.
 *
 * Three rules that prove nothing are evaluated, too, to show that wrong proofs are found:
 *
 * word, switches  The word names the pinned CPU throughout, and pysample was not preempted. Whether
 *                 it slept is not checked.
 * word alone      The same, without checking whether pysample left the CPU.
 * count alone     The run count is equal, wherever the thread is.
 *
 * Writes one JSON object.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/look_memory.h"
#include "sampler/preempt.h"
#include "sampler/witness.h"
#include "symbols/elf/live_images.h"
#include "tests/bench/tools/proofs_board.h"

#define DEFAULT_LOOKS 100000
#define MAX_LOOKS     100000000
#define MAX_SECONDS   1000000.0

/* The pause before a look is uniformly distributed between these. */
#define LEAST_PAUSE_NS 100000u
#define MOST_PAUSE_NS  500000u

/*
 * How long to wait for the target to announce a thread, or its successor after an end or an exec.
 */
#define PATIENCE_NS 30000000000u

/* This many looks in a row read the same number of blocks, so that they are read ahead. */
enum { EPISODE_LOOKS = 256 };

/* In the order in which the engine tries them. */
enum { RSEQ, CLOCK, RUNS, NR_WITNESSES };

enum weak_rule { WORD_PREEMPTED, WORD_ALONE, COUNT_ALONE, NR_WEAK_RULES };

enum disagreement { CLOCK_WORD, RUNS_WORD, RUNS_CLOCK, NR_DISAGREEMENTS };

static const char *const witness_names[NR_WITNESSES] = {"rseq", "clock", "runs"};
static const char *const weak_rule_names[NR_WEAK_RULES] = {"word, switches", "word alone",
							   "count alone"};
static const char *const disagreement_names[NR_DISAGREEMENTS] = {"clock, word", "runs, word",
								 "runs, clock"};

/* How often a rule was applied, proved, and proved although the counter moved. */
struct verdicts {
	uint64_t nr_asked;
	uint64_t nr_proven;
	uint64_t nr_wrong;
};

struct counts {
	uint64_t nr_looks;
	uint64_t nr_unread;  /* looks not in nr_looks: the counter could not be read */
	uint64_t nr_moved;   /* looks during which the counter changed */
	uint64_t nr_slept;   /* looks during which we slept, on the memory map or on a page */
	uint64_t nr_threads; /* threads looked at */
	uint64_t nr_kernel;  /* the word proves, the clock went on */
	struct verdicts witnesses[NR_WITNESSES];
	struct verdicts weak_rules[NR_WEAK_RULES];
	uint64_t pairs[NR_WITNESSES][NR_WITNESSES][2]; /* [i][j][moved]: i proves, j does not */
	uint64_t disagreements[NR_DISAGREEMENTS];
};

struct prober {
	struct process process;
	struct live_memory live;
	struct live_images images;
	struct look_memory look;
	struct witness_means means;
	struct preempt *preempt;
	struct followed_cpus followed;
	uint64_t next_ns; /* when the next look begins */
	const struct proofs_board *board;
	struct proofs_thread thread; /* the thread that is looked at */
	uint64_t sequence;	     /* of the board when thread was read; 0: none yet */
	struct witness witnesses[NR_WITNESSES];
	unsigned int seed;
	struct counts counts;
};

/* The result of one look. */
struct finding {
	bool has[NR_WITNESSES];
	bool proven[NR_WITNESSES];
	bool moved;	   /* the counter changed */
	bool word_changed; /* and both values are the thread's own */
	bool clock_went;
	bool count_stood;
	bool word_is_ours;		  /* it names the pinned CPU at both ends */
	struct context_switches switches; /* how often we left the CPU */
};

static uint32_t random_below(struct prober *prober, uint32_t limit)
{
	return (uint32_t)rand_r(&prober->seed) % limit;
}

/* The thread. */

static void close_witnesses(struct prober *prober)
{
	for (int i = 0; i < NR_WITNESSES; i++)
		witness_close(&prober->witnesses[i]);
}

/* Find the place of the rseq areas in the program that runs now. */
static void find_rseq(struct prober *prober)
{
	struct maps maps;

	prober->means.rseq = (struct rseq_place){.is_known = false};
	if (maps_read(&prober->process, &maps))
		return;
	prober->means.rseq = rseq_place_find(&prober->live.memory, &maps, &prober->images.source);
	maps_done(&maps);
}

/* Open one witness of each kind. One that is not available has another kind. */
static void open_witnesses(struct prober *prober)
{
	const struct witness_means clocks = {.process = &prober->process, .prefers_clock = true};
	const pid_t tid = (pid_t)prober->thread.tid;
	struct witness *runs = &prober->witnesses[RUNS];

	witness_open(&prober->means, prober->thread.thread_pointer, tid, &prober->witnesses[RSEQ]);
	witness_open(&clocks, 0, tid, &prober->witnesses[CLOCK]);
	*runs = (struct witness){.cpu = CPU_NONE, .runs = RUN_COUNT_CLOSED};
	runs->has_runs = run_count_open(&prober->process, tid, &runs->runs) == 0;
	runs->kind = runs->has_runs ? WITNESS_RUNS : WITNESS_NONE;
}

/* Read the thread that the board announces now. False: none yet, or it is being written. */
static bool take_thread(struct prober *prober)
{
	const uint64_t sequence = atomic_load(&prober->board->sequence);
	const uint64_t program = prober->thread.program;
	struct proofs_thread thread;

	/* Looks at a thread that has ended go on until there is another one. */
	if (prober->sequence && (sequence | 1) == (prober->sequence | 1))
		return true;
	thread = prober->board->thread;
	atomic_thread_fence(memory_order_seq_cst);
	if (!sequence || sequence % 2 || sequence != atomic_load(&prober->board->sequence))
		return false;
	prober->sequence = sequence;
	prober->thread = thread;
	prober->counts.nr_threads++;
	close_witnesses(prober);
	if (thread.program != program)
		find_rseq(prober);
	open_witnesses(prober);
	return true;
}

/* A look. */

static void verdict(struct verdicts *verdicts, bool proven, bool moved)
{
	verdicts->nr_asked++;
	verdicts->nr_proven += proven;
	verdicts->nr_wrong += proven && moved;
}

static void add_finding(struct counts *counts, const struct finding *finding)
{
	const bool moved = finding->moved;
	const bool *proven = finding->proven;

	counts->nr_looks++;
	counts->nr_moved += moved;
	counts->nr_slept += finding->switches.voluntary != 0;
	for (int i = 0; i < NR_WITNESSES; i++) {
		if (!finding->has[i])
			continue;
		verdict(&counts->witnesses[i], proven[i], moved);
		for (int j = 0; j < NR_WITNESSES; j++)
			counts->pairs[i][j][moved] += finding->has[j] && proven[i] && !proven[j];
	}
	if (finding->has[RSEQ]) {
		verdict(&counts->weak_rules[WORD_PREEMPTED],
			finding->word_is_ours && !finding->switches.involuntary, moved);
		verdict(&counts->weak_rules[WORD_ALONE], finding->word_is_ours, moved);
	}
	if (finding->has[RUNS])
		verdict(&counts->weak_rules[COUNT_ALONE], finding->count_stood, moved);
	counts->disagreements[CLOCK_WORD] += proven[CLOCK] && finding->word_changed;
	counts->disagreements[RUNS_WORD] += proven[RUNS] && finding->word_changed;
	counts->disagreements[RUNS_CLOCK] += proven[RUNS] && finding->clock_went;
	counts->nr_kernel += proven[RSEQ] && finding->clock_went;
}

/* Read memory block by block, as a walk does. */
static void read_payload(struct prober *prober, uint32_t nr_blocks)
{
	const struct proofs_thread *thread = &prober->thread;
	const uint64_t max_blocks = thread->payload_bytes / LOOK_BLOCK_BYTES;
	uint8_t block[LOOK_BLOCK_BYTES];

	for (uint64_t i = 0; i < nr_blocks && i < max_blocks; i++)
		if (remote_memory_read(&prober->look.memory,
				       thread->payload_addr + i * sizeof(block), block,
				       sizeof(block)))
			break;
}

static bool words_are_equal(const struct look_seal *seal)
{
	return memcmp(seal->first, seal->last, seal->size) == 0;
}

/* Evaluate the sealed words. False: the counter could not be read. */
static bool judge_seals(const struct prober *prober, uint32_t counter_seal, uint32_t pinned_cpu,
			struct finding *finding)
{
	const struct look_seal *counter = look_memory_seal_at(&prober->look, counter_seal);

	if (!counter->is_read)
		return false;
	finding->moved = !words_are_equal(counter);
	if (finding->has[RSEQ]) {
		const struct look_seal *word =
			look_memory_seal_at(&prober->look, prober->witnesses[RSEQ].seal);

		/* After a thread has ended its word may be the next one's. */
		finding->word_changed = word->is_read && !words_are_equal(word) &&
					atomic_load(&prober->board->sequence) == prober->sequence;
		finding->word_is_ours = word->is_read && words_are_equal(word) &&
					field_u32(word->first, 0) == pinned_cpu;
	}
	return true;
}

/* The CPU on which the look found the thread, where the next look is to be; else CPU_NONE. */
static uint32_t found_cpu(const struct prober *prober)
{
	struct thread_stat now;

	if (prober->witnesses[RSEQ].cpu != CPU_NONE && prober->witnesses[RSEQ].kind == WITNESS_RSEQ)
		return prober->witnesses[RSEQ].cpu;
	return prober->witnesses[RUNS].has_runs &&
			       !run_count_read_stat(&prober->witnesses[RUNS].runs, &now)
		       ? now.cpu
		       : CPU_NONE;
}

/*
 * Begin the outermost witness first, and seal the counter after the word. Returns 0 or an error of
 * the look.
 */
static int begin_look(struct prober *prober, const cpu_set_t *held, uint32_t *ret_counter_seal)
{
	static const int order[NR_WITNESSES] = {RUNS, CLOCK, RSEQ};
	int err = 0;

	look_memory_clear_seals(&prober->look);
	for (int i = 0; !err && i < NR_WITNESSES; i++)
		err = witness_begin(&prober->witnesses[order[i]], &prober->look, held);
	if (!err)
		err = look_memory_seal(&prober->look, prober->thread.counter_addr, sizeof(uint64_t),
				       ret_counter_seal);
	return err ? err : look_memory_begin(&prober->look);
}

/*
 * Read the witnesses at the end of the look, the clock before the run count: see the file header.
 */
static void end_witnesses(struct prober *prober, uint64_t count_before, struct finding *finding)
{
	static const int order[NR_WITNESSES] = {RSEQ, CLOCK, RUNS};
	uint64_t count;

	for (int i = 0; i < NR_WITNESSES; i++)
		witness_end(&prober->witnesses[order[i]], &prober->means,
			    (pid_t)prober->thread.tid);
	finding->count_stood = finding->has[RUNS] &&
			       !run_count_read(&prober->witnesses[RUNS].runs, &count) &&
			       count == count_before;
}

static void ask_witnesses(struct prober *prober, const cpu_set_t *held, struct finding *finding)
{
	const struct witness *clock = &prober->witnesses[CLOCK];

	for (int i = 0; i < NR_WITNESSES; i++)
		finding->proven[i] = finding->has[i] && witness_stood_still(&prober->witnesses[i],
									    &prober->look, held);
	finding->clock_went = finding->has[CLOCK] && clock->before != UINT64_MAX &&
			      clock->after != UINT64_MAX && clock->after != clock->before;
}

/* Returns 0, or a negative errno if nothing could be read. */
static int take_look(struct prober *prober, uint32_t nr_blocks)
{
	static const enum witness_kind kinds[NR_WITNESSES] = {WITNESS_RSEQ, WITNESS_CLOCK,
							      WITNESS_RUNS};
	struct finding finding = {0};
	uint64_t count_before = UINT64_MAX;
	struct context_switches switches;
	uint32_t counter_seal = 0, pinned_cpu;
	cpu_set_t held;
	int err;

	for (int i = 0; i < NR_WITNESSES; i++)
		finding.has[i] = prober->witnesses[i].kind == kinds[i];
	switches = context_switches_read();
	preempt_hold(prober->preempt, &prober->followed, &held);
	pinned_cpu = cpu_current();
	if (finding.has[RUNS])
		(void)run_count_read(&prober->witnesses[RUNS].runs, &count_before);
	err = begin_look(prober, &held, &counter_seal);
	if (!err) {
		read_payload(prober, nr_blocks);
		err = look_memory_end(&prober->look);
	}
	end_witnesses(prober, count_before, &finding);
	finding.switches = context_switches_read();
	finding.switches.voluntary -= switches.voluntary;
	finding.switches.involuntary -= switches.involuntary;
	(void)preempt_release(prober->preempt, &held);
	if (err || !judge_seals(prober, counter_seal, pinned_cpu, &finding)) {
		prober->counts.nr_unread++;
		return err;
	}
	ask_witnesses(prober, &held, &finding);
	add_finding(&prober->counts, &finding);
	(void)preempt_follow(prober->preempt, &prober->followed, found_cpu(prober));
	return 0;
}

/* Sleep until the next look. Returns the time at which it begins. */
static uint64_t pause_look(struct prober *prober)
{
	const uint64_t pause_ns =
		LEAST_PAUSE_NS + random_below(prober, MOST_PAUSE_NS - LEAST_PAUSE_NS);

	preempt_aim(prober->preempt, &prober->followed, prober->next_ns);
	clock_sleep_until(prober->next_ns);
	prober->next_ns = clock_now_ns() + pause_ns;
	preempt_set_next(prober->preempt, prober->next_ns);
	return clock_now_ns();
}

/*
 * Take nr_looks looks, or as many as fit into the time. Returns 0, or -ESRCH if the target ends, or
 * announces no thread for PATIENCE_NS.
 */
static int take_looks(struct prober *prober, uint64_t nr_looks, double seconds)
{
	static const uint32_t sizes[] = {1, 8, 32, 128};
	uint64_t begin_ns = clock_now_ns();
	const uint64_t end_ns = begin_ns + (uint64_t)(seconds * (double)NS_PER_S);
	uint64_t patient_ns = begin_ns + PATIENCE_NS;
	uint32_t nr_blocks = 1;

	for (uint64_t i = 0; prober->counts.nr_looks < nr_looks && begin_ns < end_ns; i++) {
		if (i % EPISODE_LOOKS == 0)
			nr_blocks = sizes[random_below(prober, sizeof(sizes) / sizeof(*sizes))];
		begin_ns = pause_look(prober);
		if (take_thread(prober) && !take_look(prober, nr_blocks)) {
			patient_ns = begin_ns + PATIENCE_NS;
		} else if (begin_ns > patient_ns ||
			   !process_has_thread(&prober->process, prober->process.pid)) {
			return -ESRCH;
		}
	}
	return 0;
}

/* Output. */

static void print_verdicts(const char *key, const char *const *names,
			   const struct verdicts *verdicts, int nr)
{
	(void)printf(", \"%s\": {", key);
	for (int i = 0; i < nr; i++)
		(void)printf("%s\"%s\": {\"asked\": %lu, \"proven\": %lu, \"wrong\": %lu}",
			     i ? ", " : "", names[i], verdicts[i].nr_asked, verdicts[i].nr_proven,
			     verdicts[i].nr_wrong);
	(void)printf("}");
}

static void print_counts(const struct counts *counts)
{
	const char *separator = "";

	(void)printf("{\"looks\": %lu, \"unread\": %lu, \"moved\": %lu, \"slept\": %lu, "
		     "\"threads\": %lu, \"kernel\": %lu",
		     counts->nr_looks, counts->nr_unread, counts->nr_moved, counts->nr_slept,
		     counts->nr_threads, counts->nr_kernel);
	print_verdicts("witnesses", witness_names, counts->witnesses, NR_WITNESSES);
	print_verdicts("weak_rules", weak_rule_names, counts->weak_rules, NR_WEAK_RULES);
	(void)printf(", \"pairs\": {");
	for (int i = 0; i < NR_WITNESSES; i++)
		for (int j = 0; j < NR_WITNESSES; j++) {
			if (i == j)
				continue;
			(void)printf("%s\"%s, not %s\": {\"stood\": %lu, \"moved\": %lu}",
				     separator, witness_names[i], witness_names[j],
				     counts->pairs[i][j][0], counts->pairs[i][j][1]);
			separator = ", ";
		}
	(void)printf("}, \"disagreements\": {");
	for (int i = 0; i < NR_DISAGREEMENTS; i++)
		(void)printf("%s\"%s\": %lu", i ? ", " : "", disagreement_names[i],
			     counts->disagreements[i]);
	(void)printf("}}\n");
}

/* Beginning and end. */

static const struct proofs_board *open_board(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *board;

	if (fd < 0)
		return NULL;
	board = mmap(NULL, sizeof(struct proofs_board), PROT_READ, MAP_SHARED, fd, 0);
	return board == MAP_FAILED ? NULL : board;
}

static int run(struct prober *prober, pid_t pid, uint64_t nr_looks, double seconds,
	       struct message *reterr)
{
	int err = process_open(pid, &prober->process, reterr);

	if (err)
		return err;
	live_memory_init(&prober->live, &prober->process);
	live_images_init(&prober->images, &prober->process);
	look_memory_init(&prober->look, &prober->live.memory);
	prober->means.process = &prober->process;
	err = preempt_create(&prober->preempt);
	if (!err)
		err = take_looks(prober, nr_looks, seconds);
	preempt_destroy(prober->preempt);
	close_witnesses(prober);
	look_memory_done(&prober->look);
	process_close(&prober->process);
	return err;
}

int main(int argc, char **argv)
{
	struct prober prober = {.process = PROCESS_CLOSED, .seed = 1};
	struct message message = {0};
	long nr_looks = DEFAULT_LOOKS;
	double seconds = MAX_SECONDS;
	int option, err;

	while ((option = getopt(argc, argv, "n:d:")) != -1) {
		if (option == 'n')
			nr_looks = strtol(optarg, NULL, 10);
		else if (option == 'd')
			seconds = strtod(optarg, NULL);
		else
			return 2;
	}
	if (argc - optind != 2 || nr_looks < 1 || nr_looks > MAX_LOOKS ||
	    !(seconds > 0 && seconds <= MAX_SECONDS)) {
		(void)fputs("usage: proofs [-n LOOKS] [-d SECONDS] PID BOARD\n", stderr);
		return 2;
	}
	prober.board = open_board(argv[optind + 1]);
	if (!prober.board) {
		perror(argv[optind + 1]);
		return 1;
	}
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	err = run(&prober, (pid_t)strtol(argv[optind], NULL, 10), (uint64_t)nr_looks, seconds,
		  &message);
	if (err) {
		(void)fprintf(stderr, "proofs: %s\n",
			      message.text[0] ? message.text : strerror(-err));
		return 1;
	}
	print_counts(&prober.counts);
	return 0;
}
