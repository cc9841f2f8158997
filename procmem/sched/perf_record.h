/* SPDX-License-Identifier: MIT */
/*
 * Parses the copy that the kernel writes of an interrupted thread: one record in the ring buffer
 * of a perf_event_open(2) event with PERF_RECORD_SAMPLE_TYPE or PERF_RECORD_KERNEL_SAMPLE_TYPE.
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

/* The same plus the addresses of the kernel functions on the stack. */
#define PERF_RECORD_KERNEL_SAMPLE_TYPE (PERF_RECORD_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN)

/* The requested registers, one bit each. A record holds them from the lowest bit up. */
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

/* A record's size is a u16; the fields around the stack fit into the difference. */
#define PERF_RECORD_MAX_BYTES	    65536
#define PERF_RECORD_MAX_STACK_BYTES 65024

/*
 * Limit on the kernel frames kept, innermost first. The kernel reports no more, unless
 * kernel.perf_event_max_stack (127) was raised.
 */
#define PERF_RECORD_MAX_KERNEL_FRAMES 127

/* A thread at the moment of the interrupt. Pointers are borrowed from the record. */
struct perf_copy {
	pid_t tid;	   /* in our PID namespace */
	uint64_t time_ns;  /* by the clock of the event */
	uint64_t count_ns; /* the event's count: CPU time used so far */
	/* user-mode registers, even if the thread was in the kernel */
	uint64_t registers[NR_PERF_RECORD_REGISTERS];
	const uint8_t *stack; /* from the stack pointer up */
	size_t nr_stack_bytes;
	/*
	 * Kernel frames, innermost first: the instruction pointer, then return addresses; no user
	 * frames.
	 */
	uint64_t kernel_addrs[PERF_RECORD_MAX_KERNEL_FRAMES];
	uint32_t nr_kernel_addrs;
};

/*
 * Parse a record of type PERF_RECORD_SAMPLE, of an event with this sample_type. bytes points to
 * its header. Returns 0; -ENOENT if it has no registers or no stack, as for a thread that is
 * ending or a 32-bit program; or -EBADMSG.
 */
int perf_record_parse(const uint8_t *bytes, size_t nr_bytes, uint64_t sample_type,
		      struct perf_copy *ret_copy);
