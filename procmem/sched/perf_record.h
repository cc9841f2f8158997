/* SPDX-License-Identifier: MIT */
/*
 * What the kernel writes of a thread that it has interrupted: one record of a ring buffer of
 * perf_event_open(2), of an event with PERF_RECORD_SAMPLE_TYPE or PERF_RECORD_KERNEL_SAMPLE_TYPE.
 *
 * Source: perf_event_open(2), "MMAP layout"; arch/x86/include/uapi/asm/perf_regs.h and
 * arch/arm64/include/uapi/asm/perf_regs.h for the registers.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_RECORD_SAMPLE_TYPE                                                          \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_STACK_USER)

/* The same with the addresses of the kernel's functions that run. */
#define PERF_RECORD_KERNEL_SAMPLE_TYPE (PERF_RECORD_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN)

/* The registers that are asked for, one bit each; a record has them from the lowest bit on. */
#if defined(__x86_64__)
/* ax, bx, cx, dx, si, di, bp, sp, ip; r8 to r15 */
#define PERF_RECORD_REGISTERS	 0xff01ffull
#define NR_PERF_RECORD_REGISTERS 17
#elif defined(__aarch64__)
/* x0 to x30, sp, pc */
#define PERF_RECORD_REGISTERS	 0x1ffffffffull
#define NR_PERF_RECORD_REGISTERS 33
#else
#error "the registers of this architecture are not known"
#endif

/* A record's size is a u16; the fields around the stack take less than what is left. */
#define PERF_RECORD_MAX_BYTES	    65536
#define PERF_RECORD_MAX_STACK_BYTES 65024

/*
 * So many of the innermost functions of the kernel are kept; it tells no more unless
 * kernel.perf_event_max_stack, 127, was changed.
 */
#define PERF_RECORD_MAX_KERNEL_FRAMES 127

/* A thread as it was when it was interrupted. What it points to is borrowed from the record. */
struct perf_dump {
	pid_t tid;				      /* in our PID namespace */
	uint64_t time_ns;			      /* by the clock of the event */
	uint64_t count_ns;			      /* of the event: what it has used so far */
	uint64_t registers[NR_PERF_RECORD_REGISTERS]; /* of the program, also if the kernel ran */
	const uint8_t *stack;			      /* from the stack pointer on */
	size_t nr_stack_bytes;
	/* Innermost first: where it was in the kernel, then return addresses; none of a program. */
	uint64_t kernel_addrs[PERF_RECORD_MAX_KERNEL_FRAMES];
	uint32_t nr_kernel_addrs;
};

/*
 * Take a record of type PERF_RECORD_SAMPLE apart, whose header is at bytes, of an event with
 * that sample_type. 0; -ENOENT: it has no registers or no stack, as of a thread that is ending, or
 * of a 32-bit program; -EBADMSG.
 */
int perf_record_parse(const uint8_t *bytes, size_t nr_bytes, uint64_t sample_type,
		      struct perf_dump *ret_dump);
