/* SPDX-License-Identifier: MIT */
/*
 * Replaces interrupts.c, interrupts_process.c and what they use where pysample was built without
 * libbpf, clang or bpftool.
 */
#include <errno.h>
#include <stddef.h>

#include "sampler/bpf/interrupts.h"
#include "sampler/bpf/interrupts_process.h"

/* NOLINTBEGIN(misc-unused-parameters) */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr)
{
	message_set(reterr, "this pysample was built without BPF (meson: libbpf, clang or bpftool "
			    "was missing)");
	return -ENOTSUP;
}

/* The functions below are only called with NULL, as interrupts_open() always fails. */

void interrupts_close(struct interrupts *interrupts)
{
}

bool interrupts_have_options(const struct interrupts *interrupts,
			     const struct interrupts_options *options)
{
	return false;
}

int interrupts_program_fd(const struct interrupts *interrupts)
{
	return -1;
}

bool interrupts_use_cpus(const struct interrupts *interrupts)
{
	return false;
}

uint64_t interrupts_period_ns(const struct interrupts *interrupts)
{
	return 0;
}

int interrupts_wake_fd(const struct interrupts *interrupts)
{
	return -1;
}

void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *sums)
{
}

int interrupts_process_attach(struct interrupts *interrupts,
			      const struct interrupts_process_options *options,
			      struct interrupts_process **ret_process, struct message *reterr)
{
	return -ENOTSUP;
}

void interrupts_process_detach(struct interrupts_process *process)
{
}

int interrupts_process_settle(struct interrupts_process *process)
{
	(void)process;
	return 0;
}

int interrupts_process_use_cpus(const struct interrupts_process *process)
{
	return -ENOTSUP;
}

struct interrupts *interrupts_process_program(const struct interrupts_process *process)
{
	return NULL;
}

int interrupts_process_enable(struct interrupts_process *process, bool is_on)
{
	return -ENOTSUP;
}

void interrupts_process_set_threads(struct interrupts_process *process,
				    struct interrupts_thread *threads, uint32_t nr_threads)
{
}

void interrupts_process_forget_code(const struct interrupts_process *process, uint64_t code_addr)
{
}

void interrupts_process_ignore_fault(const struct interrupts_process *process, uint64_t addr)
{
	(void)process;
	(void)addr;
}

void interrupts_process_set_code_type(const struct interrupts_process *process,
				      uint64_t code_type_addr)
{
}

void interrupts_process_drain(struct interrupts_process *process)
{
}

uint64_t interrupts_process_nr_periods(const struct interrupts_process *process)
{
	return 0;
}

uint64_t interrupts_process_take_lost(struct interrupts_process *process)
{
	return 0;
}

/* NOLINTEND(misc-unused-parameters) */
