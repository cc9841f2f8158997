/* SPDX-License-Identifier: MIT */
#include "sampler/witness.h"

#include <errno.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <string.h>

#include "procmem/sched/cpu_pin.h"
#include "symbols/elf/image.h"
#include "symbols/elf/symtab.h"

/* The kernel refuses to register a smaller area. */
enum { MIN_RSEQ_BYTES = 20 };

/* Limit on the size of a thread's TLS. */
#define MAX_OFFSET (1 << 30)

/* Read the two variables of an image, if it has them. */
static void read_place(struct remote_memory *memory, const struct image *image, uint64_t load_bias,
		       struct rseq_place *ret_place)
{
	uint64_t offset_vaddr, size_vaddr, nr_bytes, word;
	uint32_t size_bytes;

	if (symtab_find(image, "__rseq_offset", &offset_vaddr, &nr_bytes) ||
	    symtab_find(image, "__rseq_size", &size_vaddr, &nr_bytes) ||
	    remote_memory_read(memory, size_vaddr + load_bias, &size_bytes, sizeof(size_bytes)) ||
	    remote_memory_read_u64(memory, offset_vaddr + load_bias, &word) ||
	    size_bytes < MIN_RSEQ_BYTES || (int64_t)word > MAX_OFFSET ||
	    (int64_t)word < -MAX_OFFSET)
		return;
	*ret_place = (struct rseq_place){
		.is_known = true,
		.cpu_id_offset = (int64_t)word + (int64_t)offsetof(struct rseq, cpu_id),
	};
}

struct rseq_place rseq_place_find(struct remote_memory *memory, const struct maps *maps,
				  struct image_source *images)
{
	struct rseq_place place = {.is_known = false};

#if !defined(__x86_64__)
	/*
	 * Only on x86-64 is the pthread_t the thread pointer; elsewhere it is below it. And only
	 * there does another CPU see the kernel's number before what the thread writes after it
	 * has moved: on aarch64 the two stores are not ordered.
	 */
	return place;
#endif
	for (size_t i = 0, end; !place.is_known && i < maps->nr_mappings; i = end) {
		const struct mapping *mapping = &maps->mappings[i];
		const char *name = strrchr(mapping->path, '/');
		struct image *image;
		uint64_t load_bias;

		end = maps_module_end(maps, i);
		/* The loader defines the two variables. */
		if (!mapping->inode || !name || strncmp(name, "/ld", strlen("/ld")) != 0 ||
		    image_source_open(images, mapping, &image))
			continue;
		if (!image_load_bias(image, mapping, &load_bias))
			read_place(memory, image, load_bias, &place);
		image_close(image);
	}
	return place;
}

static bool is_held(const cpu_set_t *held, uint32_t cpu)
{
	return cpu < CPU_SETSIZE && CPU_ISSET(cpu, held);
}

/* Open the thread's files, unless they are open. */
static int open_runs(struct witness *witness, const struct witness_means *means, pid_t tid)
{
	int err;

	if (witness->has_runs)
		return 0;
	if (!tid || !means->process)
		return -ENOTSUP;
	err = run_count_open(means->process, tid, &witness->runs);
	witness->has_runs = !err;
	return err;
}

static bool open_clock(struct witness *witness, const struct witness_means *means, pid_t tid)
{
	if (!tid || !means->process || cpu_clock_open(means->process, tid, &witness->clock))
		return false;
	if (witness->clock.kind == CPU_CLOCK_TASK) {
		cpu_clock_map(&witness->clock);
		return true;
	}
	cpu_clock_close(&witness->clock);
	return false;
}

void witness_open(const struct witness_means *means, uint64_t thread_pointer, pid_t tid,
		  struct witness *ret_witness)
{
	struct witness *witness = ret_witness;
	const bool has_rseq = means->rseq.is_known && thread_pointer;

	*witness = (struct witness){.cpu = CPU_NONE, .runs = RUN_COUNT_CLOSED};
	if ((means->prefers_clock || !has_rseq) && open_clock(witness, means, tid)) {
		witness->kind = WITNESS_CLOCK;
	} else if (has_rseq) {
		witness->kind = WITNESS_RSEQ;
		witness->cpu_id_addr = thread_pointer + (uint64_t)means->rseq.cpu_id_offset;
	} else if (!open_runs(witness, means, tid)) {
		witness->kind = WITNESS_RUNS;
	}
}

struct witness_proofs witness_probe(const struct witness_means *means, pid_t tid)
{
	struct witness witness = {.runs = RUN_COUNT_CLOSED};
	const struct witness_proofs proofs = {
		.has_rseq = means->rseq.is_known,
		.has_clock = open_clock(&witness, means, tid),
		.has_runs = !open_runs(&witness, means, tid),
	};

	witness_close(&witness);
	return proofs;
}

void witness_close(struct witness *witness)
{
	cpu_clock_close(&witness->clock);
	if (witness->has_runs)
		run_count_close(&witness->runs);
	*witness = (struct witness){.kind = WITNESS_NONE};
}

/* Read the clock, or the count; UINT64_MAX: it cannot be read, or there is none. */
static uint64_t read_number(struct witness *witness)
{
	uint64_t number;
	int err = -ENOTSUP;

	if (witness->kind == WITNESS_CLOCK)
		err = cpu_clock_read(&witness->clock, &number);
	else if (witness->kind == WITNESS_RUNS)
		err = run_count_read(&witness->runs, &number);
	return err ? UINT64_MAX : number;
}

int witness_begin(struct witness *witness, struct look_memory *look, const cpu_set_t *held)
{
	struct thread_stat now = {.cpu = CPU_NONE};

	if (witness->kind == WITNESS_RSEQ)
		return look_memory_seal(look, witness->cpu_id_addr, sizeof(uint32_t),
					&witness->seal);
	witness->before = read_number(witness);
	if (witness->kind != WITNESS_RUNS || witness->before == UINT64_MAX)
		return 0;
	/* Read the CPU after the count: then no earlier run is still in progress. */
	if (!run_count_read_stat(&witness->runs, &now))
		witness->cpu = now.cpu;
	if (!is_held(held, now.cpu))
		witness->before = UINT64_MAX;
	return 0;
}

void witness_end(struct witness *witness, const struct witness_means *means, pid_t tid)
{
	uint64_t nr_runs;

	witness->after = read_number(witness);
	if (witness->kind == WITNESS_CLOCK && means->ids_may_be_reused)
		witness->has_ended =
			open_runs(witness, means, tid) == -ESRCH ||
			(witness->has_runs && run_count_read(&witness->runs, &nr_runs));
	if (witness->has_ended)
		witness->after = UINT64_MAX;
}

bool witness_stood_still(struct witness *witness, const struct look_memory *look,
			 const cpu_set_t *held)
{
	if (witness->kind == WITNESS_RSEQ) {
		const struct look_seal *seal = look_memory_seal_at(look, witness->seal);
		const uint32_t first = field_u32(seal->first, 0);
		const uint32_t last = field_u32(seal->last, 0);

		if (!seal->is_read)
			return false;
		/* Negative: the area is not registered (yet). */
		witness->cpu = (int32_t)last < 0 ? CPU_NONE : last;
		return first == last && is_held(held, last);
	}
	/* It may have run since the count was read unless its CPU was held to the end. */
	if (witness->kind == WITNESS_RUNS && !is_held(held, witness->cpu))
		return false;
	return witness->before != UINT64_MAX && witness->before == witness->after;
}

uint64_t witness_cpu_ns(const struct witness *witness)
{
	return witness->kind == WITNESS_CLOCK && witness->before != UINT64_MAX ? witness->before + 1
									       : 0;
}

bool witness_has_run(const struct witness *witness)
{
	return witness->kind == WITNESS_CLOCK && witness->clock.page &&
	       !cpu_clock_stands(&witness->clock);
}

int witness_now(struct witness *witness, const struct witness_means *means, pid_t tid,
		struct thread_stat *ret_stat)
{
	int err = open_runs(witness, means, tid);

	return err ? err : run_count_read_stat(&witness->runs, ret_stat);
}
