/* SPDX-License-Identifier: MIT */
/* Replaces interrupts.c where pysample was built without libbpf, clang or bpftool. */
#include <errno.h>
#include <stddef.h>

#include "sampler/bpf/interrupts.h"

int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr)
{
	interrupts_close(options->reused);
	*ret_interrupts = NULL;
	message_set(reterr, "this pysample was built without BPF (meson: libbpf, clang or bpftool "
			    "was missing)");
	return -ENOTSUP;
}

/* The functions below are only called with NULL, as interrupts_open() always fails. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* NOLINTBEGIN(misc-unused-parameters) */

void interrupts_close(struct interrupts *interrupts)
{
}

int interrupts_program_fd(const struct interrupts *interrupts)
{
	return -1;
}

uint64_t interrupts_period_ns(const struct interrupts *interrupts)
{
	return 0;
}

int interrupts_enable(struct interrupts *interrupts, bool is_on)
{
	return -ENOTSUP;
}

int interrupts_set_thread(struct interrupts *interrupts, uint32_t own_tid,
			  const struct interrupt_thread *thread)
{
	return -ENOTSUP;
}

void interrupts_forget_code(struct interrupts *interrupts, uint64_t code_addr)
{
}

void interrupts_ignore_fault(struct interrupts *interrupts, uint64_t addr)
{
	(void)interrupts;
	(void)addr;
}

void interrupts_set_code_type(struct interrupts *interrupts, uint64_t code_type_addr)
{
}

int interrupts_wake_fd(const struct interrupts *interrupts)
{
	(void)interrupts;
	return -1;
}

int interrupts_drain(struct interrupts *interrupts, const struct interrupts_handler *handler)
{
	return -ENOTSUP;
}

void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *ret_counts)
{
}

/* NOLINTEND(misc-unused-parameters) */
