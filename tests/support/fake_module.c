/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_module.h"

#include <elf.h>

#include "procmem/machine.h"

/* Vaddr of .eh_frame_hdr. */
#define HEADER_VADDR 0x400

/* Vaddr of the notes, and the index of their program header. */
#define NOTES_VADDR  0x600
#define NOTES_HEADER 2

void fake_module_map(struct fake_memory *fake, remote_addr addr, const struct cfi_bytes *bytes)
{
	const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT},
				   .e_machine = MACHINE_ELF,
				   .e_phoff = sizeof(header),
				   .e_phnum = 3,
				   .e_phentsize = sizeof(Elf64_Phdr)};
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_filesz = FAKE_MODULE_BYTES, .p_memsz = FAKE_MODULE_BYTES},
		{.p_type = PT_GNU_EH_FRAME, .p_vaddr = HEADER_VADDR},
		[NOTES_HEADER] = {.p_type = PT_NULL},
	};
	const uint8_t eh_frame_hdr[] = {
		1, DW_EH_PE_udata4, DW_EH_PE_omit, DW_EH_PE_omit, 0, CFI_BYTES_VADDR >> 8, 0, 0};

	fake_memory_map(fake, addr, FAKE_MODULE_BYTES);
	fake_memory_write(fake, addr, &header, sizeof(header));
	fake_memory_write(fake, addr + sizeof(header), segments, sizeof(segments));
	fake_memory_write(fake, addr + HEADER_VADDR, eh_frame_hdr, sizeof(eh_frame_hdr));
	fake_memory_write(fake, addr + CFI_BYTES_VADDR, bytes->bytes, bytes->nr);
}

void fake_module_set_build_id(struct fake_memory *fake, remote_addr addr, const uint8_t id[20])
{
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t id[20];
	} note = {.header = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
		  .name = ELF_NOTE_GNU};
	const Elf64_Phdr segment = {
		.p_type = PT_NOTE, .p_vaddr = NOTES_VADDR, .p_filesz = sizeof(note)};

	for (size_t i = 0; i < sizeof(note.id); i++)
		note.id[i] = id[i];
	fake_memory_write(fake, addr + NOTES_VADDR, &note, sizeof(note));
	fake_memory_write(fake, addr + sizeof(Elf64_Ehdr) + NOTES_HEADER * sizeof(segment),
			  &segment, sizeof(segment));
}

void fake_module_function(struct cfi_bytes *bytes, size_t common, unsigned int function_index,
			  const uint8_t *program, size_t program_bytes)
{
	cfi_bytes_function(bytes, common,
			   FAKE_MODULE_CODE_VADDR + FAKE_MODULE_FUNCTION_BYTES * function_index,
			   FAKE_MODULE_FUNCTION_BYTES, program, program_bytes);
}

remote_addr fake_module_code_addr(remote_addr module_addr, unsigned int function_index)
{
	return module_addr + FAKE_MODULE_CODE_VADDR + FAKE_MODULE_FUNCTION_BYTES * function_index +
	       0x20;
}
