/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_notes.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "tests/support/made_core.h"

/* The part of struct elf_prstatus that is read, with more registers than any machine has. */
struct prstatus {
	int32_t info[3];
	int16_t signal;
	uint64_t sets[2];
	int32_t pids[4];
	uint64_t times[8];
	uint64_t registers[34];
};

static struct prstatus make_prstatus(int tid, int signal)
{
	struct prstatus status = {.signal = (int16_t)signal, .pids = {tid}};

	for (size_t i = 0; i < 34; i++)
		status.registers[i] = 100 + i;
	return status;
}

static void add_thread(struct made_core *file, int tid, int signal)
{
	struct prstatus status = make_prstatus(tid, signal);

	made_core_add_note(file, "CORE", NT_PRSTATUS, &status, sizeof(status));
}

/* The notes in the first size_bytes of a file, for this machine; core_notes_done() them. */
static struct core_notes read_cut(const struct made_core *file, uint16_t machine, size_t size_bytes)
{
	cleanup_close int fd = made_core_write_cut(file, size_bytes);
	struct core_segments segments = {.nr_notes = 0};
	struct core_notes notes = {.nr_threads = 0};
	struct file_blocks blocks;

	cr_assert(zero(int, file_blocks_init(&blocks, fd)));
	cr_assert(zero(int, core_segments_read(&blocks, size_bytes, &segments, NULL)));
	cr_assert(zero(int, core_notes_read(&blocks, &segments, machine, &notes)));
	core_segments_done(&segments);
	file_blocks_done(&blocks);
	return notes;
}

static struct core_notes read_all(const struct made_core *file, uint16_t machine)
{
	return read_cut(file, machine, file->size_bytes);
}

Test(core_notes, reads_registers_of_threads)
{
	static const struct {
		uint16_t machine;
		uint64_t pc;
		uint64_t sp;
		uint64_t thread_pointer;
		uint64_t last_register;
		bool has_pthread_below; /* the thread pointer */
	} cases[] = {
		{EM_X86_64, 116, 119, 121, 0, false},
		{EM_AARCH64, 132, 131, 77, 133, true},
	};
	struct made_core file = MADE_CORE_EMPTY;
	uint64_t tls[2] = {77, 78};

	add_thread(&file, 11, SIGABRT);
	made_core_add_note(&file, "LINUX", NT_ARM_TLS, tls, sizeof(tls));
	made_core_add_note(&file, "LINUX", NT_X86_XSTATE, tls, sizeof(tls));
	add_thread(&file, 12, 0);
	made_core_add_note(&file, "CORE", NT_ARM_TLS, tls, sizeof(tls)); /* not the kernel's */
	for (size_t i = 0; i < 2; i++) {
		struct core_notes notes = read_all(&file, cases[i].machine);

		cr_assert(eq(sz, notes.nr_threads, 2));
		cr_expect(eq(int, notes.threads[0].tid, 11));
		cr_expect(eq(int, notes.threads[0].signal, SIGABRT));
		cr_expect(eq(u64, notes.threads[0].pc_addr, cases[i].pc));
		cr_expect(eq(u64, notes.threads[0].sp_addr, cases[i].sp));
		cr_expect(eq(u64, notes.threads[0].thread_pointer, cases[i].thread_pointer));
		cr_expect(eq(u64, notes.threads[0].registers[0], 100));
		cr_expect(eq(u64, notes.threads[0].registers[33], cases[i].last_register));
		cr_expect(eq(int, notes.max_pthread_bytes > 0, cases[i].has_pthread_below));
		cr_expect(eq(int, notes.threads[1].tid, 12));
		cr_expect(eq(u64, notes.threads[1].thread_pointer, i == 0 ? 121 : 0));
		cr_expect(not(notes.is_incomplete));
		core_notes_done(&notes);
	}
}

static void expect_death(const char *name, const struct core_death *got,
			 const struct core_death *want)
{
	cr_expect(eq(int, got->signal, want->signal), "%s", name);
	cr_expect(eq(int, got->code, want->code), "%s", name);
	cr_expect(eq(int, got->has_addr, want->has_addr), "%s", name);
	cr_expect(eq(u64, got->addr, want->addr), "%s", name);
	cr_expect(eq(int, got->has_sender, want->has_sender), "%s", name);
	cr_expect(eq(int, got->sender_pid, want->sender_pid), "%s", name);
	cr_expect(eq(u32, got->sender_uid, want->sender_uid), "%s", name);
}

Test(core_notes, reads_the_cause_of_death)
{
	enum { NONE = 1000 };

	static const struct {
		const char *name;
		int siginfo_signal; /* NONE: no NT_SIGINFO */
		int siginfo_code;
		int thread_signal;
		struct core_death expected;
	} cases[] = {
		{"a fault",
		 SIGSEGV,
		 SEGV_MAPERR,
		 SIGSEGV,
		 {.signal = SIGSEGV, .code = SEGV_MAPERR, .has_addr = true, .addr = 0x700000003}},
		{"a fault of no address",
		 SIGSEGV,
		 SI_KERNEL,
		 SIGSEGV,
		 {.signal = SIGSEGV, .code = SI_KERNEL}},
		{"abort()",
		 SIGABRT,
		 SI_TKILL,
		 SIGABRT,
		 {.signal = SIGABRT,
		  .code = SI_TKILL,
		  .has_sender = true,
		  .sender_pid = 3,
		  .sender_uid = 7}},
		{"kill -SEGV",
		 SIGSEGV,
		 SI_USER,
		 SIGSEGV,
		 {.signal = SIGSEGV,
		  .code = SI_USER,
		  .has_sender = true,
		  .sender_pid = 3,
		  .sender_uid = 7}},
		{"a limit", SIGXCPU, SI_KERNEL, SIGXCPU, {.signal = SIGXCPU, .code = SI_KERNEL}},
		{"no NT_SIGINFO", NONE, 0, SIGBUS, {.signal = SIGBUS}},
		{"a debugger attached", SIGSTOP, SI_USER, 0, {.signal = 0}},
		{"a debugger, no NT_SIGINFO", NONE, 0, 0, {.signal = 0}},
		{"no core is written for it", NONE, 0, SIGKILL, {.signal = 0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_core file = MADE_CORE_EMPTY;
		int32_t siginfo[32] = {cases[i].siginfo_signal, 0, cases[i].siginfo_code, 0, 3, 7};

		add_thread(&file, 1, cases[i].thread_signal);
		if (cases[i].siginfo_signal != NONE)
			made_core_add_note(&file, "CORE", NT_SIGINFO, siginfo, sizeof(siginfo));
		siginfo[0] = SIGILL; /* another thread's */
		if (cases[i].siginfo_signal != NONE)
			made_core_add_note(&file, "CORE", NT_SIGINFO, siginfo, sizeof(siginfo));
		struct core_notes notes = read_all(&file, EM_X86_64);

		expect_death(cases[i].name, &notes.death, &cases[i].expected);
		core_notes_done(&notes);
	}
}

Test(core_notes, reads_process_information)
{
	struct made_core file = MADE_CORE_EMPTY;
	uint64_t auxv[] = {AT_PHDR,	    1, AT_PHNUM,  2, AT_ENTRY,	3, AT_BASE, 4, 12345, 6,
			   AT_SYSINFO_EHDR, 7, AT_RANDOM, 8, AT_EXECFN, 9, AT_NULL, 0};
	char psinfo[136] = "";

	memcpy(psinfo + 16, (uint32_t[]){1000, 1001, 4242, 4241}, 16);
	memset(psinfo + 40, 'n', 16); /* neither text is terminated */
	memset(psinfo + 56, 'a', 78);
	memcpy(psinfo + 56 + 78, "\xe2\x82", 2); /* a truncated UTF-8 character */
	made_core_add_note(&file, "CORE", NT_PRPSINFO, psinfo, sizeof(psinfo) - 1);
	made_core_add_note(&file, "CORE", NT_PRPSINFO, psinfo, sizeof(psinfo));
	made_core_add_note(&file, "CORE", NT_AUXV, auxv, sizeof(auxv) - 8);
	struct core_notes notes = read_all(&file, EM_X86_64);

	cr_expect(notes.psinfo.is_known);
	cr_expect(eq(int, notes.psinfo.pid, 4242));
	cr_expect(eq(int, notes.psinfo.parent_pid, 4241));
	cr_expect(eq(u32, notes.psinfo.uid, 1000));
	cr_expect(eq(u32, notes.psinfo.gid, 1001));
	cr_expect(zero(int, strcmp(notes.psinfo.name, "nnnnnnnnnnnnnnnn")));
	cr_expect(eq(sz, strlen(notes.psinfo.arguments), 80));
	cr_expect(eq(u64, notes.auxv.program_headers_addr, 1));
	cr_expect(eq(u64, notes.auxv.entry_addr, 3));
	cr_expect(eq(u64, notes.auxv.loader_addr, 4));
	cr_expect(eq(u64, notes.auxv.vdso_addr, 7));
	cr_expect(eq(u64, notes.auxv.random_addr, 8));
	cr_expect(not(notes.is_incomplete));
	core_notes_done(&notes);
}

static void unchanged(struct made_core *file)
{
	(void)file;
}

/* The header of the second note. */
static Elf64_Nhdr *second_note(struct made_core *file)
{
	return (Elf64_Nhdr *)(void *)(file->bytes + MADE_CORE_NOTES_OFFSET + sizeof(Elf64_Nhdr) +
				      8 + sizeof(struct prstatus));
}

static void no_notes(struct made_core *file)
{
	file->segments[0].p_type = PT_NULL;
}

static void segment_too_long(struct made_core *file)
{
	file->segments[0].p_filesz = 1 << 30;
}

static void segment_too_short(struct made_core *file)
{
	file->segments[0].p_filesz -= 8;
}

static void long_name(struct made_core *file)
{
	second_note(file)->n_namesz = UINT32_MAX;
}

static void long_desc(struct made_core *file)
{
	second_note(file)->n_descsz = UINT32_MAX;
}

static void short_desc(struct made_core *file)
{
	second_note(file)->n_descsz = 200;
	second_note(file)->n_type = NT_PRSTATUS;
}

static void hole(struct made_core *file)
{
	memset(second_note(file), 0, 400);
}

static void other_owner(struct made_core *file)
{
	memcpy(second_note(file) + 1, "BSDS", 4);
}

static void endless(struct made_core *file)
{
	file->segments[0].p_filesz = INT64_MAX / 2;
}

Test(core_notes, damaged_notes_are_read_in_bounds)
{
	static const struct {
		const char *name;
		void (*change)(struct made_core *file);
		size_t nr_threads;
		bool is_incomplete;
	} cases[] = {
		{"whole", unchanged, 3, false},
		{"no notes", no_notes, 0, true},
		{"a segment that goes beyond", segment_too_long, 3, true},
		{"a segment that ends in a note", segment_too_short, 2, true},
		{"a name that is too long", long_name, 1, true},
		{"a note that is too long", long_desc, 1, true},
		{"a hole", hole, 1, true},
		{"an unknown owner", other_owner, 2, false},
		{"registers that are not there", short_desc, 1, true},
		{"a segment without an end", endless, 3, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_core file = MADE_CORE_EMPTY;

		for (int tid = 1; tid <= 3; tid++)
			add_thread(&file, tid, 0);
		cases[i].change(&file);
		struct core_notes notes = read_all(&file, EM_X86_64);

		cr_expect(eq(sz, notes.nr_threads, cases[i].nr_threads), "%s", cases[i].name);
		cr_expect(eq(int, notes.is_incomplete, cases[i].is_incomplete), "%s",
			  cases[i].name);
		core_notes_done(&notes);
	}
}

/* However the file is cut, all complete notes are read and nothing else. */
Test(core_notes, truncated_notes_are_read_up_to_the_cut)
{
	struct made_core file = MADE_CORE_EMPTY;
	size_t note_bytes = sizeof(Elf64_Nhdr) + 8 + sizeof(struct prstatus);

	for (int tid = 1; tid <= 3; tid++)
		add_thread(&file, tid, 0);
	for (size_t size = MADE_CORE_NOTES_OFFSET; size < MADE_CORE_NOTES_OFFSET + 3 * note_bytes;
	     size += 4) {
		struct core_notes notes = read_cut(&file, EM_AARCH64, size);

		cr_expect(eq(sz, notes.nr_threads, (size - MADE_CORE_NOTES_OFFSET) / note_bytes),
			  "%zu", size);
		cr_expect(notes.is_incomplete);
		core_notes_done(&notes);
	}
}
