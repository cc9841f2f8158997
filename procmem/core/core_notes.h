/* SPDX-License-Identifier: MIT */
/*
 * What the notes of a core file tell of the process, its threads and its end.
 *
 * Source: the System V ABI, chapter "Note Section"; struct elf_prstatus and elf_prpsinfo in
 * include/linux/elfcore.h and elfcore-compat.h, siginfo_t in sigaction(2), getauxval(3);
 * core(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/core/core_segments.h"
#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"

/* The general registers of x86-64 are 27 words, those of aarch64 34. */
#define CORE_MAX_REGISTERS 34

/* More threads than this are not listed; the kernel allows 4 Mi of all processes together. */
#define CORE_MAX_THREADS (1u << 17)

/* More notes than this are not looked at; the kernel writes three to eight of a thread. */
#define CORE_MAX_NOTES ((uint64_t)16 * CORE_MAX_THREADS)

/* The names of struct elf_prpsinfo, and a NUL. */
#define CORE_NAME_MAX_BYTES	 17
#define CORE_ARGUMENTS_MAX_BYTES 81

struct core_thread {
	/* In its own PID namespace if the kernel wrote the core, else in the debugger's. */
	pid_t tid;
	int signal;		    /* that it was given; 0: none */
	remote_addr thread_pointer; /* pthread_self() of glibc and musl; 0: not told */
	remote_addr pc_addr;
	remote_addr sp_addr;
	/*
	 * In the order of struct user_regs_struct of sys/user.h (r15 first) on x86-64, of
	 * struct user_pt_regs (x0 to x30, sp, pc, pstate) on aarch64.
	 */
	uint64_t registers[CORE_MAX_REGISTERS];
};

/* Why the core was written. signal 0: the process went on, this is a snapshot of it. */
struct core_death {
	int signal;
	int code;	 /* si_code; 0 if not told */
	bool has_addr;	 /* what it could not access or execute, of the signals of faults */
	bool has_sender; /* a process sent the signal: kill(2), tgkill(2), sigqueue(3) */
	remote_addr addr;
	pid_t sender_pid;
	uid_t sender_uid;
};

/* A siginfo_t, of any signal (sigaction(2)). */
#define CORE_SIGINFO_BYTES 128

/* What CORE_SIGINFO_BYTES bytes of one tell. */
struct core_death core_death_of_siginfo(const void *siginfo);

/* Whether the signal comes of what a thread did, and tells an address (sigaction(2)). */
bool core_signal_is_fault(int signal);

/* NT_PRPSINFO. The texts are what the process made of them: any bytes, terminated. */
struct core_psinfo {
	bool is_known;
	pid_t pid;
	pid_t parent_pid;
	uid_t uid;
	gid_t gid;
	char name[CORE_NAME_MAX_BYTES];		  /* the main thread's, 15 bytes */
	char arguments[CORE_ARGUMENTS_MAX_BYTES]; /* separated by blanks, 79 bytes */
};

/* NT_AUXV: what the kernel told the program when it began; 0 where it is not there. */
struct core_auxv {
	remote_addr program_headers_addr; /* AT_PHDR, in the executable */
	remote_addr entry_addr;		  /* AT_ENTRY, in the executable */
	remote_addr loader_addr;	  /* AT_BASE, where the dynamic loader begins */
	remote_addr vdso_addr;		  /* AT_SYSINFO_EHDR, where the vDSO begins */
	remote_addr random_addr;	  /* AT_RANDOM, in the main thread's stack */
};

/* Zero-initialised there are none. */
struct core_notes {
	/* In the order of the file: first the one that died, or that the debugger was at. */
	struct core_thread *threads;
	uint32_t nr_threads, max_threads;
	struct core_death death;
	struct core_psinfo psinfo;
	struct core_auxv auxv;
	struct maps files;    /* NT_FILE; sorted */
	size_t nr_files_lost; /* mappings of NT_FILE that were not whole or made no sense */
	bool is_cut;	      /* notes end before their segment does, or have none */
};

/*
 * Read the notes of a core of that ELF machine (EM_X86_64, EM_AARCH64): as many as there
 * are, and as far as they have the form they should have. 0 or -ENOMEM. core_notes_done()
 * accepts those that are zero.
 */
int core_notes_read(struct file_blocks *file, const struct core_segments *segments,
		    uint16_t machine, struct core_notes *ret_notes);
void core_notes_done(struct core_notes *notes);
