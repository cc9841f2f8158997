/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_pool.h"

#include <errno.h>
#include <sys/stat.h>

void interrupts_pool_close(struct interrupts_pool *pool)
{
	while (pool && pool->nr_programs)
		interrupts_close(pool->programs[--pool->nr_programs]);
}

/* Find the program with the options, or load it. Errors of interrupts_open(). */
static int find_program(struct interrupts_pool *pool, const struct interrupts_options *options,
			struct interrupts **ret_interrupts, struct message *reterr)
{
	int err;

	for (uint32_t i = 0; i < pool->nr_programs; i++) {
		if (interrupts_have_options(pool->programs[i], options)) {
			*ret_interrupts = pool->programs[i];
			return 0;
		}
	}
	if (pool->nr_programs == MAX_INTERRUPTS_PROGRAMS) {
		message_set(reterr,
			    "there is a BPF program for each of %d other builds of CPython, "
			    "which is the limit",
			    MAX_INTERRUPTS_PROGRAMS);
		return -ENOTSUP;
	}
	err = interrupts_open(options, ret_interrupts, reterr);
	if (!err)
		pool->programs[pool->nr_programs++] = *ret_interrupts;
	return err;
}

int interrupts_pool_attach(struct interrupts_pool *pool, const struct interrupts_options *options,
			   const struct interrupts_process_options *process_options,
			   struct interrupts_process **ret_process, struct message *reterr)
{
	const uint32_t nr_before = pool->nr_programs;
	struct interrupts_options wanted = *options;
	struct interrupts *interrupts;
	struct stat status;
	int err;

	if (fstatat(process_options->process->proc_fd, "ns/pid", &status, 0))
		return -errno;
	wanted.layout.namespace_dev = status.st_dev;
	wanted.layout.namespace_ino = status.st_ino;
	err = find_program(pool, &wanted, &interrupts, reterr);
	if (err)
		return err;
	err = interrupts_process_attach(interrupts, process_options, ret_process, reterr);
	/* Where events are refused, a program is of no use. */
	if ((err == -EPERM || err == -EMFILE) && pool->nr_programs > nr_before)
		interrupts_close(pool->programs[--pool->nr_programs]);
	return err;
}

void interrupts_pool_count(const struct interrupts_pool *pool, struct interrupt_counts *ret_counts)
{
	*ret_counts = (struct interrupt_counts){0};
	for (uint32_t i = 0; i < pool->nr_programs; i++)
		interrupts_count(pool->programs[i], ret_counts);
}

bool interrupts_pool_use_cpus(const struct interrupts_pool *pool)
{
	for (uint32_t i = 0; i < pool->nr_programs; i++)
		if (interrupts_use_cpus(pool->programs[i]))
			return true;
	return false;
}
