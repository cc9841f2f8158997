/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_notes.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/core/core_file_note.h"
#include "procmem/memory.h"

/* Field offsets of struct elf_prstatus on 64-bit machines. */
enum {
	PRSTATUS_CURSIG_OFFSET = 12,
	PRSTATUS_PID_OFFSET = 32,
	PRSTATUS_REGISTERS_OFFSET = 112,
	PRSTATUS_MAX_BYTES = PRSTATUS_REGISTERS_OFFSET + CORE_MAX_REGISTERS * 8,
};

/* Likewise for struct elf_prpsinfo. */
enum {
	PSINFO_UID_OFFSET = 16,
	PSINFO_GID_OFFSET = 20,
	PSINFO_PID_OFFSET = 24,
	PSINFO_PARENT_PID_OFFSET = 28,
	PSINFO_NAME_OFFSET = 40,
	PSINFO_ARGUMENTS_OFFSET = 56,
	PSINFO_BYTES = 136,
};

/* Likewise for siginfo_t; the address of a fault shares its place with the sender. */
enum {
	SIGINFO_SIGNO_OFFSET = 0,
	SIGINFO_CODE_OFFSET = 8,
	SIGINFO_PID_OFFSET = 16,
	SIGINFO_UID_OFFSET = 20,
	SIGINFO_ADDR_OFFSET = 16,
};

/* A process gets about twenty pairs; more than 256 are not read. */
enum { AUXV_PAIR_BYTES = 16, AUXV_MAX_BYTES = 256 * AUXV_PAIR_BYTES };

/*
 * struct pthread has 1.8 to 2.3 KiB in glibc 2.28 to 2.43, and 0.2 in musl. Those of two threads are
 * further apart: each is at the end of its thread's stack, whose smallest size is larger.
 */
enum { AARCH64_MAX_PTHREAD_BYTES = 4096 };

/* Indexes of the registers of a machine that are needed by name. */
struct register_layout {
	uint16_t machine;
	uint16_t nr_registers;
	uint16_t pc_index;
	uint16_t sp_index;
	uint16_t thread_pointer_index; /* 0: not among them, but in its own note */
	uint16_t max_pthread_bytes;
};

static const struct register_layout layouts[] = {
	{EM_X86_64, .nr_registers = 27, .pc_index = 16, .sp_index = 19, .thread_pointer_index = 21},
	{EM_AARCH64, .nr_registers = 34, .pc_index = 32, .sp_index = 31,
	 .max_pthread_bytes = AARCH64_MAX_PTHREAD_BYTES},
};

struct note_reader {
	struct file_blocks *file;
	const struct register_layout *layout;
	uint64_t nr_left; /* notes that may still be read, of CORE_MAX_NOTES */
	bool has_files;	  /* an NT_FILE was read; it may be large, so only one is */
	struct core_notes notes;
};

struct note {
	uint32_t type;
	char owner[8];
	struct core_piece desc;
};

/* Threads. */

static struct core_thread *add_thread(struct core_notes *notes)
{
	struct core_thread *threads = array_reserve(notes->threads, notes->nr_threads + 1,
						    &notes->max_threads, sizeof(*threads));

	if (!threads)
		return NULL;
	notes->threads = threads;
	threads[notes->nr_threads] = (struct core_thread){.tid = 0};
	return &threads[notes->nr_threads++];
}

static int decode_prstatus(struct note_reader *reader, const char *desc, size_t size)
{
	const struct register_layout *layout = reader->layout;

	if (size < PRSTATUS_REGISTERS_OFFSET + layout->nr_registers * sizeof(uint64_t) ||
	    reader->notes.nr_threads == CORE_MAX_THREADS) {
		reader->notes.is_incomplete = true;
		return 0;
	}
	struct core_thread *thread = add_thread(&reader->notes);

	if (!thread)
		return -ENOMEM;
	thread->tid = field_i32(desc, PRSTATUS_PID_OFFSET);
	thread->signal = (int16_t)field_u16(desc, PRSTATUS_CURSIG_OFFSET);
	memcpy(thread->registers, desc + PRSTATUS_REGISTERS_OFFSET,
	       layout->nr_registers * sizeof(uint64_t));
	thread->pc_addr = thread->registers[layout->pc_index];
	thread->sp_addr = thread->registers[layout->sp_index];
	if (layout->thread_pointer_index)
		thread->thread_pointer = thread->registers[layout->thread_pointer_index];
	return 0;
}

/* The note follows the NT_PRSTATUS of its thread. */
static int decode_arm_tls(struct note_reader *reader, const char *desc, size_t size)
{
	struct core_notes *notes = &reader->notes;

	if (size >= sizeof(uint64_t) && notes->nr_threads && !reader->layout->thread_pointer_index)
		notes->threads[notes->nr_threads - 1].thread_pointer = field_u64(desc, 0);
	return 0;
}

/* The process. */

static int decode_psinfo(struct note_reader *reader, const char *desc, size_t size)
{
	struct core_psinfo *psinfo = &reader->notes.psinfo;

	if (size < PSINFO_BYTES || psinfo->is_known)
		return 0;
	psinfo->is_known = true;
	psinfo->pid = field_i32(desc, PSINFO_PID_OFFSET);
	psinfo->parent_pid = field_i32(desc, PSINFO_PARENT_PID_OFFSET);
	psinfo->uid = field_u32(desc, PSINFO_UID_OFFSET);
	psinfo->gid = field_u32(desc, PSINFO_GID_OFFSET);
	memcpy(psinfo->name, desc + PSINFO_NAME_OFFSET, CORE_NAME_MAX_BYTES - 1);
	memcpy(psinfo->arguments, desc + PSINFO_ARGUMENTS_OFFSET, CORE_ARGUMENTS_MAX_BYTES - 1);
	return 0;
}

bool core_signal_is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

struct core_death core_death_of_siginfo(const void *siginfo)
{
	struct core_death death = {
		.signal = field_i32(siginfo, SIGINFO_SIGNO_OFFSET),
		.code = field_i32(siginfo, SIGINFO_CODE_OFFSET),
	};

	/* Codes above 0 are the kernel's; SI_KERNEL carries no address (asm-generic/siginfo.h). */
	death.has_addr =
		core_signal_is_fault(death.signal) && death.code > 0 && death.code != SI_KERNEL;
	death.has_sender =
		death.code == SI_USER || death.code == SI_TKILL || death.code == SI_QUEUE;
	if (death.has_addr)
		death.addr = field_u64(siginfo, SIGINFO_ADDR_OFFSET);
	if (death.has_sender) {
		death.sender_pid = field_i32(siginfo, SIGINFO_PID_OFFSET);
		death.sender_uid = field_u32(siginfo, SIGINFO_UID_OFFSET);
	}
	return death;
}

/* The first one belongs to the thread for which the core was written; debuggers write more. */
static int decode_siginfo(struct note_reader *reader, const char *desc, size_t size)
{
	struct core_death *death = &reader->notes.death;

	if (size >= CORE_SIGINFO_BYTES && death->signal == 0)
		*death = core_death_of_siginfo(desc);
	return 0;
}

static uint64_t *auxv_word(struct core_auxv *auxv, uint64_t type)
{
	switch (type) {
	case AT_PHDR:
		return &auxv->program_headers_addr;
	case AT_ENTRY:
		return &auxv->entry_addr;
	case AT_BASE:
		return &auxv->loader_addr;
	case AT_SYSINFO_EHDR:
		return &auxv->vdso_addr;
	case AT_RANDOM:
		return &auxv->random_addr;
	default:
		return NULL;
	}
}

static int decode_auxv(struct note_reader *reader, const char *desc, size_t size)
{
	for (size_t next = 0; size - next >= AUXV_PAIR_BYTES; next += AUXV_PAIR_BYTES) {
		uint64_t *word = auxv_word(&reader->notes.auxv, field_u64(desc, next));

		if (word)
			*word = field_u64(desc, next + 8);
	}
	return 0;
}

static int decode_files(struct note_reader *reader, const struct core_piece *desc)
{
	struct core_notes *notes = &reader->notes;

	if (reader->has_files || desc->size_bytes > CORE_MAX_FILE_NOTE_BYTES) {
		notes->is_incomplete = true;
		return 0;
	}
	reader->has_files = true;
	char *bytes = malloc(desc->size_bytes + 1);

	if (!bytes)
		return -ENOMEM;
	size_t size = file_blocks_read(reader->file, desc->file_offset, bytes, desc->size_bytes);
	int err = core_file_note_parse(bytes, size, &notes->files, &notes->nr_files_lost);

	if (err == -EBADMSG)
		notes->is_incomplete = true;
	return err == -EBADMSG ? 0 : err;
}

/* The notes. */

/* The kernel and debuggers align notes, and the parts of a note, to 4 bytes. */
static uint64_t note_align(uint64_t size)
{
	return (size + 3) & ~(uint64_t)3;
}

struct note_kind {
	uint32_t type;
	const char *owner;
	size_t max_bytes; /* bytes beyond this are not read */
	int (*decode)(struct note_reader *reader, const char *desc, size_t size);
};

static const struct note_kind kinds[] = {
	{NT_PRSTATUS, "CORE", PRSTATUS_MAX_BYTES, decode_prstatus},
	{NT_PRPSINFO, "CORE", PSINFO_BYTES, decode_psinfo},
	{NT_SIGINFO, "CORE", CORE_SIGINFO_BYTES, decode_siginfo},
	{NT_AUXV, "CORE", AUXV_MAX_BYTES, decode_auxv},
	{NT_ARM_TLS, "LINUX", sizeof(uint64_t), decode_arm_tls},
};

static int decode_note(struct note_reader *reader, const struct note *note)
{
	char desc[AUXV_MAX_BYTES];

	if (note->type == NT_FILE && strcmp(note->owner, "CORE") == 0)
		return decode_files(reader, &note->desc);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct note_kind *kind = &kinds[i];

		if (note->type != kind->type || strcmp(note->owner, kind->owner) != 0)
			continue;
		size_t size = note->desc.size_bytes < kind->max_bytes ? note->desc.size_bytes
								      : kind->max_bytes;

		size = file_blocks_read(reader->file, note->desc.file_offset, desc, size);
		return kind->decode(reader, desc, size);
	}
	return 0;
}

/*
 * Read the note at the start of the piece. Returns false if there is none. A hole in the file reads
 * as a note without an owner, which counts as none.
 */
static bool read_note(struct file_blocks *file, const struct core_piece *piece,
		      struct note *ret_note)
{
	struct note note = {.type = 0};
	uint64_t name_offset = piece->file_offset + sizeof(Elf64_Nhdr);
	Elf64_Nhdr header;

	if (piece->size_bytes < sizeof(header) ||
	    file_blocks_read(file, piece->file_offset, &header, sizeof(header)) != sizeof(header))
		return false;
	uint64_t desc_offset = sizeof(header) + note_align(header.n_namesz);

	if (header.n_namesz == 0 || desc_offset > piece->size_bytes ||
	    header.n_descsz > piece->size_bytes - desc_offset)
		return false;
	if (header.n_namesz < sizeof(note.owner) &&
	    file_blocks_read(file, name_offset, note.owner, header.n_namesz) != header.n_namesz)
		return false;
	note.type = header.n_type;
	note.desc.file_offset = piece->file_offset + desc_offset;
	note.desc.size_bytes = header.n_descsz;
	*ret_note = note;
	return true;
}

/*
 * Split one note off the piece. Returns false at the end of the piece, and also, with is_incomplete
 * set, at anything that is not a note or after CORE_MAX_NOTES.
 */
static bool next_note(struct note_reader *reader, struct core_piece *piece, struct note *ret_note)
{
	if (piece->size_bytes == 0)
		return false;
	if (reader->nr_left == 0 || !read_note(reader->file, piece, ret_note)) {
		reader->notes.is_incomplete = true;
		return false;
	}
	reader->nr_left--;
	uint64_t next_offset = ret_note->desc.file_offset + note_align(ret_note->desc.size_bytes);
	uint64_t note_bytes = next_offset - piece->file_offset;

	if (note_bytes > piece->size_bytes) /* the last one need not be padded */
		note_bytes = piece->size_bytes;
	piece->file_offset += note_bytes;
	piece->size_bytes -= note_bytes;
	return true;
}

static int read_piece(struct note_reader *reader, struct core_piece piece)
{
	struct note note;
	int err = 0;

	while (!err && next_note(reader, &piece, &note))
		err = decode_note(reader, &note);
	return err;
}

/*
 * Whether the signal ends a process with a core (signal(7)). In a core with any other signal, or
 * none, a debugger stopped the process to take a snapshot.
 */
static bool ends_with_core(int signal)
{
	static const int signals[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE,
				      SIGSEGV, SIGBUS, SIGSYS,	SIGXCPU, SIGXFSZ};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i] == signal)
			return true;
	return false;
}

static void decide_death(struct core_notes *notes)
{
	/* Linux before 3.10 has no NT_SIGINFO. */
	if (notes->death.signal == 0 && notes->nr_threads)
		notes->death.signal = notes->threads[0].signal;
	if (!ends_with_core(notes->death.signal))
		notes->death = (struct core_death){.signal = 0};
}

int core_notes_read(struct file_blocks *file, const struct core_segments *segments,
		    uint16_t machine, struct core_notes *ret_notes)
{
	struct note_reader reader = {.file = file, .nr_left = CORE_MAX_NOTES};
	int err = 0;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].machine == machine)
			reader.layout = &layouts[i];
	if (reader.layout)
		reader.notes.max_pthread_bytes = reader.layout->max_pthread_bytes;
	for (size_t i = 0; !err && reader.layout && i < segments->nr_notes; i++)
		err = read_piece(&reader, segments->notes[i]);
	if (err) {
		core_notes_done(&reader.notes);
		return err;
	}
	decide_death(&reader.notes);
	reader.notes.is_incomplete |= segments->nr_notes == 0;
	*ret_notes = reader.notes;
	return 0;
}

void core_notes_done(struct core_notes *notes)
{
	free(notes->threads);
	maps_done(&notes->files);
	*notes = (struct core_notes){.threads = NULL};
}
