/* SPDX-License-Identifier: MIT */
/*
 * The notes of a core file: the process, its threads, and why the core was written.
 *
 * Source: the System V ABI, chapter "Note Section"; struct elf_prstatus and elf_prpsinfo in
 * include/linux/elfcore.h and elfcore-compat.h, siginfo_t in sigaction(2), getauxval(3); core(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/core/core_segments.h"
#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"

/* The general registers are 27 words on x86-64 and 34 words on aarch64. */
#define CORE_MAX_REGISTERS 34

/*
 * Limit on threads; the kernel allows 4 Mi in all processes together. Further ones are dropped
 * (is_incomplete).
 */
#define CORE_MAX_THREADS (1u << 17)

/*
 * Limit on notes; the kernel writes three to eight per thread. Further ones are not read
 * (is_incomplete).
 */
#define CORE_MAX_NOTES ((uint64_t)16 * CORE_MAX_THREADS)

/* The strings of struct elf_prpsinfo, plus a NUL. */
#define CORE_NAME_MAX_BYTES	 17
#define CORE_ARGUMENTS_MAX_BYTES 81

struct core_thread {
	/* In its own PID namespace if the kernel wrote the core, in the debugger's otherwise. */
	pid_t tid;
	int signal; /* its current signal; 0: none */
	/* At most max_pthread_bytes above pthread_self() of glibc and musl; 0: unknown. */
	remote_addr thread_pointer;
	remote_addr pc_addr;
	remote_addr sp_addr;
	/*
	 * In the order of struct user_regs_struct of sys/user.h (r15 first) on x86-64, and of
	 * struct user_pt_regs (x0 to x30, sp, pc, pstate) on aarch64.
	 */
	uint64_t registers[CORE_MAX_REGISTERS];
};

/* Why the core was written. signal 0: the process continued, and the core is a snapshot of it. */
struct core_death {
	int signal;
	int code;	 /* si_code; 0 if unknown */
	bool has_addr;	 /* addr is what a fault could not access or execute */
	bool has_sender; /* a process sent the signal: kill(2), tgkill(2), sigqueue(3) */
	remote_addr addr;
	pid_t sender_pid;
	uid_t sender_uid;
};

/* Size of a siginfo_t, the same for all signals (sigaction(2)). */
#define CORE_SIGINFO_BYTES 128

/* Decode a siginfo_t of CORE_SIGINFO_BYTES bytes. */
struct core_death core_death_of_siginfo(const void *siginfo);

/* Whether the signal is a fault of a thread and carries an address (sigaction(2)). */
bool core_signal_is_fault(int signal);

/*
 * NT_PRPSINFO. The process controls the strings, which may contain any byte; they are terminated.
 */
struct core_psinfo {
	bool is_known;
	pid_t pid;
	pid_t parent_pid;
	uid_t uid;
	gid_t gid;
	char name[CORE_NAME_MAX_BYTES];		  /* of the main thread; up to 15 bytes */
	char arguments[CORE_ARGUMENTS_MAX_BYTES]; /* separated by blanks; up to 79 bytes */
};

/* NT_AUXV: what the kernel passed to the program at its start; 0 if missing. */
struct core_auxv {
	remote_addr program_headers_addr; /* AT_PHDR, in the executable */
	remote_addr entry_addr;		  /* AT_ENTRY, in the executable */
	remote_addr loader_addr;	  /* AT_BASE, the start of the dynamic loader */
	remote_addr vdso_addr;		  /* AT_SYSINFO_EHDR, the start of the vDSO */
	remote_addr random_addr;	  /* AT_RANDOM, in the main thread's stack */
};

/* A zero-initialised struct has no notes. */
struct core_notes {
	/* In file order. The first is the one that died, or the debugger's current thread. */
	struct core_thread *threads;
	uint32_t nr_threads, max_threads;
	/*
	 * 0 on x86-64, where pthread_self() is the thread pointer. On aarch64 it is below it by the
	 * size of the C library's struct pthread, which depends on its version.
	 */
	uint32_t max_pthread_bytes;
	struct core_death death;
	struct core_psinfo psinfo;
	struct core_auxv auxv;
	struct maps files;    /* NT_FILE; sorted */
	size_t nr_files_lost; /* mappings of NT_FILE that were cut off or malformed */
	bool is_incomplete;   /* notes are missing, cut off, malformed or beyond a limit */
};

/*
 * Read the notes of a core of this ELF machine (EM_X86_64 or EM_AARCH64), as far as they are
 * present and well-formed. Returns 0 or -ENOMEM. core_notes_done() accepts a zero-initialised
 * struct.
 */
int core_notes_read(struct file_blocks *file, const struct core_segments *segments,
		    uint16_t machine, struct core_notes *ret_notes);
void core_notes_done(struct core_notes *notes);
