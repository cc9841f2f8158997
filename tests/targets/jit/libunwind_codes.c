/* SPDX-License-Identifier: MIT */
/*
 * Makes code at run time and registers it with libunwind, for a Python that loads this with
 * ctypes: cc -shared -fPIC libunwind_codes.c -lunwind. As a program it registers code and waits.
 */
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* push %rbp; mov %rsp, %rbp; again: dec %rdi; jnz again; pop %rbp; ret */
static const unsigned char loop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
				     0xcf, 0x75, 0xfb, 0x5d, 0xc3};

/* A function of that name that counts its argument down. Returns what to cancel, or NULL. */
unw_dyn_info_t *make_code(const char *name)
{
	unw_dyn_info_t *info = calloc(1, sizeof(*info));
	void *code = mmap(NULL, sizeof(loop), PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!info || code == MAP_FAILED)
		return NULL;
	memcpy(code, loop, sizeof(loop));
	info->start_ip = (unw_word_t)code;
	info->end_ip = info->start_ip + sizeof(loop);
	info->format = UNW_INFO_FORMAT_DYNAMIC;
	info->u.pi.name_ptr = (unw_word_t)strdup(name);
	_U_dyn_register(info);
	return info;
}

unsigned long code_addr(const unw_dyn_info_t *info)
{
	return info->start_ip;
}

/* Unregisters the code, which stays in memory. */
void cancel_code(unw_dyn_info_t *info)
{
	_U_dyn_cancel(info);
}

int main(void)
{
	return make_code("of a program") ? pause() : 1;
}
